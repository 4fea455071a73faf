/* Times, ticks, and where they stand. */

const pad = (number, digits = 2) => String(number).padStart(digits, "0");

function zoneName(zone, moment) {
  if (zone === "utc") return "UTC";
  const minutes = -moment.getTimezoneOffset();
  const size = Math.abs(minutes);
  return `UTC${minutes < 0 ? "−" : "+"}${pad(Math.floor(size / 60))}:${pad(size % 60)}`;
}

function clockText(at, zone, { date = false, parts = 3 } = {}) {
  const moment = new Date(state.run.base + at);
  const get = (what) => moment[zone === "utc" ? `getUTC${what}` : `get${what}`]();
  const day = `${pad(get("FullYear"), 4)}-${pad(get("Month") + 1)}-${pad(get("Date"))}`;
  let text = `${pad(get("Hours"))}:${pad(get("Minutes"))}`;
  if (parts > 1) text += `:${pad(get("Seconds"))}`;
  if (parts > 2) text += `.${pad(get("Milliseconds"), 3)}`;
  return date ? `${day} ${text} ${zoneName(zone, moment)}` : text;
}

function placeText(at, zone = state.zone) {
  return state.run.base === null
    ? `line ${state.run.firstLine + at}` : clockText(at, zone, { date: true });
}

function durationText(length) {
  if (state.run.base === null) return counted(length, "line");
  const seconds = length / 1000;
  if (seconds < 60) return `${seconds.toFixed(seconds < 1 ? 3 : 1)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${pad(whole % 60)} s`;
  const minutes = Math.round(whole / 60);
  return `${Math.floor(minutes / 60)} h ${pad(minutes % 60)} min`;
}

const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, SECOND, 2 * SECOND, 5 * SECOND,
  10 * SECOND, 15 * SECOND, 30 * SECOND, MINUTE, 2 * MINUTE, 5 * MINUTE,
  10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR,
  12 * HOUR, DAY, 2 * DAY, 7 * DAY, 30 * DAY, 365 * DAY, 3650 * DAY, 36500 * DAY,
];

function tickStep(span, most) {
  const least = span / Math.max(1, most);
  if (state.run.base !== null) return STEPS.find((step) => step >= least) ?? STEPS.at(-1);
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return [1, 2, 5, 10].map((each) => each * power).find((step) => step >= least);
}

const nameWidth = () =>
  parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--name-width")) || 220;

/* Give the names the room they need, and never half of a narrow screen. */
function fitNames() {
  const longest = state.run.lanes.reduce(
    (most, lane) => (isNode(lane) ? Math.max(most, lane.name.length) : most), 0);
  const wanted = Math.min(360, Math.max(120, 8.5 * longest + 105));
  const width = Math.round(Math.min(wanted, innerWidth < 700 ? innerWidth * 0.35 : innerWidth * 0.3));
  document.documentElement.style.setProperty("--name-width", `${width}px`);
}

function plotWidth() {
  const whole = state.isPrinting ? PRINTED_WIDTH : rowsBox.clientWidth;
  return Math.max(60, whole - nameWidth());
}

// A margin, so that marks at the ends are seen whole.
const MARGIN = 14;
function scale() {
  const width = plotWidth() - 2 * MARGIN;
  const { from, to } = state;
  return (at) => MARGIN + ((at - from) / (to - from)) * width;
}

function timeAt(x) {
  const width = plotWidth() - 2 * MARGIN;
  return state.from + ((x - MARGIN) / width) * (state.to - state.from);
}

function fullRange() {
  return [0, Math.max(1, state.run.length)];
}

function setWindow(from, to) {
  const [start, end] = fullRange();
  const least = state.run.base === null ? 1 : 5;
  const length = Math.min(end - start, Math.max(least, to - from));
  // At most half of what is seen is empty.
  const earliest = start - length / 2;
  state.from = Math.max(earliest, Math.min(from, end - length / 2));
  state.to = state.from + length;
  draw();
}

function showAll() {
  setWindow(...fullRange());
}

function zoom(factor, around = (state.from + state.to) / 2) {
  setWindow(around - (around - state.from) / factor, around + (state.to - around) / factor);
}

function pan(share) {
  const step = share * (state.to - state.from);
  setWindow(state.from + step, state.to + step);
}
