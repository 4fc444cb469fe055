/** The guarantee over all pairs of paths: asked for on request or when the user rests; what was known once stays known. */

import { failure, lines, Refusal } from "./api.js";

const REST = 120; // ms after the pair's numbers without a change before the whole release is accounted for
const MOST_KEPT = 60; // answers

export class OverallRun {
  result = null; // of the present design
  #known = null; // of it so far
  #controller = null;
  #resting = null;
  #answers = new Map();

  /**
   * `view` shows how it goes: begun(since), advanced(done, steps), known(result so far), done(result, seconds), ended(), and
   * knows whether to ask without being told: isAutomatic. `request()` gives the body of the question; done() and
   * failed(error) hear the end.
   */
  constructor(view, { request, done, failed }) {
    Object.assign(this, { view, request, done, failed });
  }

  get isBusy() {
    return this.#controller !== null;
  }

  /** What is known of the present design, perhaps its epsilon alone. */
  get found() {
    return this.result ?? this.#known;
  }

  /** The answer to a question, if it was asked before. */
  recall(question) {
    return this.#answers.get(JSON.stringify(question)) ?? null;
  }

  /** Keep an answer that was asked for elsewhere. */
  keep(question, result) {
    if (this.#answers.size >= MOST_KEPT) this.#answers.delete(this.#answers.keys().next().value);
    this.#answers.set(JSON.stringify(question), result);
  }

  /** The design has changed: what is known of it belongs to the past, and a run for it is ended. */
  invalidate() {
    this.cancel();
    this.result = this.#known = null;
    clearTimeout(this.#resting);
  }

  /** The pair's numbers are there: go on with the whole release once the user rests. `since` is when the user acted. */
  rest(since) {
    clearTimeout(this.#resting);
    if (!this.view.isAutomatic || this.result || this.isBusy) return;
    this.#resting = setTimeout(() => this.run(since), this.recall(this.request()) ? 0 : REST);
  }

  cancel() {
    this.#controller?.abort();
    this.#controller = null;
    this.view.ended();
  }

  async run(since = performance.now()) {
    this.cancel();
    clearTimeout(this.#resting);
    const controller = new AbortController();
    this.#controller = controller;
    this.view.begun(since);
    const question = this.request();
    try {
      await this.#follow(question, controller.signal);
    } catch (error) {
      const problem = failure(error);
      if (problem) this.failed(problem);
    } finally {
      if (this.#controller === controller) {
        this.#controller = null;
        this.view.ended();
      }
    }
  }

  async #follow(question, signal) {
    const before = this.recall(question);
    if (before) {
      this.#end(before, 0);
      return;
    }
    const known = { epsilon: [], worst_pair: [], delta: [], beta: [] };
    for await (const line of lines("/overall", question, signal)) {
      if (line.event === "error") throw new Refusal(line.error);
      if (line.event === "start") {
        Object.assign(known, { pairs: line.pairs, rho: line.rho });
        this.view.advanced(0, line.steps);
      }
      if (line.event === "part") {
        this.view.advanced(line.done, line.steps);
        known[line.quantity]?.push(...line.rows);
        this.#known = known;
        this.view.known(known);
      }
      if (line.event === "done") {
        this.keep(question, line.result);
        this.#end(line.result, line.seconds);
      }
    }
  }

  #end(result, seconds) {
    this.result = result;
    this.view.done(result, seconds);
    this.done();
  }
}
