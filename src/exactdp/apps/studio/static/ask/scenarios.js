/** The scenarios that were kept: the guarantee of each as a whole release, and its noise; asked one after the other. */

import { ask, failure, lines, Refusal } from "./api.js";
import { noiseQuestion, overallQuestion } from "./questions.js";

export class Scenarios {
  #noise = new Map();
  #refused = new Map();
  #running = false;

  /** `overall` remembers whole releases; `draw()` is called when more is known. */
  constructor(overall, draw) {
    Object.assign(this, { overall, draw });
  }

  /** What is known of a scenario: the guarantee of the whole release, the noise of its full path, or why there is none. */
  known({ design }, asks) {
    const question = overallQuestion({ design, ask: asks });
    return {
      whole: this.overall.recall(question),
      noise: this.#noise.get(keyOf(design)) ?? null,
      error: this.#refused.get(JSON.stringify(question)) ?? null,
    };
  }

  /** Ask for what is missing, one scenario after the other. */
  async account(present) {
    if (this.#running) return;
    this.#running = true;
    try {
      for (const scenario of present().kept) await this.#ask(scenario, present().ask);
    } finally {
      this.#running = false;
    }
    const { kept, ask: asks } = present();
    if (kept.some((one) => isMissing(this.known(one, asks)))) await this.account(present);
  }

  async #ask({ design }, asks) {
    const question = overallQuestion({ design, ask: asks });
    const found = this.known({ design }, asks);
    if (!isMissing(found)) return;
    try {
      if (!found.noise) this.#noise.set(keyOf(design), (await ask("/pair", noiseQuestion({ design }))).noise[0]);
      if (!found.whole) this.overall.keep(question, await whole(question));
    } catch (error) {
      this.#refused.set(JSON.stringify(question), failure(error)?.message ?? "");
    }
    this.draw();
  }
}

const keyOf = (design) => JSON.stringify(design.levels);
const isMissing = ({ whole: release, noise, error }) => error === null && !(release && noise);

async function whole(question) {
  for await (const line of lines("/overall", question)) {
    if (line.event === "error") throw new Refusal(line.error);
    if (line.event === "done") return line.result;
  }
  throw new Refusal("The account of this scenario ended early. Keep it again.");
}
