/** Privacy against accuracy: the line of one design scaled up and down, and a dot for each scenario. */

import { make } from "../dom.js";
import { about } from "../state/numerals.js";
import { linear, roundTicks } from "./axes.js";
import { Numbers } from "./numbers.js";
import { Size } from "./size.js";
import { element, path } from "./svg.js";

const MARGIN = { top: 14, right: 90, bottom: 40, left: 58 };

export class FrontierChart {
  constructor(host) {
    this.drawing = element("svg", { role: "img", "aria-label": "No frontier yet" });
    this.plot = make("div", { className: "plot frontier" }, this.drawing);
    this.numbers = new Numbers("Frontier, as a table", () => this.#tableRows());
    host.append(this.plot, this.numbers.frame);
    Object.assign(this, { line: [], dots: [], level: "" });
    this.size = new Size(this.plot, () => this.#draw());
  }

  /** `line` and `dots` have points { name, epsilon, margin }; `level` is whose margin it is. */
  update(level, line, dots) {
    Object.assign(this, { level, line, dots });
    this.#draw();
    this.numbers.update();
  }

  get legendItems() {
    return [{ name: `95% margin at ${this.level} against ε`, sample: null }];
  }

  #draw() {
    const { width, height } = this.size;
    const all = [...this.line, ...this.dots];
    if (!this.size.isEnough || !all.length) return;
    const bottom = height - MARGIN.bottom;
    const range = (key) => {
      const values = all.map((point) => point[key]);
      const [low, high] = [Math.min(...values), Math.max(...values)];
      const pad = (high - low || high || 1) * 0.08;
      return [Math.max(0, low - pad), high + pad];
    };
    const toX = linear(...range("epsilon"), MARGIN.left, width - MARGIN.right);
    const toY = linear(...range("margin"), bottom, MARGIN.top);
    this.drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.drawing.setAttribute(
      "aria-label",
      `95% margin at ${this.level} against epsilon: ${all.map(({ name, epsilon, margin }) => `${name} ${about(epsilon, 5)}, ±${margin}`).join("; ")}`,
    );
    const nodes = [
      element("path", { class: "axis", d: `M${MARGIN.left} ${MARGIN.top}V${bottom}H${width - MARGIN.right}` }),
    ];
    for (const tick of roundTicks(...range("epsilon"), width / 110)) {
      const x = toX(tick).toFixed(1);
      nodes.push(
        element("path", { class: "gridline", d: `M${x} ${MARGIN.top}V${bottom}` }),
        element("text", { class: "tick middle", x, y: bottom + 16 }, String(tick)),
      );
    }
    for (const tick of roundTicks(...range("margin"), 5)) {
      const y = toY(tick);
      nodes.push(
        element("path", { class: "gridline", d: `M${MARGIN.left} ${y.toFixed(1)}H${width - MARGIN.right}` }),
        element("text", { class: "tick end", x: MARGIN.left - 7, y: y + 4 }, `±${tick}`),
      );
    }
    nodes.push(
      element(
        "text",
        { class: "axis-title middle", x: (MARGIN.left + width - MARGIN.right) / 2, y: height - 6 },
        "ε of the whole release",
      ),
      element("path", {
        class: "line exact",
        d: path(this.line.map(({ epsilon, margin }) => [toX(epsilon), toY(margin)])),
      }),
    );
    for (const { name, epsilon, margin } of this.line)
      nodes.push(this.#dot(toX(epsilon), toY(margin), "exact", `${name}: ε ${about(epsilon, 5)}, ±${margin}`));
    for (const { name, epsilon, margin } of this.dots) {
      const [x, y] = [toX(epsilon), toY(margin)];
      nodes.push(
        this.#dot(x, y, "kept", `${name}: ε ${about(epsilon, 5)}, ±${margin}`),
        element("text", { class: "tick start name", x: x + 9, y: y - 6 }, name),
      );
    }
    this.drawing.replaceChildren(...nodes);
  }

  #dot(x, y, kind, title) {
    return element(
      "circle",
      { class: `dot ${kind}`, cx: x.toFixed(1), cy: y.toFixed(1), r: kind === "kept" ? 6 : 4 },
      element("title", {}, title),
    );
  }

  #tableRows() {
    const rows = [...this.line, ...this.dots].map(({ name, epsilon, margin }) => ({
      names: [name],
      cells: [about(epsilon, 8), `±${margin}`],
    }));
    return { heads: ["Design", "ε, about", `95% margin at ${this.level}`], rows };
  }
}
