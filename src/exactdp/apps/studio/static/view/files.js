/** Files that the browser saves: what is in them, what they are called, pictures of the charts. */

import { standalone, toPng } from "../charts/picture.js";
import { byId, make } from "../dom.js";

/** Offer a text or a blob as a download. */
export function save(content, name, type = "text/plain") {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = make("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** Buttons that show the numbers of a chart and save it as PNG and SVG. */
export function chartButtons(host, chart, title, name) {
  host.append(chart.numbers.button);
  for (const kind of ["PNG", "SVG"]) {
    const onclick = async () => {
      if (!chart.drawing.hasAttribute("viewBox")) return; // nothing is drawn yet
      const text = standalone(chart.drawing, `${title}: ${byId("title").value}`, chart.legendItems);
      if (kind === "SVG") save(text, `${name()}.svg`, "image/svg+xml");
      else save(await toPng(text), `${name()}.png`);
    };
    const words = { title: `Save this chart as ${kind}`, aria: { label: `Save ${title} as ${kind}` } };
    host.append(make("button", { type: "button", className: "small quietly", ...words, onclick }, kind));
  }
}
