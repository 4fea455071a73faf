/* Rows with their spans and marks; only those in sight are drawn. */

function matches(lane, query, number) {
  if (number !== null && (lane.ranks.includes(number) || lane.pids.includes(number))) {
    return !isNode(lane) || lane.pids.includes(number) || lane.workers.length === 0;
  }
  if (lane.search === undefined) {
    const ranks = lane.ranks.map((rank) => `rank ${rank}`);
    lane.names = [lane.name, isNode(lane) ? lane.host : "", ...(isNode(lane) ? [] : ranks)].join("\n").toLowerCase();
    lane.search = [...lane.marks, ...lane.spans].map((each) => each.text).join("\n").toLowerCase();
  }
  if (number !== null) return false;
  const wanted = /^ranks? (\d+)$/.exec(query);
  if (wanted) return !isNode(lane) && lane.ranks.includes(Number(wanted[1]));
  return lane.names.includes(query) || lane.search.includes(query);
}

function listLanes() {
  const query = state.query.trim().toLowerCase();
  const number = /^\d{1,10}$/.test(query) ? Number(query) : null;
  const found = [];
  let hits = 0;
  for (const node of state.run.lanes) {
    if (!isNode(node)) continue;
    if (!query) {
      found.push(node.id);
      if (expanded().has(node.id)) found.push(...node.workers);
      continue;
    }
    const workers = node.workers.filter((id) => matches(state.run.lanes[id], query, number));
    const isHit = matches(node, query, number);
    hits += workers.length + (isHit ? 1 : 0);
    if (!isHit && workers.length === 0) continue;
    found.push(node.id);
    if (workers.length) found.push(...workers);
    else if (expanded().has(node.id)) found.push(...node.workers);
  }
  state.visible = found;
  state.placeOf = new Map(found.map((id, place) => [id, place]));
  byId("found").textContent = query ? counted(hits, "matching lane") : "";
  byId("nothing").hidden = found.length > 0;
}

/* Whether the workers of a node have rows of their own. */
function isOpen(node) {
  const place = state.placeOf.get(node.id);
  const next = state.run.lanes[state.visible[place + 1]];
  return next !== undefined && next.node === node.id && !isNode(next);
}

function layOut() {
  listLanes();
  clearRows();
  byId("space").style.height = `${state.visible.length * ROW}px`;
  byId("expand").textContent = isAllOpen() ? "Collapse all" : "Expand all";
  draw();
}

function clearRows() {
  for (const row of state.rows.values()) row.remove();
  state.rows.clear();
}

/* Draw what the window of time or the filters have changed. */
function draw() {
  drawAxis();
  for (const [lane, row] of state.rows) fillRow(state.run.lanes[lane], row);
  drawRows();
  chart.dataset.from = state.from;
  chart.dataset.to = state.to;
}

/* Add the rows that have come into sight, and drop those far from it. */
function drawRows() {
  const [first, last] = rowsInSight();
  const wanted = new Set(state.visible.slice(first, last));
  const kept = state.focused && item(state.focused)?.lane;
  for (const [lane, row] of state.rows) {
    if (wanted.has(lane)) continue;
    if (lane === kept && row.contains(document.activeElement)) continue;
    row.remove();
    state.rows.delete(lane);
  }
  for (let place = first; place < last; place++) {
    const lane = state.visible[place];
    if (!state.rows.has(lane)) addRow(state.run.lanes[lane], place);
  }
  drawLinks();
}

function rowsInSight() {
  if (state.isPrinting) return [0, Math.min(state.visible.length, MOST_PRINTED_ROWS)];
  const first = Math.floor(rowsBox.scrollTop / ROW) - SPARE_ROWS;
  const last = Math.ceil((rowsBox.scrollTop + rowsBox.clientHeight) / ROW) + SPARE_ROWS;
  return [Math.max(0, first), Math.min(state.visible.length, last)];
}

function addRow(lane, place) {
  const row = html("div", "", {
    class: `row ${isNode(lane) ? "node" : "worker"}`,
    role: "group", "data-lane": lane.id, "aria-label": `${lane.name} ${lane.worst}`,
  });
  row.style.top = `${place * ROW}px`;
  row.append(nameOf(lane), svg("svg"));
  fillRow(lane, row);
  state.rows.set(lane.id, row);
  // In the order of the lanes, for those who hear the page.
  const next = state.visible.slice(place + 1).find((id) => state.rows.has(id));
  rowsBox.insertBefore(row, state.rows.get(next) ?? byId("links"));
}

function nameOf(lane) {
  const name = html("div", "", { class: "name", title: lane.name });
  if (isNode(lane) && lane.workers.length) {
    const open = isOpen(lane);
    name.append(html("button", open ? "▾" : "▸", {
      tabindex: -1, "aria-expanded": open, "data-toggle": lane.id,
      "aria-label": `Workers of ${lane.name}`,
    }));
  }
  name.append(html("span", lane.name, { class: "text" }));
  if (isNode(lane) && lane.ranks.length) {
    name.append(html("span", counted(lane.workers.length, "worker"), { class: "more" }));
  }
  return name;
}

function fillRow(lane, row) {
  const drawn = row.querySelector("svg");
  const active = row.contains(document.activeElement) ? state.focused : null;
  const x = scale();
  const width = plotWidth();
  const children = [];
  for (const span of lane.spans) {
    if (isShownSpan(span)) {
      const element = spanElement(span, x, width);
      if (element) children.push(element);
    }
  }
  for (const group of markGroups(lane, x, width)) children.push(markElement(group));
  drawn.replaceChildren(...children);
  if (active) focusWithin(row, active);
}

function spanElement(span, x, width) {
  const left = Math.max(-4, x(span.start));
  const right = Math.min(width + 4, x(span.end));
  if (right < 0 || left > width) return null;
  const height = SPAN_HEIGHTS[span.kind] ?? 16;
  const box = {
    x: left, y: (ROW - height) / 2, width: Math.max(1.5, right - left), height,
  };
  const rect = svg("rect", { ...box, rx: 2, class: `kind-${span.kind}` });
  const text = `${span.text}, ${durationText(span.end - span.start)}`;
  const element = svg("g", {
    class: `span${span.key === state.chosen ? " chosen" : ""}`,
    role: "button", tabindex: span.key === state.focused ? 0 : -1,
    "aria-label": text, "data-span": span.id, "data-key": span.key,
    "data-lane": span.lane, "data-kind": span.kind, "data-start": span.start,
    "data-end": span.end, "data-attempt": span.attempt ?? "",
  }, rect);
  if (HATCHED[span.kind]) {
    element.append(svg("rect", { ...box, class: "hatch", fill: `url(#hatch-${span.kind})` }));
  }
  return element;
}

/* Marks that would fall on one another, together, the gravest first. */
function markGroups(lane, x, width) {
  const marks = lane.all && !isOpen(lane) ? lane.all : lane.marks;
  const groups = [];
  let last = null;
  for (const mark of marks) {
    if (!isShownMark(mark)) continue;
    const at = x(mark.at);
    if (at < -12 || at > width + 12) continue;
    if (last && at - last.x < MARK_WIDTH) {
      last.marks.push(mark);
      if (mark.gravity < last.worst.gravity) last.worst = mark;
    } else {
      last = { x: at, marks: [mark], worst: mark };
      groups.push(last);
    }
  }
  return groups;
}

function markElement({ x, marks, worst }) {
  const count = marks.length;
  const text = count > 1 ? `${worst.text}; and ${count - 1} more here` : worst.text;
  const keys = marks.map((mark) => mark.key);
  const isFocused = keys.includes(state.focused);
  const element = svg("g", {
    class: `mark${keys.includes(state.chosen) ? " chosen" : ""}`,
    role: "button", tabindex: isFocused ? 0 : -1, "aria-label": text,
    transform: `translate(${x.toFixed(1)} ${ROW / 2})`,
    "data-marks": marks.map((mark) => mark.id).join(" "), "data-count": count,
    "data-key": isFocused ? state.focused : worst.key, "data-kind": worst.kind,
    "data-level": worst.level, "data-at": worst.at,
  }, svg("path", {
    d: SHAPES[worst.kind], class: `mark-${worst.kind}`,
    transform: `scale(${worst.id === state.run.first ? 1.25 : worst.kind === "cause" ? 0.9 : 1})`,
  }));
  if (count > 1) {
    element.append(svg("text", { class: "count", x: 7, y: -4 }, String(count)));
  }
  return element;
}

function drawAxis() {
  const width = plotWidth();
  const x = scale();
  const step = tickStep(state.to - state.from, Math.floor(width / 90));
  const { base, firstLine } = state.run;
  // Ticks stand at round times of the zone that is shown.
  const shift = base === null ? firstLine : base
    - (state.zone === "utc" ? 0 : new Date(base).getTimezoneOffset() * MINUTE);
  const parts = step < SECOND ? 3 : step < MINUTE ? 2 : 1;
  const children = [];
  const first = Math.ceil((timeAt(0) + shift) / step) * step - shift;
  for (let at = first; x(at) <= width; at += step) {
    const left = x(at).toFixed(1);
    const text = base === null ? firstLine + at
      : step < DAY ? clockText(at, state.zone, { parts })
        : clockText(at, state.zone, { date: true }).slice(0, 10);
    if (left < 32 || left > width - 32) continue;
    children.push(svg("line", { x1: left, x2: left, y1: 24, y2: 34 }));
    children.push(svg("text", { x: left, y: 18, "text-anchor": "middle" }, String(text)));
  }
  byId("ticks").replaceChildren(...children);
  byId("axis-name").textContent = base === null ? "order of lines"
    : `${clockText(Math.max(0, state.from), state.zone, { date: true }).slice(0, 10)} ${zoneName(state.zone, new Date(base))}`;
}

/* Lines from the chosen cause to its victims. */
function drawLinks() {
  const box = byId("links");
  const chosen = state.chosen?.[0] === "m" ? item(state.chosen) : null;
  const isListed = chosen && (state.placeOf.has(chosen.lane)
    || state.placeOf.has(state.run.lanes[chosen.lane].node));
  const mark = isListed ? chosen : null;
  const [first, last] = rowsInSight();
  box.style.top = `${first * ROW}px`;
  box.style.left = `${nameWidth()}px`;
  box.setAttribute("width", plotWidth());
  box.setAttribute("height", Math.max(0, last - first) * ROW);
  box.replaceChildren(...(mark ? linksOf(mark, first, last) : []));
}

function linksOf(mark, first, last) {
  const x = scale();
  const rowOfLane = (lane) =>
    state.placeOf.get(lane) ?? state.placeOf.get(state.run.lanes[lane].node);
  const middle = (row) => (row - first + 0.5) * ROW;
  const from = { x: Math.round(x(mark.at)), y: middle(rowOfLane(mark.lane)) };
  const links = new Map();
  for (const victim of mark.victims) {
    const other = state.run.marks[victim];
    const row = rowOfLane(other.lane);
    // To those out of sight they lead when they come into it.
    if (!(row >= first && row < last)) continue;
    const to = { x: Math.round(x(other.at)), y: middle(row) };
    const bend = Math.max(24, Math.abs(to.x - from.x) / 2);
    const path = `M${from.x} ${from.y}C${from.x + bend} ${from.y} ${to.x + bend} ${to.y} ${to.x} ${to.y}`;
    if (!links.has(path)) links.set(path, svg("path", { d: path, "data-victim": victim }));
  }
  return links.values();
}
