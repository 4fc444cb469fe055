/** The state of the studio, every change of which can be undone. A state is never altered, only replaced. */

const MOST_STEPS = 100;

export class Store extends EventTarget {
  state = null;
  past = [];
  future = [];
  #group = null;

  /**
   * Replace the state. Changes of the same `group` are one step of undo; `cause` says what was done; `since` is when
   * the user did it, for measuring.
   */
  change(next, { cause = "edit", group = null, since = performance.now() } = {}) {
    if (this.state && (group === null || group !== this.#group)) {
      this.past.push(this.state);
      this.past.splice(0, this.past.length - MOST_STEPS);
    }
    this.#group = group;
    this.future = [];
    this.#put(next, cause, since);
  }

  /** Replace the state by one that the user would not tell apart: no step of undo. */
  amend(next, cause) {
    this.#put(next, cause, performance.now());
  }

  /** End a group, so that the next change is a step of its own. */
  close() {
    this.#group = null;
  }

  undo(since) {
    this.#step(this.past, this.future, "undo", since);
  }

  redo(since) {
    this.#step(this.future, this.past, "redo", since);
  }

  #step(from, to, cause, since) {
    if (!from.length) return;
    to.push(this.state);
    this.#group = null;
    const { lock } = this.state; // stays: it is no edit
    this.#put({ ...from.pop(), lock }, cause, since);
  }

  /** Put back a state with its history, as kept over a reload. */
  restore(state, past, future) {
    Object.assign(this, { past, future });
    this.#group = null;
    this.#put(state, "restore", performance.now());
  }

  #put(next, cause, since) {
    const before = this.state;
    this.state = next;
    this.dispatchEvent(new CustomEvent("change", { detail: { before, cause, since } }));
  }
}
