/** Short ways to make, find and measure what is on the page. */

export const byId = (id) => document.getElementById(id);

/** An element with properties (`data` for data-*, `aria` for aria-*) and children; texts are never read as HTML. */
export function make(tag, { data = {}, aria = {}, ...properties } = {}, ...children) {
  const node = document.createElement(tag);
  Object.assign(node, properties);
  Object.assign(node.dataset, data);
  for (const [name, value] of Object.entries(aria)) node.setAttribute(`aria-${name}`, value);
  node.append(...children);
  return node;
}

/** The parts of a <dl>: terms, each with what is said of it. */
export function terms(rows) {
  return rows.flatMap(([name, ...said]) => [make("dt", {}, name), make("dd", {}, ...said)]);
}

/** The head and the body of a table; each row has its names (row headers) and its cells. */
export function headAndBody(heads, rows) {
  const row = ({ names, cells }) =>
    make("tr", {}, ...names.map((name) => make("th", { scope: "row" }, name)), ...cells.map((x) => make("td", {}, x)));
  const head = make("tr", {}, ...heads.map((name) => make("th", { scope: "col" }, name)));
  return [make("thead", {}, head), make("tbody", {}, ...rows.map(row))];
}

/** Set a text only where it differs, so that nothing is painted or announced without need. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Run the act of each id when its element reports an event of this kind. */
export function listen(kind, acts) {
  for (const [id, act] of Object.entries(acts)) byId(id).addEventListener(kind, act);
}

/** Measure the milliseconds from `start` until what was just drawn is painted. */
export function measure(name, start, then = () => {}) {
  const end = () => then(performance.measure(name, { start, end: performance.now() }).duration);
  requestAnimationFrame(() => setTimeout(end));
}
