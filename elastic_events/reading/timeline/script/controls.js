/* The legend, the filters, the header. */

function checkbox(text, isOn, change, picture) {
  const label = html("label");
  const box = html("input", "", { type: "checkbox" });
  box.checked = isOn;
  box.addEventListener("change", () => change(box.checked));
  label.append(box, ...(picture ? [picture] : []), text);
  return label;
}

function fillLegend() {
  const rows = [];
  const add = (what, kind, name, picture) => {
    const key = `${what} ${kind}`;
    const count = state.run.counts.get(key);
    if (!count) return;
    const label = checkbox(`${name} ${count}`, !state.hiddenKinds.has(key), (isOn) => {
      toggle(state.hiddenKinds, key, !isOn);
      draw();
    }, picture);
    label.dataset.filter = key;
    rows.push(label);
  };
  for (const kind of data.markKinds) {
    const shape = svg("path", { d: SHAPES[kind], class: `mark-${kind}`, transform: `translate(10 8) scale(${kind === "cause" ? 0.8 : 1})` });
    add("mark", kind, MARK_NAMES[kind], svg("svg", { "aria-hidden": true }, shape));
  }
  rows.push(html("span", "", { class: "break" }));
  for (const kind of data.spanKinds) {
    add("span", kind, SPAN_NAMES[kind], spanPicture(kind));
  }
  byId("legend").replaceChildren(byId("legend").firstElementChild, ...rows);
  fillLevels();
}

function spanPicture(kind) {
  const height = Math.min(12, SPAN_HEIGHTS[kind] ?? 12);
  const box = { x: 1, y: 8 - height / 2, width: 18, height };
  const rect = svg("rect", { ...box, class: `kind-${kind}` });
  const drawing = svg("svg", { "aria-hidden": true, class: "span" }, rect);
  if (HATCHED[kind]) drawing.append(svg("rect", { ...box, class: "hatch", fill: `url(#hatch-${kind})` }));
  return drawing;
}

function fillLevels() {
  const labels = data.levels.map((level) => {
    const label = checkbox(level, !state.hiddenLevels.has(level), (isOn) => {
      toggle(state.hiddenLevels, level, !isOn);
      draw();
    });
    label.dataset.level = level;
    return label;
  });
  byId("levels").replaceChildren(byId("levels").firstElementChild, ...labels);
}

function toggle(set, key, isIn) {
  if (isIn) set.add(key); else set.delete(key);
}

function setQuery(query) {
  state.query = query;
  state.expandedFound.clear();
  if (byId("search").value !== query) byId("search").value = query;
  rowsBox.scrollTop = 0;
  layOut();
}

function setZone(zone) {
  state.zone = zone;
  byId("zone").value = zone;
  draw();
}

function toggleNode(node) {
  setOpen(node, !expanded().has(node));
  layOut();
  scrollToLane(node);
}

const isAllOpen = () => state.run.lanes.every((lane) =>
  !isNode(lane) || lane.workers.length === 0 || expanded().has(lane.id));

function toggleAll() {
  const isOpened = !isAllOpen();
  for (const lane of state.run.lanes) if (isNode(lane)) setOpen(lane.id, isOpened);
  layOut();
}

function showRun(number) {
  state.run = unpacked(data.runs[number]);
  Object.assign(state, { query: "", focused: null, chosen: null, expanded: new Set() });
  byId("search").value = "";
  byId("details").hidden = true;
  fillHeader();
  fillLegend();
  fitNames();
  const { first, marks, lanes, spans } = state.run;
  if (first !== null) setOpen(lanes[marks[first].lane].node);
  else if (lanes.length && lanes[0].workers.length < 20) setOpen(0);
  state.focused = first !== null ? `m${first}` : spans.length ? "s0" : null;
  rowsBox.scrollTop = 0;
  [state.from, state.to] = fullRange();
  layOut();
  if (first !== null) scrollToLane(marks[first].lane);
  chart.dataset.run = state.run.runId;
}

function fillHeader() {
  const { account, summary, outcome, runId } = state.run;
  const style = { failed: "failed", succeeded: "succeeded" }[outcome] ?? "unsure";
  document.title = `${runId}: ${outcome}`;
  byId("headline").textContent = account[0];
  byId("headline").className = style;
  byId("when").textContent = (account[1] ?? "").trim();
  byId("summary").textContent = summary ? `First cause: ${summary}` : "";
  byId("account").textContent = account.join("\n");
  byId("notices").replaceChildren(...notices().map((text) => html("li", text)));
  byId("zone-choice").hidden = state.run.base === null;
}

function notices() {
  const found = [];
  if (state.run.base === null) found.push("These lines have no clock: everything is drawn in the order of the lines of its file.");
  if (data.linesLeftOut) found.push(`${counted(data.linesLeftOut, "line")} left out of this page for its size; the files have them.`);
  if (state.run.notesLeftOut) found.push(`${counted(state.run.notesLeftOut, "further warning or error")} not drawn.`);
  if (data.runsLeftOut.length) found.push(`${counted(data.runsLeftOut.length, "run")} left out of this page for its size; --run-id draws one.`);
  return found;
}

function fillRuns() {
  const choice = byId("run");
  choice.replaceChildren(...data.runs.map((run, number) =>
    html("option", `${run.runId}: ${run.outcome}`, { value: number })));
  byId("run-choice").hidden = data.runs.length < 2;
}
