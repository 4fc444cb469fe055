/** The legend of a line chart: every name is a button that hides its curve. */

import { make } from "../dom.js";
import { element, marker } from "./svg.js";

export const MARKERS = {
  exact: null,
  pair: null,
  optimal: "square",
  simple: "triangle",
  gaussian: "diamond",
  kept: "circle",
};

export class Legend {
  off = new Set();
  #shown = null;

  /** `changed()` is called when a curve is hidden or shown again. */
  constructor(changed) {
    this.changed = changed;
    this.list = make("ul", { className: "legend" });
  }

  update(series) {
    const shown = series.map(({ id, name }) => id + name).join();
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.list.replaceChildren(...series.map((one) => make("li", {}, this.#button(one))));
  }

  /** The line that stands beside a name. */
  sample(id) {
    return this.list.querySelector(`[data-series="${id}"] path`);
  }

  /** The marker on it, if it has one. */
  marks(id) {
    return this.list.querySelector(`[data-series="${id}"] .marker`);
  }

  #button({ id, name }) {
    const sample = element("svg", { viewBox: "0 0 22 10", "aria-hidden": "true" });
    sample.append(element("path", { d: "M1 5H21", class: `line ${id}` }));
    if (MARKERS[id]) sample.append(element("path", { d: marker(MARKERS[id], 11, 5), class: `marker ${id}` }));
    const press = () => button.setAttribute("aria-pressed", String(!this.off.has(id)));
    const onclick = () => {
      if (!this.off.delete(id)) this.off.add(id);
      press();
      this.changed();
    };
    const button = make("button", { type: "button", data: { series: id }, onclick }, sample, name);
    press();
    return button;
  }
}
