/** What the cells of the table show beside budgets: what more budget costs, what it buys, and the margins, as a heat map. */

import { ask, failure } from "../ask/api.js";
import { LatestQuestion } from "../ask/latest.js";
import { asked } from "../ask/questions.js";
import { byId, listen, setText } from "../dom.js";
import { counted } from "../state/format.js";
import { about } from "../state/numerals.js";

const percent = (share) => `~${(100 * share).toPrecision(2).replace(/e.*/, "")}%`;

/** How each view writes a cell, and whether its colour follows the logarithm. */
const VIEWS = {
  cost: { text: ({ cost }) => about(cost, 4), of: ({ cost }) => cost, isLog: false },
  gain: { text: ({ gain }) => percent(gain), of: ({ gain }) => gain, isLog: true },
  margin95: {
    text: ({ margin95 }) => `±${counted(margin95)}`,
    of: ({ margin95 }) => margin95 + 1,
    isLog: true,
  },
};

export class ExchangeView {
  #question = new LatestQuestion();
  #known = null;
  #of = null;

  /** `store` has the design, `table` shows the cells. */
  constructor(store, table) {
    Object.assign(this, { store, table, view: "rho" });
    listen("change", {
      "cell-view": ({ target }) => {
        this.view = target.value;
        this.update();
      },
    });
  }

  /** The design has changed; what is shown of the one before goes, and what is new follows the release. */
  wait() {
    if (this.view !== "rho" && this.#key() !== this.#of) this.#show(undefined);
  }

  #key() {
    const { design, ask: asks } = this.store.state;
    return JSON.stringify([design.levels, design.paths, asks.delta]);
  }

  /** Ask again where the design or delta differ from what is known, and show the view chosen. */
  update() {
    const { design, ask: asks } = this.store.state;
    const key = this.#key();
    if (this.view === "rho") this.#show(null);
    else if (key === this.#of) this.#show(this.#known);
    else this.#ask(key, { design: asked(design), delta: asks.delta });
  }

  #ask(key, question) {
    this.#show(undefined);
    this.#question.put(async (signal) => {
      try {
        this.#known = await ask("/exchange", question, signal);
        this.#of = key;
        if (this.view !== "rho") this.#show(this.#known);
      } catch (error) {
        const problem = failure(error);
        if (problem) this.#note(problem.message);
      }
    });
  }

  /** Cells of an answer; null: budgets again; undefined: none yet. */
  #show(found) {
    byId("view-note").hidden = found === null;
    if (found === null) return this.table.setView(null);
    if (found === undefined) {
      this.table.setView(new Map());
      return this.#note("Being worked out.");
    }
    const { text, of, isLog } = VIEWS[this.view];
    const size = (cell) => (isLog ? Math.log(Math.max(of(cell), 1e-300)) : of(cell));
    const sizes = found.cells.map(size);
    const [low, high] = [Math.min(...sizes), Math.max(...sizes)];
    const heat = (cell) => (high - low > 1e-9 * Math.abs(high) ? (size(cell) - low) / (high - low) : 0.5);
    this.table.setView(
      new Map(found.cells.map((cell) => [`${cell.level}\n${cell.query}`, { text: text(cell), heat: heat(cell) }])),
    );
    this.#note(this.#words(found));
  }

  #note(sentence) {
    setText(byId("view-note"), sentence);
  }

  #words({ cells, pair, delta }) {
    const range = (key) => [Math.min(...cells.map((cell) => cell[key])), Math.max(...cells.map((cell) => cell[key]))];
    if (this.view === "margin95") return "The 95% margin of one count in each cell, on the full path.";
    if (this.view === "cost") {
      const [low, high] = range("cost");
      return `Estimates: ε at δ = ${delta} for 0.01 more ρ in a cell, at the worst pair ${pair.join(" and ")}: ${about(low, 4)} to ${about(high, 4)}.`;
    }
    const best = cells.reduce((a, b) => (b.gain > a.gain ? b : a));
    return `Estimates: by how much the standard error falls if 0.01 more ε is spent in a cell; most at ${best.level}, ${best.query}: ${percent(best.gain)}.`;
  }
}
