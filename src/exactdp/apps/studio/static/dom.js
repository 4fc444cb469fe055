/** Short ways to make elements. */

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

/** Set a text only where it differs, so that nothing is painted or announced without need. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
