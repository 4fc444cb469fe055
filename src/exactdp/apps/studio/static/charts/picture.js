/** Saving what was drawn as SVG or PNG, with its colours written into it. */

import { element, NAMESPACE } from "./svg.js";

const STROKES = ["stroke", "stroke-opacity", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin"];
const FONTS = ["font-family", "font-size", "font-weight", "text-anchor"];
const STYLES = ["fill", "fill-opacity", ...STROKES, "opacity", ...FONTS];
const LEGEND_LINE = 20;

/** The drawing as the text of an SVG file: title, legend and background included, no style sheet needed. */
export function standalone(drawing, title, legend) {
  const { width, height } = drawing.viewBox.baseVal;
  const copy = drawing.cloneNode(true);
  const originals = [drawing, ...drawing.querySelectorAll("*")];
  const copies = [copy, ...copy.querySelectorAll("*")];
  originals.forEach((original, i) => {
    const computed = getComputedStyle(original);
    copies[i].removeAttribute("class");
    for (const name of STYLES) copies[i].setAttribute(name, computed.getPropertyValue(name));
  });
  for (const left of copy.querySelectorAll("[data-cursor]")) left.remove();
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => resolved(style.getPropertyValue(name));
  const above = 30 + LEGEND_LINE * Math.ceil(legend.length / 3);
  const sheet = element("svg", {
    xmlns: NAMESPACE,
    width,
    height: height + above + 8,
    viewBox: `0 0 ${width} ${height + above + 8}`,
  });
  sheet.append(element("title", {}, title));
  sheet.append(element("rect", { width: "100%", height: "100%", fill: colour("--surface") }));
  const words = { "font-family": style.getPropertyValue("--sans").replaceAll('"', "'"), fill: colour("--text") };
  sheet.append(element("text", { ...words, x: 14, y: 20, "font-size": 13, "font-weight": 600 }, title));
  legend.forEach(({ name, sample, marks }, i) => {
    const [x, y] = [14 + (i % 3) * ((width - 20) / 3), 40 + LEGEND_LINE * Math.floor(i / 3)];
    const look = sample ? getComputedStyle(sample) : null;
    if (look)
      sheet.append(
        element("path", {
          d: `M${x} ${y - 4}h22`,
          fill: "none",
          stroke: look.stroke,
          "stroke-width": look.strokeWidth,
          "stroke-dasharray": look.strokeDasharray,
        }),
      );
    if (marks) {
      const { fill, stroke, strokeWidth } = getComputedStyle(marks);
      const looks = { d: marks.getAttribute("d"), fill, stroke, "stroke-width": strokeWidth };
      sheet.append(element("path", { ...looks, transform: `translate(${x} ${y - 9})` }));
    }
    sheet.append(element("text", { ...words, x: x + 28, y, "font-size": 11 }, name));
  });
  const inner = element("g", { transform: `translate(0 ${above})` });
  inner.append(...copy.childNodes);
  sheet.append(inner);
  return new XMLSerializer().serializeToString(sheet);
}

/** A colour that a style sheet names, as rgb(). */
function resolved(value) {
  const probe = document.createElement("i");
  probe.style.color = value;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

/** The same drawing as a PNG of twice its size on screen. */
export async function toPng(text) {
  const image = new Image();
  const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  try {
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = image.naturalWidth * 2;
    canvas.height = image.naturalHeight * 2;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) =>
      canvas.toBlob(
        (blob) => (blob ? resolve(blob) : reject(new Error("The picture could not be drawn. Save it as SVG."))),
        "image/png",
      ),
    );
  } finally {
    URL.revokeObjectURL(address);
  }
}
