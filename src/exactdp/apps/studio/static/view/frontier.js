/** The frontier: how the margin of a level and the epsilon of the release go together, and where the scenarios lie. */

import { ask, failure } from "../ask/api.js";
import { LatestQuestion } from "../ask/latest.js";
import { asked } from "../ask/questions.js";
import { FrontierChart } from "../charts/frontier.js";
import { byId, listen, setText } from "../dom.js";
import { levelNames } from "../state/design.js";

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
    if (key === this.#of) {
      this.#say("");
      return this.draw();
    }
    clearTimeout(this.#resting);
    this.#say("Being worked out.");
    this.#resting = setTimeout(() => this.#ask(key, state), REST);
  }

  #ask(key, { design, ask: asks }) {
    this.#question.put(async (signal) => {
      try {
        this.#rows = (
          await ask("/frontier", { design: asked(design), delta: asks.delta, factors: FACTORS }, signal)
        ).rows;
        this.#of = key;
        this.#say("");
        this.draw();
      } catch (error) {
        const problem = failure(error);
        if (problem) this.#say(problem.message);
      }
    });
  }

  /** What stands beside the choice of a level: how far the account is, or why there is none. */
  #say(sentence) {
    setText(byId("frontier-statement"), sentence);
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
