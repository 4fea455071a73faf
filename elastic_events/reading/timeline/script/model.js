"use strict";

/*
 * Draws one run at a time from the data in the page. Only the rows that are
 * in sight are in the document. No text of the data is ever parsed as HTML.
 */

const data = JSON.parse(document.getElementById("data").textContent);

const ROW = 26;
const SPARE_ROWS = 12;
const MOST_PRINTED_ROWS = 300;
const PRINTED_WIDTH = 1040;
const MOST_ARTICLES = 50;
// Marks nearer than this, in pixels, would hide one another.
const MARK_WIDTH = 9;
const ZOOM_STEP = 1.6;

const SPAN_NAMES = {
  failed: "worker failed", killed: "worker killed", lost: "lost with its node",
  stopped: "stopped by its agent", running: "running",
  succeeded: "succeeded", waiting: "waiting in the rendezvous",
  idle: "no worker runs", silent: "silent",
};
const MARK_NAMES = {
  cause: "first cause", lost: "lost node", killed: "killed by a signal",
  failure: "failure", agent: "error of an agent",
  rendezvous: "rendezvous failed", signal: "agent told to stop",
  restart: "restart", removed: "node given up", gap: "gap in keep-alives",
  stopped: "worker stopped", note: "other warning or error",
};

// Shapes around 0 0: each kind is known by its shape alone.
const SHAPES = {
  cause: "M0-11 2.9-4.2 10.3-3.5 4.7 1.5 6.4 8.8 0 5-6.4 8.8-4.7 1.5-10.3-3.5-2.9-4.2Z",
  lost: "M0-7a7 7 0 1 0 .01 0ZM0-4a4 4 0 1 1-.01 0ZM-7 5-5 7 7-5 5-7Z",
  killed: "M-7-5H7L0 7Z",
  failure: "M-6-4-4-6 0-2 4-6 6-4 2 0 6 4 4 6 0 2-4 6-6 4-2 0Z",
  agent: "M0-7 7 5H-7Z",
  rendezvous: "M-6-6H6L-6 6H6Z",
  signal: "M-3-7H3L7-3V3L3 7H-3L-7 3V-3Z",
  restart: "M-6-6 1 0-6 6ZM0-6 7 0 0 6Z",
  removed: "M-7-2H7V2H-7Z",
  gap: "M-5-6H-1V6H-5ZM1-6H5V6H1Z",
  stopped: "M-4-4H4V4H-4Z",
  note: "M0-4a4 4 0 1 0 .01 0Z",
};
const SPAN_HEIGHTS = { waiting: 6, idle: 2, silent: 10 };
const HATCHED = { failed: "/", killed: "x", lost: "-", stopped: "." };

const byId = (id) => document.getElementById(id);
const chart = byId("chart");
const rowsBox = byId("rows");
const tip = byId("tip");

const state = {
  run: null, // what `unpacked` returns
  from: 0, // the window of time, in ms since the run's base
  to: 1,
  zone: "utc",
  hiddenKinds: new Set(), // "span failed", "mark note"
  hiddenLevels: new Set(),
  query: "",
  expanded: new Set(), // lanes of nodes
  expandedFound: new Set(), // the same among what a search has found
  visible: [], // lanes in the order in which they stand
  rows: new Map(), // lane -> its element, of those in the document
  focused: null, // "s12" or "m7": the one that Tab reaches
  chosen: null,
  isPrinting: false,
};

function unpacked(run) {
  const lanes = run.lanes.map(([name, node, host, ranks, pids, worst], id) => ({
    id, name: data.texts[name], node, host: data.texts[host], ranks, pids,
    worst: worst === null ? "" : data.spanKinds[worst],
    workers: [], spans: [], marks: [], all: null,
  }));
  const spans = run.spans.map(([lane, kind, start, end, attempt, text, ...places], id) => ({
    key: `s${id}`, id, lane, kind: data.spanKinds[kind], start, end, attempt,
    text: data.texts[text], places,
  }));
  const marks = run.marks.map(([lane, kind, level, at, attempt, text, ...places], id) => ({
    key: `m${id}`, id, lane, kind: data.markKinds[kind], gravity: kind,
    level: data.levels[level], at, attempt, text: data.texts[text], places,
    victims: run.victims[id] ?? [],
  }));
  for (const lane of lanes) if (lane.node !== lane.id) lanes[lane.node].workers.push(lane.id);
  for (const span of spans) lanes[span.lane].spans.push(span);
  for (const mark of marks) lanes[mark.lane].marks.push(mark);
  const byTime = (one, other) => one.at - other.at || one.id - other.id;
  for (const lane of lanes) lane.marks.sort(byTime);
  for (const lane of lanes) {
    if (lane.node === lane.id) {
      lane.all = [lane.id, ...lane.workers].flatMap((each) => lanes[each].marks).sort(byTime);
    }
  }
  const counts = new Map();
  const count = (key) => counts.set(key, (counts.get(key) ?? 0) + 1);
  for (const { kind } of marks) count(`mark ${kind}`);
  for (const { kind } of spans) count(`span ${kind}`);
  return { ...run, lanes, spans, marks, counts };
}

const isNode = (lane) => lane.node === lane.id;
const item = (key) => (key[0] === "s" ? state.run.spans : state.run.marks)[+key.slice(1)];
const isShownSpan = (span) => !state.hiddenKinds.has(`span ${span.kind}`);
const isShownMark = (mark) =>
  !state.hiddenKinds.has(`mark ${mark.kind}`) && !state.hiddenLevels.has(mark.level);
const expanded = () => (state.query ? state.expandedFound : state.expanded);
