/** Drawing in SVG. */

export const NAMESPACE = "http://www.w3.org/2000/svg";

/** An SVG element with attributes and children. */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
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
