/** Drawing in SVG. */

export const NAMESPACE = "http://www.w3.org/2000/svg";

/** What is to be drawn: an element with attributes, and children (texts, or more of this kind). */
export const shape = (tag, attributes = {}, ...children) => ({ tag, attributes, children });

/** An SVG element with attributes and children. */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElementNS(NAMESPACE, tag);
  for (const name in attributes) node.setAttribute(name, attributes[name]);
  node.append(...children);
  return node;
}

/** Set attributes where they differ: to set a viewBox again would lay out every text of the drawing anew. */
export function set(node, attributes) {
  for (const name in attributes) {
    const value = String(attributes[name]);
    if (node.getAttribute(name) !== value) node.setAttribute(name, value);
  }
}

const drawn = new WeakMap(); // the shape that each node was drawn from

/** Let the children of a node be these shapes. What is there already stays, so that the browser paints only what differs. */
export function redraw(parent, shapes) {
  let node = parent.firstChild;
  for (const one of shapes) {
    const next = node?.nextSibling ?? null;
    if (!node) parent.append(fresh(one));
    else if (!altered(node, one)) node.replaceWith(fresh(one));
    node = next;
  }
  while (node) {
    const next = node.nextSibling;
    node.remove();
    node = next;
  }
}

function fresh(one) {
  if (typeof one === "string") return document.createTextNode(one);
  const node = element(one.tag, one.attributes, ...one.children.map(fresh));
  drawn.set(node, one);
  return node;
}

/** Make a node what a shape says, if it is of that kind; else false. */
function altered(node, one) {
  if (typeof one === "string") {
    if (node.nodeType !== Node.TEXT_NODE) return false;
    if (node.data !== one) node.data = one;
    return true;
  }
  const before = drawn.get(node);
  if (before?.tag !== one.tag) return false;
  for (const name in one.attributes)
    if (one.attributes[name] !== before.attributes[name]) node.setAttribute(name, one.attributes[name]);
  for (const name in before.attributes) if (!(name in one.attributes)) node.removeAttribute(name);
  if (one.children.length || before.children.length) redraw(node, one.children);
  drawn.set(node, one);
  return true;
}

/** "M x y L x y ..." through the points that are finite; gaps where they are not. */
export function path(points) {
  let text = "";
  let pen = "M";
  for (const [x, y] of points) {
    if (!Number.isFinite(x) || !Number.isFinite(y)) {
      pen = "M";
      continue;
    }
    text += `${pen}${x.toFixed(1)} ${y.toFixed(1)}`;
    pen = "L";
  }
  return text;
}

/** The outline of a small marker around a point. */
export function marker(shape, x, y, r = 3.2) {
  const [left, right, up, down] = [x - r, x + r, y - r, y + r].map((v) => v.toFixed(1));
  if (shape === "square") return `M${left} ${up}H${right}V${down}H${left}Z`;
  if (shape === "triangle") return `M${x.toFixed(1)} ${up}L${right} ${down}H${left}Z`;
  if (shape === "diamond")
    return `M${x.toFixed(1)} ${up}L${right} ${y.toFixed(1)}L${x.toFixed(1)} ${down}L${left} ${y.toFixed(1)}Z`;
  return `M${left} ${y.toFixed(1)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`;
}
