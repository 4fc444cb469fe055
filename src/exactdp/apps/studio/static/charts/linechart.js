/** A line chart that is redrawn in a millisecond, read by pointer, by keyboard and as a table. */

import { make } from "../dom.js";
import { powerOfTen } from "../state/format.js";
import { actOf } from "../state/shortcuts.js";
import { exponentTicks, linear, roundTicks } from "./axes.js";
import { Legend, MARKERS } from "./legend.js";
import { Numbers } from "./numbers.js";
import { Size } from "./size.js";
import { element, marker, path, redraw, set, shape } from "./svg.js";

const MARGIN = { top: 10, right: 14, bottom: 40, left: 54 };
const MARKS_ALONG = 7;

export class LineChart {
  /**
   * `axes.x` and `axes.y` have a title, a symbol, the text of a value, and `log` where values are base-10 logarithms.
   */
  constructor(host, label, axes) {
    this.axes = axes;
    this.series = [];
    this.cursor = null;
    this.legend = new Legend(() => this.#draw());
    this.plot = make("div", { className: "plot" });
    this.drawing = element("svg", {
      role: "slider",
      tabindex: 0,
      "aria-label": label,
      "aria-valuemin": 0,
      "aria-valuemax": 0,
      "aria-valuenow": 0,
      "aria-valuetext": "No curve yet",
    });
    this.tip = make("div", { className: "tip", hidden: true });
    this.plot.append(this.drawing, this.tip);
    this.numbers = new Numbers(`${label}, as a table`, () => this.#tableRows());
    host.append(this.legend.list, this.plot, this.numbers.frame);
    this.layers = Object.fromEntries(
      ["grid", "marks", "lines", "cursor"].map((name) => [name, element("g", { class: name })]),
    );
    this.layers.cursor.setAttribute("data-cursor", "");
    this.frame = element("rect");
    const id = `inside-${host.id}`;
    this.layers.lines.setAttribute("clip-path", `url(#${id})`);
    this.drawing.append(element("clipPath", { id }, this.frame));
    this.drawing.append(...Object.values(this.layers));
    this.#listen();
  }

  /** Draw the series; each has an id, a name and the arrays x and y. `marks` are points worth a dotted cross. */
  update(series, marks = []) {
    this.series = series;
    this.marks = marks;
    this.legend.update(series);
    this.#draw();
    this.numbers.update();
  }

  /** Names and line samples, for the legend of a saved picture. */
  get legendItems() {
    return this.#visible().map(({ id, name }) => ({
      name,
      sample: this.legend.sample(id),
      marks: this.legend.marks(id),
    }));
  }

  #visible() {
    return this.series.filter(({ id }) => !this.legend.off.has(id));
  }

  #listen() {
    this.size = new Size(this.plot, () => this.series.length && this.#draw());
    this.drawing.addEventListener("pointermove", (event) => {
      const box = this.drawing.getBoundingClientRect();
      this.#pointAt(this.#nearest(this.toX?.back(event.clientX - box.left)));
    });
    this.drawing.addEventListener("pointerleave", () => document.activeElement !== this.drawing && this.#pointAt(null));
    this.drawing.addEventListener("focus", () =>
      this.#pointAt(this.cursor ?? Math.floor((this.series[0]?.x.length ?? 0) / 2)),
    );
    this.drawing.addEventListener("blur", () => this.#pointAt(null));
    this.drawing.addEventListener("keydown", (event) => {
      const last = (this.series[0]?.x.length ?? 1) - 1;
      const at = this.cursor ?? 0;
      const places = { back: at - 1, on: at + 1, "far back": at - 10, "far on": at + 10, first: 0, last };
      const to = places[actOf(event, "chart")];
      if (to === undefined) return;
      event.preventDefault();
      this.#pointAt(Math.max(0, Math.min(last, to)));
    });
  }

  #draw() {
    const { width, height } = this.size;
    if (!this.size.isEnough) return;
    const all = this.#visible();
    const xs = all.flatMap(({ x }) => x).filter(Number.isFinite);
    const ys = all.flatMap(({ y }) => y).filter(Number.isFinite);
    if (!xs.length || !ys.length) return;
    set(this.drawing, { viewBox: `0 0 ${width} ${height}` });
    const across = Math.max(3, Math.floor(width / 90));
    const up = Math.max(3, Math.floor((height - 50) / 34));
    const [x, y] = [this.#range("x", xs), this.#range("y", ys)];
    this.toX = linear(...x, MARGIN.left, width - MARGIN.right);
    this.toY = linear(...y, height - MARGIN.bottom, MARGIN.top);
    set(this.frame, {
      x: MARGIN.left - 4,
      y: MARGIN.top - 4,
      width: width - MARGIN.left - MARGIN.right + 8,
      height: height - MARGIN.top - MARGIN.bottom + 8,
    });
    this.#drawGrid(width, height, this.#ticks("x", x, across), this.#ticks("y", y, up));
    this.#drawMarks(height);
    redraw(this.layers.lines, all.flatMap((one) => this.#line(one)).reverse());
    set(this.drawing, { "aria-valuemax": Math.max(0, (this.series[0]?.x.length ?? 1) - 1) });
    this.#describe(Math.min(this.cursor ?? Math.floor(this.series[0].x.length / 2), this.series[0].x.length - 1));
    if (this.cursor !== null) this.#pointAt(Math.min(this.cursor, this.series[0].x.length - 1));
  }

  /** From the least to the largest value; whole decades on a logarithmic axis. */
  #range(axis, values) {
    const { log, range, deepest = -Infinity } = this.axes[axis];
    if (range) return range;
    const [least, high] = values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
    const low = Math.max(least, deepest);
    return log ? [Math.floor(low), Math.max(Math.ceil(high), Math.floor(low) + 1)] : [low, high];
  }

  #ticks(axis, [low, high], count) {
    return this.axes[axis].log ? exponentTicks(low, high, count) : roundTicks(low, high, count);
  }

  #drawGrid(width, height, xTicks, yTicks) {
    const [bottom, left, right] = [height - MARGIN.bottom, MARGIN.left, width - MARGIN.right];
    const label = (axis, tick) => (this.axes[axis].log ? powerOfTen(tick) : String(tick));
    let lines = "";
    const upward = yTicks.map((tick) => {
      const y = this.toY(tick).toFixed(1);
      lines += `M${left} ${y}H${right}`;
      return shape("text", { class: "tick end", x: left - 7, y: Number(y) + 4 }, label("y", tick));
    });
    const across = xTicks.map((tick) => {
      const x = this.toX(tick).toFixed(1);
      lines += `M${x} ${MARGIN.top}V${bottom}`;
      return shape("text", { class: "tick middle", x, y: bottom + 16 }, label("x", tick));
    });
    const [below, beside] = [
      { x: (left + right) / 2, y: height - 6 },
      { transform: `translate(13 ${(MARGIN.top + bottom) / 2}) rotate(-90)` },
    ];
    redraw(this.layers.grid, [
      shape("path", { class: "gridline", d: lines }),
      shape("g", {}, ...upward),
      shape("g", {}, ...across),
      shape("path", { class: "axis", d: `M${left} ${MARGIN.top}V${bottom}H${right}` }),
      shape("text", { class: "axis-title middle", ...below }, this.axes.x.title),
      shape("text", { class: "axis-title middle", ...beside }, this.axes.y.title),
    ]);
  }

  #drawMarks(height) {
    const nodes = [];
    for (const { x, y } of this.marks) {
      if (!Number.isFinite(x) || !Number.isFinite(y)) continue;
      const [px, py] = [this.toX(x), this.toY(y)];
      if (py < 0 || py > height - MARGIN.bottom + 1 || px < MARGIN.left - 1) continue;
      nodes.push(
        shape("path", {
          class: "cross",
          d: `M${MARGIN.left} ${py.toFixed(1)}H${px.toFixed(1)}V${height - MARGIN.bottom}`,
        }),
      );
      nodes.push(shape("circle", { class: "mark", cx: px.toFixed(1), cy: py.toFixed(1), r: 4 }));
    }
    redraw(this.layers.marks, nodes);
  }

  #line({ id, drawn }) {
    const kind = MARKERS[id];
    const through = drawn.map(([atX, atY]) => [this.toX(atX), this.toY(atY)]);
    const nodes = [shape("path", { class: `line ${id}`, d: path(through) })];
    if (kind) {
      const some = this.#evenly(through);
      nodes.unshift(
        shape("path", { class: `marker ${id}`, d: some.map(([px, py]) => marker(kind, px, py)).join("") }),
      );
    }
    return nodes;
  }

  /** Points of a line at fixed places along the axis, where markers stay when the numbers change. */
  #evenly(points) {
    const [left, right] = [MARGIN.left, this.size.width - MARGIN.right];
    const places = Array.from({ length: MARKS_ALONG }, (_, k) => left + ((k + 0.5) * (right - left)) / MARKS_ALONG);
    return places.flatMap((at) => {
      const i = points.findIndex(
        ([x], j) => j > 0 && (points[j - 1][0] - at) * (x - at) <= 0 && x !== points[j - 1][0],
      );
      if (i < 0) return [];
      const [[x0, y0], [x1, y1]] = [points[i - 1], points[i]];
      return [[at, y0 + ((y1 - y0) * (at - x0)) / (x1 - x0)]];
    });
  }

  #nearest(value) {
    const xs = this.series[0]?.x ?? [];
    if (!xs.length || value === undefined) return null;
    return xs.reduce((best, x, i) => (Math.abs(x - value) < Math.abs(xs[best] - value) ? i : best), 0);
  }

  #readings(index) {
    const at = this.series[0].x[index];
    return this.#visible().map((one) => {
      const exact = one.x.indexOf(at);
      const y = exact >= 0 ? one.y[exact] : between(one, at);
      return { ...one, at: y, text: y === null ? "–" : this.axes.y.text(y) };
    });
  }

  #pointAt(index) {
    this.cursor = index;
    if (index === null || !this.series.length || !this.toX) {
      this.tip.hidden = true;
      this.layers.cursor.replaceChildren();
      return;
    }
    const at = this.series[0].x[index];
    const readings = this.#readings(index);
    const x = this.toX(at);
    const { height } = this.size;
    this.layers.cursor.replaceChildren(
      element("path", { class: "cursor-line", d: `M${x.toFixed(1)} ${MARGIN.top}V${height - MARGIN.bottom}` }),
      ...readings
        .filter((r) => Number.isFinite(r.at))
        .map((r) =>
          element("circle", { class: `dot ${r.id}`, cx: x.toFixed(1), cy: this.toY(r.at).toFixed(1), r: 3.6 }),
        ),
    );
    this.#drawTip(at, readings, x);
    this.#describe(index);
  }

  #drawTip(at, readings, x) {
    const rows = readings
      .filter(({ at: y }) => y !== null)
      .map(({ id, name, text }) => make("p", {}, make("i", { className: id }), name, make("span", {}, text)));
    this.tip.replaceChildren(make("b", {}, `${this.axes.x.symbol} = ${this.axes.x.text(at)}`), ...rows);
    this.tip.hidden = false;
    const room = this.size.width - x - 16;
    this.tip.style.left = `${room > this.tip.offsetWidth ? x + 12 : Math.max(0, x - this.tip.offsetWidth - 12)}px`;
    const curve = readings.find(({ at: y }) => y !== null);
    const wanted = (curve ? this.toY(curve.at) : 0) - this.tip.offsetHeight / 2;
    this.tip.style.top = `${Math.max(0, Math.min(this.size.height - this.tip.offsetHeight, wanted))}px`;
  }

  #describe(index) {
    if (!this.series.length || index < 0) return;
    const words = this.#readings(index).map(({ name, text }) => `${name} ${text}`);
    set(this.drawing, {
      "aria-valuenow": index,
      "aria-valuetext": `${this.axes.x.symbol} ${this.axes.x.text(this.series[0].x[index])}: ${words.join("; ")}`,
    });
  }

  #tableRows() {
    const heads = [this.axes.x.title, ...this.#visible().map(({ name }) => name)];
    return {
      heads,
      rows: (this.series[0]?.x ?? []).map((x, i) => ({
        names: [this.axes.x.text(x)],
        cells: this.#readings(i).map(({ text }) => text),
      })),
    };
  }
}

/** What a drawn line shows between two of its points; null beyond its ends. */
function between({ x, y }, at) {
  for (let i = 1; i < x.length; i += 1) {
    if ((x[i - 1] - at) * (x[i] - at) <= 0 && x[i] !== x[i - 1]) {
      const value = y[i - 1] + ((y[i] - y[i - 1]) * (at - x[i - 1])) / (x[i] - x[i - 1]);
      return Number.isFinite(value) ? value : null;
    }
  }
  return null;
}
