/* Going from one thing to another. */

function setOpen(node, isOpened = true) {
  if (isOpened) expanded().add(node); else expanded().delete(node);
}

function scrollToLane(lane) {
  const place = state.placeOf.get(lane) ?? state.placeOf.get(state.run.lanes[lane].node) ?? 0;
  const top = place * ROW;
  if (top < rowsBox.scrollTop || top + ROW > rowsBox.scrollTop + rowsBox.clientHeight) {
    rowsBox.scrollTop = Math.max(0, top - rowsBox.clientHeight / 3);
  }
  drawRows();
}

function goToFirst() {
  const { first, marks, lanes, length } = state.run;
  const worst = first ?? marks.filter((mark) => mark.level === "error")
    .sort((one, other) => one.at - other.at)[0]?.id;
  if (worst === undefined || worst === null) return;
  const mark = marks[worst];
  if (state.query) setQuery("");
  setOpen(lanes[mark.lane].node);
  state.hiddenKinds.delete(`mark ${mark.kind}`);
  state.hiddenLevels.delete(mark.level);
  fillLegend();
  layOut();
  const half = Math.min(length, Math.max(state.run.base === null ? 10 : 10000, length / 8)) / 2;
  setWindow(mark.at - half, mark.at + half);
  goTo(mark.key);
}

/* Let Tab reach this one, and give it the focus. */
function goTo(key) {
  const before = state.focused;
  state.focused = key;
  const lane = item(key).lane;
  scrollToLane(lane);
  for (const each of before ? [item(before).lane, lane] : [lane]) {
    const row = rowOf(each);
    if (row) fillRow(state.run.lanes[Number(row.dataset.lane)], row);
  }
  const row = rowOf(lane);
  if (row) focusWithin(row, key);
}

function rowOf(lane) {
  return state.rows.get(lane) ?? state.rows.get(state.run.lanes[lane].node);
}

function focusWithin(row, key) {
  elementOf(row, key)?.focus({ preventScroll: true });
}

function elementOf(row, key) {
  if (key[0] === "s") return row.querySelector(`[data-span="${key.slice(1)}"]`);
  return row.querySelector(`[data-marks~="${key.slice(1)}"]`);
}

function stepWithin(element, step) {
  const items = [...element.parentNode.querySelectorAll("[data-key]")];
  const left = (each) => each.getBoundingClientRect().left;
  items.sort((one, other) => left(one) - left(other));
  const next = items[items.indexOf(element) + step];
  if (next) goTo(next.dataset.key);
}

function stepLane(element, step) {
  const here = element.getBoundingClientRect();
  const lane = Number(element.closest(".row").dataset.lane);
  let place = state.placeOf.get(lane) + step;
  for (; place >= 0 && place < state.visible.length; place += step) {
    const next = state.visible[place];
    if (!state.rows.has(next)) scrollToLane(next);
    const items = [...(state.rows.get(next)?.querySelectorAll("[data-key]") ?? [])];
    const far = (each) => Math.abs(each.getBoundingClientRect().left - here.left);
    items.sort((one, other) => far(one) - far(other));
    if (items.length) return goTo(items[0].dataset.key);
  }
  return undefined;
}
