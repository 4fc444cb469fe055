/** The guarantee over all pairs of paths: asked for on request or when the user rests. */

import { failure, lines, Refusal } from "./api.js";

const REST = 200; // ms without a change before the whole release is accounted for

export class OverallRun {
  result = null; // of the present design
  #controller = null;
  #resting = null;

  /**
   * `view` shows how it goes: begun(), advanced(done, steps), known(result so far), done(result, seconds), ended(), and
   * knows whether to ask without being told: isAutomatic. `request()` gives the body of the question; done() and
   * failed(error) hear the end.
   */
  constructor(view, { request, done, failed }) {
    Object.assign(this, { view, request, done, failed });
  }

  /** The design has changed: what is known of it belongs to the past, and a run for it is ended. */
  invalidate() {
    this.cancel();
    this.result = null;
    clearTimeout(this.#resting);
  }

  /** The pair's numbers are there: go on with the whole release once the user rests. */
  rest() {
    clearTimeout(this.#resting);
    if (this.view.isAutomatic) this.#resting = setTimeout(() => this.run(), REST);
  }

  cancel() {
    this.#controller?.abort();
    this.#controller = null;
    this.view.ended();
  }

  async run() {
    this.cancel();
    clearTimeout(this.#resting);
    const controller = new AbortController();
    this.#controller = controller;
    this.view.begun();
    const known = { epsilon: [], worst_pair: [], delta: [], beta: [] };
    try {
      for await (const line of lines("/overall", this.request(), controller.signal)) {
        if (line.event === "error") throw new Refusal(line.error);
        if (line.event === "start") {
          known.pairs = line.pairs;
          this.view.advanced(0, line.steps);
        }
        if (line.event === "part") {
          this.view.advanced(line.done, line.steps);
          known[line.quantity]?.push(...line.rows);
          this.view.known(known);
        }
        if (line.event === "done") {
          this.result = line.result;
          this.view.done(line.result, line.seconds);
          this.done();
        }
      }
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
}
