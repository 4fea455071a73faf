/* Elements and texts that cannot act on the page. */

function html(name, text = "", attributes = {}) {
  const element = document.createElement(name);
  element.textContent = text;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/* Show what is not seen, and what would turn the text around. */
function visible(text) {
  const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u00a0\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0]/g;
  return text.replace(unseen, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

const counted = (number, thing) => `${number} ${thing}${number === 1 ? "" : "s"}`;

function addPatterns() {
  const paths = { "/": "M0 6 6 0", x: "M0 6 6 0M0 0 6 6", "-": "M0 3H6", ".": "M2 3H4" };
  const patterns = Object.entries(HATCHED).map(([kind, sign]) =>
    svg("pattern", { id: `hatch-${kind}`, width: 6, height: 6, patternUnits: "userSpaceOnUse" },
      svg("path", { d: paths[sign], stroke: "#000", "stroke-opacity": 0.3, "stroke-width": 1.2 })));
  document.body.append(svg("svg", { width: 0, height: 0, class: "unseen", "aria-hidden": true },
    svg("defs", {}, ...patterns)));
}
