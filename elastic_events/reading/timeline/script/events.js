/* What people do, and the beginning. */

const itemAt = (event) => event.target.closest?.("[data-key]");

function onClick(event) {
  const button = event.target.closest("[data-toggle]");
  if (button) return toggleNode(Number(button.dataset.toggle));
  const element = itemAt(event);
  if (element && !drag.hasMoved) return showDetails(element);
  const name = event.target.closest(".row.node > .name");
  return name ? toggleNode(Number(name.parentNode.dataset.lane)) : undefined;
}

const drag = { isOn: false, hasMoved: false, x: 0, from: 0, to: 0 };

function onDown(event) {
  drag.hasMoved = false;
  if (event.button !== 0 || event.target.closest(".name")) return;
  Object.assign(drag, { isOn: true, x: event.clientX, from: state.from, to: state.to });
}

function onMove(event) {
  if (!drag.isOn) return;
  const moved = event.clientX - drag.x;
  if (!drag.hasMoved && Math.abs(moved) < 4) return;
  if (!drag.hasMoved) rowsBox.setPointerCapture(event.pointerId);
  drag.hasMoved = true;
  rowsBox.classList.add("dragged");
  hideTip();
  const shift = (moved / (plotWidth() - 2 * MARGIN)) * (drag.to - drag.from);
  soon("drag", () => setWindow(drag.from - shift, drag.to - shift));
}

function onUp() {
  drag.isOn = false;
  rowsBox.classList.remove("dragged");
}

function onWheel(event) {
  const x = event.clientX - rowsBox.getBoundingClientRect().left - nameWidth();
  if (event.ctrlKey || event.metaKey) {
    event.preventDefault();
    const around = timeAt(x);
    zoom(Math.exp(-event.deltaY / 300), around);
  } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
    event.preventDefault();
    pan((event.deltaX || event.deltaY) / plotWidth());
  }
}

/* Many events of one frame are one piece of work. */
const waiting = new Map();
function soon(name, work) {
  if (!waiting.has(name)) {
    requestAnimationFrame(() => {
      const last = waiting.get(name);
      waiting.delete(name);
      last();
    });
  }
  waiting.set(name, work);
}

const KEYS = {
  f: goToFirst,
  "+": () => zoom(ZOOM_STEP),
  "=": () => zoom(ZOOM_STEP),
  "-": () => zoom(1 / ZOOM_STEP),
  0: showAll,
  x: toggleAll,
  z: () => state.run.base !== null && setZone(state.zone === "utc" ? "local" : "utc"),
  "/": () => byId("search").focus(),
  "?": () => byId("help").showModal(),
  Escape: leave,
};

function leave() {
  if (!byId("details").hidden) closeDetails();
  else if (state.query) setQuery("");
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  const { target, key } = event;
  if (target.matches("input[type=search], select")) {
    if (key === "Escape") {
      leave();
      chart.focus();
    }
    return;
  }
  const element = itemAt(event);
  const isChart = element || target === chart || target === document.body;
  const act = (isChart && arrowKey(event, element)) || (element && itemKey(key, element)) || KEYS[key];
  if (!act) return;
  event.preventDefault();
  act();
}

function arrowKey(event, element) {
  const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (!step) return null;
  const isSideways = event.key === "ArrowLeft" || event.key === "ArrowRight";
  if (element && !event.shiftKey) {
    return () => (isSideways ? stepWithin : stepLane)(element, step);
  }
  return isSideways ? () => pan(step * 0.1) : () => rowsBox.scrollBy(0, step * 3 * ROW);
}

function itemKey(key, element) {
  if (key === "Enter" || key === " ") return () => showDetails(element);
  if (key !== "e") return null;
  return () => {
    const { node } = state.run.lanes[item(element.dataset.key).lane];
    toggleNode(node);
    goTo(element.dataset.key);
  };
}

function refit() {
  fitNames();
  draw();
}

function setPrinting(isPrinting) {
  if (isPrinting === state.isPrinting) return;
  state.isPrinting = isPrinting;
  const most = Math.min(state.visible.length, MOST_PRINTED_ROWS);
  byId("space").style.height = `${(isPrinting ? most : state.visible.length) * ROW}px`;
  const cut = isPrinting ? state.visible.length - most : 0;
  byId("cut").textContent = cut > 0 ? `and ${counted(cut, "more lane")}` : "";
  clearRows();
  draw();
}

function listen() {
  rowsBox.addEventListener("click", onClick);
  rowsBox.addEventListener("pointerdown", onDown);
  rowsBox.addEventListener("pointermove", onMove);
  for (const each of ["pointerup", "pointercancel"]) addEventListener(each, onUp);
  chart.addEventListener("wheel", onWheel, { passive: false });
  rowsBox.addEventListener("scroll", () => soon("scroll", drawRows), { passive: true });
  rowsBox.addEventListener("pointerover", (event) => {
    const element = itemAt(event);
    if (element && !drag.hasMoved) showTip(element); else hideTip();
  });
  rowsBox.addEventListener("pointerleave", hideTip);
  rowsBox.addEventListener("focusin", (event) => {
    const element = itemAt(event);
    const isTold = element?.dataset.key === state.chosen;
    if (!isTold && element?.matches(":focus-visible")) showTip(element);
  });
  rowsBox.addEventListener("focusout", hideTip);
  document.addEventListener("keydown", onKey);
  addEventListener("resize", () => soon("resize", refit));
  matchMedia("print").addEventListener("change", (event) => setPrinting(event.matches));
  byId("to-first").addEventListener("click", goToFirst);
  byId("zoom-in").addEventListener("click", () => zoom(ZOOM_STEP));
  byId("zoom-out").addEventListener("click", () => zoom(1 / ZOOM_STEP));
  byId("zoom-all").addEventListener("click", showAll);
  byId("expand").addEventListener("click", toggleAll);
  byId("close").addEventListener("click", closeDetails);
  byId("help-button").addEventListener("click", () => byId("help").showModal());
  byId("search").addEventListener("input", (event) => setQuery(event.target.value));
  byId("zone").addEventListener("change", (event) => setZone(event.target.value));
  byId("run").addEventListener("change", (event) => showRun(Number(event.target.value)));
}

addPatterns();
fillRuns();
listen();
showRun(0);
document.documentElement.dataset.ready = "true";
