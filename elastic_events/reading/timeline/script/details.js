/* What a click or a hover shows. */

function showDetails(element) {
  const keys = element.dataset.marks?.split(" ").map((id) => `m${id}`) ?? [element.dataset.key];
  const gravest = (one, other) => item(one).gravity - item(other).gravity;
  if (element.dataset.marks) keys.sort(gravest);
  state.chosen = keys[0];
  state.focused = keys.includes(state.focused) ? state.focused : element.dataset.key;
  const body = byId("details-body");
  const articles = keys.slice(0, MOST_ARTICLES).map((key) => article(item(key)));
  if (keys.length > MOST_ARTICLES) {
    articles.push(html("p", `… and ${keys.length - MOST_ARTICLES} more: zoom in to part them.`));
  }
  const had = byId("details").hidden;
  body.replaceChildren(...articles);
  byId("details").hidden = false;
  byId("details").scrollTop = 0;
  if (had) refit(); else draw();
  markChosen(element);
}

/* The element may have been drawn anew. */
function markChosen(element) {
  if (!element.isConnected) goTo(state.focused);
  hideTip();
}

function article(thing) {
  const element = html("article");
  const isSpan = thing.key[0] === "s";
  const name = isSpan ? SPAN_NAMES[thing.kind] : MARK_NAMES[thing.kind];
  element.append(html("h2", name[0].toUpperCase() + name.slice(1)));
  element.append(html("p", thing.text));
  element.append(facts(thing, isSpan));
  // The last line tells how it ended.
  for (const place of thing.places.toReversed()) element.append(...lineElements(place));
  return element;
}

function facts(thing, isSpan) {
  const lane = state.run.lanes[thing.lane];
  const node = state.run.lanes[lane.node];
  const rows = [["Node", node.name]];
  if (node.host) rows.push(["Host", node.host]);
  if (lane !== node) rows.push(["Worker", lane.name]);
  if (thing.attempt !== null) rows.push(["Attempt", String(thing.attempt)]);
  if (!isSpan) rows.push(["Level", thing.level]);
  if (isSpan) {
    rows.push(...timeRows("From", thing.start), ...timeRows("To", thing.end));
    rows.push(["For", durationText(thing.end - thing.start)]);
  } else {
    rows.push(...timeRows("At", thing.at));
  }
  if (thing.victims?.length) rows.push(["Victims", String(thing.victims.length)]);
  const list = html("dl");
  for (const [what, value] of rows) list.append(html("dt", what), html("dd", value));
  return list;
}

function timeRows(what, at) {
  if (state.run.base === null) return [[what, placeText(at)]];
  const local = placeText(at, "local");
  const rows = [[what, placeText(at, "utc")]];
  // Who lives by UTC need not read it twice.
  return local.endsWith("+00:00") ? rows : [...rows, ["", local]];
}

function lineElements(place) {
  const [file, number] = data.places[place];
  const title = html("h3", number ? `${data.texts[file]}:${number}` : data.texts[file]);
  const line = data.lines[place];
  if (line === undefined) {
    return [title, html("p", "This line is not kept on this page: look into the file.")];
  }
  const copy = html("button", "Copy", { title: "Copy the line as it is" });
  copy.addEventListener("click", () => copyText(line, copy));
  title.append(copy);
  const parts = [title, html("pre", visible(indented(line)), { class: "json", tabindex: 0 })];
  const trace = traceOf(line);
  if (trace) parts.push(html("h3", "error_trace"), html("pre", visible(trace), { tabindex: 0 }));
  return parts;
}

async function copyText(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    // Not allowed here: what is selected can be copied by hand.
    const pre = button.closest("h3").nextElementSibling;
    getSelection().selectAllChildren(pre);
    button.textContent = "Selected";
  }
}

/* Indent JSON without reading its values: numbers keep all their digits. */
function indented(line) {
  let text = "";
  let depth = 0;
  const tokens = line.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^"{}[\],:\s]+|"/g) ?? [];
  const newLine = () => `\n${"  ".repeat(Math.min(depth, 40))}`;
  tokens.forEach((token, place) => {
    const next = tokens[place + 1];
    if (token === "{" || token === "[") {
      depth += 1;
      text += token + (next === "}" || next === "]" ? "" : newLine());
    } else if (token === "}" || token === "]") {
      depth = Math.max(0, depth - 1);
      const before = tokens[place - 1];
      text += (before === "{" || before === "[" ? "" : newLine()) + token;
    } else if (token === ",") text += token + newLine();
    else if (token === ":") text += ": ";
    else text += token;
  });
  return text;
}

function traceOf(line) {
  try {
    const trace = JSON.parse(line).error_trace;
    return typeof trace === "string" ? trace : "";
  } catch {
    return "";
  }
}

function closeDetails() {
  const key = state.chosen;
  state.chosen = null;
  byId("details").hidden = true;
  refit();
  if (key) goTo(state.focused ?? key);
}

function showTip(element) {
  const thing = item(element.dataset.key);
  const at = thing.start ?? Number(element.dataset.at);
  const lane = state.run.lanes[thing.lane];
  const node = state.run.lanes[lane.node];
  const names = lane === node ? [node.name] : [node.name, lane.name];
  if (thing.attempt !== null) names.push(`attempt ${thing.attempt}`);
  tip.textContent = `${element.getAttribute("aria-label")}\n${names.join(", ")}\n${placeText(at)}`;
  tip.hidden = false;
  const box = element.getBoundingClientRect();
  const left = Math.min(Math.max(4, box.left), innerWidth - tip.offsetWidth - 4);
  const below = box.bottom + 6;
  const fits = below + tip.offsetHeight < innerHeight;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${fits ? below : Math.max(4, box.top - tip.offsetHeight - 6)}px`;
}

function hideTip() {
  tip.hidden = true;
}
