/** Trades between levels or single cells at constant epsilon: a handle, what every level gets and loses, and the proof. */

import { ask, failure } from "../ask/api.js";
import { LatestQuestion } from "../ask/latest.js";
import { asked } from "../ask/questions.js";
import { byId, headAndBody, listen, make, setText } from "../dom.js";
import { levelNames } from "../state/design.js";
import { change, counted } from "../state/format.js";

const REST = 150; // ms without a move of the handle
const SIDES = ["take", "give"];

export class Trade {
  #question = new LatestQuestion();
  #resting = null;
  #found = null;

  /** `held()` is the epsilon that is locked, or null for the design's own. */
  constructor(store, held) {
    Object.assign(this, { store, held });
    const ask = () => this.#move();
    listen("input", { "trade-share": ask });
    const choose = (side) => () => {
      this.#showQueries(side);
      this.#move();
    };
    listen("change", { "trade-take": choose("take"), "trade-give": choose("give") });
    listen("change", { "trade-take-query": ask, "trade-give-query": ask });
    listen("click", { "trade-use": () => this.#use() });
  }

  /** Another design: its levels, and no trade yet. */
  update({ design }) {
    const names = levelNames(design);
    const chosen = { "trade-take": names.length > 2 ? names[2] : names[0], "trade-give": names.at(-1) };
    for (const [id, first] of Object.entries(chosen)) {
      const select = byId(id);
      if ([...select.options].map(({ value }) => value).join("\n") === names.join("\n")) continue;
      select.replaceChildren(...names.map((name) => new Option(name, name)));
      select.value = first;
    }
    SIDES.forEach((side) => this.#showQueries(side));
    this.#drop("Move the handle: the other side gets what keeps the ε of the whole release where it is.");
    byId("trade-share").value = "0";
    setText(byId("trade-percent"), "0%");
  }

  /** The queries of the level chosen on one side; what was chosen stays where the level has it. */
  #showQueries(side) {
    const select = byId(`trade-${side}-query`);
    const level = this.store.state.design.levels.find(({ name }) => name === byId(`trade-${side}`).value);
    const names = level.queries.filter(({ rho }) => rho !== "").map(({ name }) => name);
    const before = select.value;
    if ([...select.options].map(({ value }) => value).join("\n") === ["", ...names].join("\n")) return;
    select.replaceChildren(new Option("every query", ""), ...names.map((name) => new Option(name, name)));
    select.value = names.includes(before) ? before : "";
  }

  #drop(sentence) {
    clearTimeout(this.#resting);
    this.#found = null;
    byId("trade-use").disabled = true;
    byId("trade-margins").replaceChildren();
    setText(byId("trade-statement"), sentence);
  }

  #move() {
    const share = Number(byId("trade-share").value);
    setText(byId("trade-percent"), `${share}%`);
    const [take, give] = SIDES.map((side) => byId(`trade-${side}`).value);
    const [from, to] = SIDES.map((side) => byId(`trade-${side}-query`).value || null);
    if (!share) return this.#drop("Move the handle to take a share of the budget of the first level or cell.");
    if (take === give && (from === to || from === null || to === null))
      return this.#drop("Choose two different levels, or two cells.");
    this.#drop("Being worked out.");
    const trade = { take, take_query: from, give, give_query: to, share: `${share}/100` };
    this.#resting = setTimeout(() => this.#ask(trade), REST);
  }

  #ask(trade) {
    const { design, ask: asks } = this.store.state;
    const question = { design: asked(design), delta: asks.delta, epsilon: this.held(), ...trade };
    this.#question.put(async (signal) => {
      try {
        const found = await ask("/trade", question, signal);
        if (this.store.state.design !== design) return;
        this.#found = found;
        this.#show(found);
      } catch (error) {
        const problem = failure(error);
        if (problem) this.#drop(problem.message);
      }
    });
  }

  #show({ statement, levels, cells }) {
    setText(byId("trade-statement"), statement);
    const rows = [...cells, ...levels].map(({ level, query, before, after }) => ({
      names: [query === undefined ? level : `${query}, ${level}`],
      cells: [
        `±${counted(before)}`,
        `±${counted(after)}`,
        before === after ? "the same" : change(before, after),
      ],
    }));
    const table = make(
      "table",
      { className: "side-by-side" },
      make("caption", {}, "Largest 95% margin of a count"),
      ...headAndBody([cells.length ? "Cell, then level" : "Level", "now", "after", "change"], rows),
    );
    byId("trade-margins").replaceChildren(table);
    byId("trade-use").disabled = false;
  }

  #use() {
    if (!this.#found) return;
    const { design } = this.#found;
    this.store.change({ ...this.store.state, design }, { cause: "trade" });
  }
}
