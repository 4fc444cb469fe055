/** Noise by level: each query a dot, each level the bar that spans its queries, on a logarithmic axis. */

import { make } from "../dom.js";
import { counted } from "../state/format.js";
import { about } from "../state/numerals.js";
import { linear, roundTicks } from "./axes.js";
import { Numbers } from "./numbers.js";
import { Size } from "./size.js";
import { element, redraw, set, shape } from "./svg.js";

const MARGIN = { top: 2, right: 92, bottom: 36, left: 128 };
const NAMES = { margin95: "95% margin of error of a count", standard_error: "Standard error of a count" };
const LONGEST_NAME = 20;
const WIDEST_ROW = 44;

export class NoiseChart {
  constructor(host) {
    this.drawing = element("svg", { role: "img", "aria-label": "No noise yet" });
    this.plot = make("div", { className: "plot noise" }, this.drawing);
    this.numbers = new Numbers("Noise by level and query, as a table", () => this.#tableRows());
    host.append(this.plot, this.numbers.frame);
    this.noise = null;
    this.kept = null;
    this.measure = "margin95";
    this.size = new Size(this.plot, () => this.#draw());
  }

  /** Draw the levels of one path; `kept` is the same of scenario A, or null. */
  update(noise, kept) {
    Object.assign(this, { noise, kept });
    this.#draw();
    this.numbers.update();
  }

  get legendItems() {
    return [{ name: NAMES[this.measure], sample: null }];
  }

  #draw() {
    const { width, height } = this.size;
    if (!this.noise || !this.size.isEnough) return;
    const rows = this.noise.levels;
    const before = new Map((this.kept?.levels ?? []).map((level) => [level.level, level]));
    const all = [...rows, ...before.values()].flatMap((level) => this.#values(level));
    const logs = all.filter((value) => value > 0).map(Math.log10); // a margin may be 0: it stands at the left edge
    const [low, high] = logs.length ? [Math.min(...logs), Math.max(...logs)] : [0, 0];
    const pad = Math.max(0.08, (high - low) * 0.06);
    const onAxis = linear(low - pad, high + pad, MARGIN.left, width - MARGIN.right);
    const toX = (log) => onAxis(Math.max(log, low - pad));
    const bottom = height - MARGIN.bottom;
    const step = Math.min(WIDEST_ROW, (bottom - MARGIN.top) / rows.length);
    const above = (bottom - MARGIN.top - step * rows.length) / 2;
    set(this.drawing, { viewBox: `0 0 ${width} ${height}`, "aria-label": this.#inWords() });
    let lines = "";
    const ticks = logTicks(low - pad, high + pad, (width - MARGIN.left - MARGIN.right) / 38).map((value) => {
      const x = toX(Math.log10(value)).toFixed(1);
      lines += `M${x} ${MARGIN.top}V${bottom}`;
      return shape("text", { class: "tick middle", x, y: bottom + 15 }, counted(value));
    });
    const axis = [
      shape("path", { class: "axis", d: `M${MARGIN.left} ${bottom}H${width - MARGIN.right}` }),
      shape("path", { class: "gridline", d: lines }),
      shape("g", {}, ...ticks),
      shape(
        "text",
        { class: "axis-title middle", x: (MARGIN.left + width - MARGIN.right) / 2, y: height - 6 },
        `± ${NAMES[this.measure].replace(/^[S9]/, (c) => c.toLowerCase())}`.replace("± standard", "Standard"),
      ),
    ];
    const drawn = rows.map((level, i) => {
      const y = MARGIN.top + above + step * (i + 0.5);
      const previous = before.get(level.level);
      const kept = previous ? this.#level(previous, toX, y + Math.min(5, step / 4), "kept") : [];
      const name = level.level.length > LONGEST_NAME ? `${level.level.slice(0, LONGEST_NAME - 1)}…` : level.level;
      const full = shape("title", {}, level.level);
      const values = range(this.#values(level));
      return shape(
        "g",
        {},
        ...kept,
        ...this.#level(level, toX, y - (previous ? Math.min(3, step / 6) : 0), "exact"),
        shape("text", { class: "tick end name", x: MARGIN.left - 10, y: y + 4 }, name, full),
        shape("text", { class: "tick start value", x: width - MARGIN.right + 10, y: y + 4 }, values),
      );
    });
    redraw(this.drawing, [...axis, ...drawn]);
  }

  #level(level, toX, y, kind) {
    const counts = new Map();
    for (const value of this.#values(level)) counts.set(value, (counts.get(value) ?? 0) + 1);
    const places = [...counts.keys()].map((value) => toX(Math.log10(value)));
    const span = `M${Math.min(...places).toFixed(1)} ${y.toFixed(1)}H${Math.max(...places).toFixed(1)}`;
    const dots = [...counts].map(([value, count]) =>
      shape(
        "circle",
        {
          class: `dot ${kind}`,
          cx: toX(Math.log10(value)).toFixed(1),
          cy: y.toFixed(1),
          r: Math.min(6, 3 + Math.sqrt(count - 1)).toFixed(1),
        },
        shape("title", {}, `${level.level}: ${count} ${count === 1 ? "query" : "queries"} at ${sized(value, 5)}`),
      ),
    );
    return [shape("path", { class: `span ${kind}`, d: span }), ...dots];
  }

  #values(level) {
    return level.queries.map((query) => query[this.measure]);
  }

  #inWords() {
    const levels = this.noise.levels.map((level) => `${level.level} ${range(this.#values(level))}`);
    return `${NAMES[this.measure]}: ${levels.join("; ")}`;
  }

  #tableRows() {
    const rows = (this.noise?.levels ?? []).flatMap(({ level, queries }) =>
      queries.map(({ query, rho, sigma2, standard_error: error, margin95 }) => ({
        names: [level, query],
        cells: [rho, sigma2, about(error, 6), String(margin95)],
      })),
    );
    return { heads: ["Level", "Query", "ρ", "σ²", "Standard error", "95% margin"], rows };
  }
}

/** Margins are whole numbers and shown as they are, standard errors to so many digits. */
const sized = (value, digits) => (Number.isInteger(value) ? counted(value) : about(value, digits));

/** From the least to the largest. */
function range(values) {
  const [low, high] = [sized(Math.min(...values), 3), sized(Math.max(...values), 3)];
  return low === high ? low : `${low} – ${high}`;
}

/** 1, 2, 5 times powers of ten inside the range; fewer where there is no room. */
function logTicks(low, high, room) {
  for (const steps of [[1, 2, 5], [1, 3], [1]]) {
    const found = [];
    for (let exponent = Math.floor(low); exponent <= high; exponent += 1) {
      for (const step of steps) {
        const value = step * 10 ** exponent;
        if (Math.log10(value) >= low && Math.log10(value) <= high) found.push(Number(value.toPrecision(3)));
      }
    }
    if (found.length < 2) return roundTicks(10 ** low, 10 ** high, Math.min(5, room)).filter((value) => value > 0);
    if (found.length <= room || steps.length === 1) return found;
  }
  return [];
}
