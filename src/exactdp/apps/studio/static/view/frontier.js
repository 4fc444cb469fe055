/** The frontier: how the margin of a level and the epsilon of the release go together, and where the scenarios lie. */

import { ask, failure } from "../ask/api.js";
import { LatestQuestion } from "../ask/latest.js";
import { asked } from "../ask/questions.js";
import { FrontierChart } from "../charts/frontier.js";
import { byId, listen } from "../dom.js";
import { levelNames } from "../state/design.js";
import { notify } from "./notices.js";

const FACTORS = ["1/2", "2/3", "4/5", "1", "5/4", "3/2", "2"];
const REST = 600; // ms without an edit

export class Frontier {
  #question = new LatestQuestion();
  #resting = null;
  #rows = [];
  #of = null;

  /** `scenarios` knows the whole releases and the noise of those that were kept. */
  constructor(store, scenarios) {
    Object.assign(this, { store, scenarios });
    this.chart = new FrontierChart(byId("frontier-chart"));
    byId("frontier").addEventListener("toggle", () => this.update());
    listen("change", { "frontier-level": () => this.draw() });
  }

  /** Ask for the line again where the design differs, once the user rests, if the frontier is open. */
  update() {
    const { state } = this.store;
    if (!state) return;
    const names = levelNames(state.design);
    const select = byId("frontier-level");
    if ([...select.options].map(({ value }) => value).join("\n") !== names.join("\n")) {
      select.replaceChildren(...names.map((name) => new Option(name, name)));
      select.value = names.at(-1);
    }
    if (!byId("frontier").open) return;
    const key = JSON.stringify([state.design.levels, state.design.paths, state.ask.delta]);
    if (key === this.#of) return this.draw();
    clearTimeout(this.#resting);
    this.#resting = setTimeout(() => this.#ask(key, state), REST);
  }

  #ask(key, { design, ask: asks }) {
    this.#question.put(async (signal) => {
      try {
        this.#rows = (
          await ask("/frontier", { design: asked(design), delta: asks.delta, factors: FACTORS }, signal)
        ).rows;
        this.#of = key;
        this.draw();
      } catch (error) {
        const problem = failure(error);
        if (problem) notify("error", `Frontier: ${problem.message}`, { key: "frontier", seconds: 12 });
      }
    });
  }

  draw() {
    const level = byId("frontier-level").value;
    const { kept, ask: asks } = this.store.state;
    const line = this.#rows.map(({ factor, epsilon, margins }) => ({
      name: `ρ × ${factor}`,
      epsilon: epsilon.upper,
      margin: margins[level],
    }));
    const dots = kept.flatMap((one) => {
      const { whole, noise } = this.scenarios.known(one, asks);
      const own = noise?.levels.find((found) => found.level === level);
      if (!whole || !own) return [];
      return [
        {
          name: one.name,
          epsilon: whole.epsilon[0].upper,
          margin: Math.max(...own.queries.map(({ margin95 }) => margin95)),
        },
      ];
    });
    this.chart.update(
      level,
      line.filter(({ margin }) => margin !== undefined),
      dots,
    );
  }
}
