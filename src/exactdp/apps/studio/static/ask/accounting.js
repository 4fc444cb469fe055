/** From a state to the numbers of its pair, and what zCDP says. A refusal leaves the last good answer. */

import { ask, failure, Refusal } from "./api.js";
import { LatestQuestion } from "./latest.js";
import { pairQuestion } from "./questions.js";

const CURVES = { delta_curve: { num: 65, least: "1e-15" }, tradeoff: { num: 49 }, noise: true };
const ZCDP_POINTS = 41;
const MOST_CONVERSIONS = 200;
const REST = 300; // ms without an edit before zCDP's curve is asked for: it is not to hold up the next one
const RETRY = 1500; // ms after which a server that is gone is asked again

export class Accounting {
  answer = null;
  #state = null;
  #ofPair = new LatestQuestion();
  #ofZcdp = new LatestQuestion();
  #conversions = new Map();
  #resting = null;

  /**
   * `view` shows what became of the questions: draw() when more is known, working(isWorking), answered(answer, since),
   * refused(error, isPresent, again), unreachable(). Then first(answer) is called where epsilon was not asked yet, and
   * painted(since) after every answer.
   */
  constructor(view, { first, painted }) {
    Object.assign(this, { view, first, painted });
  }

  /** What zCDP says at the rho and alpha of the answer, once it is known. */
  get zcdp() {
    return this.answer && this.#conversions.get(conversion(this.answer));
  }

  /** Account for the state; `since` is when the user acted. */
  account(state, since) {
    this.#state = state;
    clearTimeout(this.#resting);
    this.#ofPair.put((signal) => this.#account(state, since, signal));
    this.view.working(true);
  }

  async #account(state, since, signal) {
    try {
      this.answer = await ask("/pair", pairQuestion(state, state.ask, CURVES), signal);
      this.view.answered(this.answer, since);
      this.#convert(this.answer);
      if (state.ask.epsilon === null) this.first(this.answer);
      this.painted(since);
    } catch (error) {
      const problem = failure(error);
      const isPresent = () => state === this.#state;
      const again = () => this.account(this.#state, performance.now());
      if (problem instanceof Refusal) this.view.refused(problem, isPresent, again);
      else if (problem) {
        this.view.unreachable();
        setTimeout(() => !this.#ofPair.isBusy && this.account(this.#state, since), RETRY);
      }
    } finally {
      if (state === this.#state) this.view.working(false);
    }
  }

  /** zCDP's trade-off curve depends on rho alone and takes longer than the rest: it follows when the user rests, and is kept. */
  #convert(answer) {
    const [rho, alpha] = [answer.rho, answer.beta[0]?.alpha];
    const key = conversion(answer);
    if (alpha === undefined || this.#conversions.has(key)) return;
    const question = async (signal) => {
      try {
        const found = await ask("/convert", { rho, alphas: [alpha], tradeoff: ZCDP_POINTS }, signal);
        if (this.#conversions.size >= MOST_CONVERSIONS) this.#conversions.clear();
        this.#conversions.set(key, found);
        if (this.answer.rho === rho) this.view.draw();
      } catch (error) {
        failure(error); // the page does without it
      }
    };
    this.#resting = setTimeout(() => this.#ofZcdp.put(question), REST);
  }
}

const conversion = ({ rho, beta }) => `${rho} ${beta[0]?.alpha}`;
