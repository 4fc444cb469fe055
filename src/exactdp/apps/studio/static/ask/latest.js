/**
 * One question under way and at most one waiting: the newest. Edits that come faster than answers are skipped, and a
 * question that takes long is ended by the next one.
 */

const PATIENCE = 150; // ms after which a newer question ends the one under way

export class LatestQuestion {
  #running = null;
  #waiting = null;

  put(question) {
    if (!this.#running) {
      this.#start(question);
      return;
    }
    this.#waiting = question;
    this.#giveWay();
  }

  /** End the question under way where a newer one has waited for it long enough. */
  #giveWay() {
    if (this.#waiting && performance.now() - this.#running.since > PATIENCE) this.#running.controller.abort();
  }

  get isBusy() {
    return this.#running !== null;
  }

  async #start(question) {
    this.#running = { controller: new AbortController(), since: performance.now() };
    const impatient = setInterval(() => this.#giveWay(), PATIENCE / 3);
    try {
      await question(this.#running.controller.signal);
    } finally {
      clearInterval(impatient);
      this.#running = null;
      const next = this.#waiting;
      this.#waiting = null;
      if (next) this.#start(next);
    }
  }
}
