/** The address of the page holds the design: written after every change, read at the start and when the user goes back. */

import { keepRecent, keepSteps, keptSteps } from "./memory.js";
import { fromFragment, toFragment } from "./share.js";

const DELAY = 700; // ms without a change: to write it takes the browser longer than to draw the answer to an edit
const TOO_LONG = "The design is too long for a link. It is kept in this browser; to share it, save the design file.";
const NEW_ENTRIES = ["open", "calibrate"]; // causes of a change that the back button takes back

export class Address {
  #waiting = null;
  #isNew = false;
  #before = null; // the address that the present one took the place of

  /** `kept(sentence)` hears why the design is in no link (null: it is), `damaged(error)` why a link cannot be read. */
  constructor(store, { kept, damaged }) {
    Object.assign(this, { store, kept, damaged });
    window.addEventListener("popstate", () => this.#follow());
    const keep = () => store.state && keepSteps(store, this.#before);
    window.addEventListener("pagehide", keep);
    document.addEventListener("visibilitychange", () => document.hidden && keep()); // a hidden page may end without a word
  }

  /** What the address, or this browser for this address, has of a design; null if there is nothing. */
  async read() {
    const kept = keptSteps();
    if (kept) return kept;
    const state = await fromFragment(location.hash);
    return state && { state, past: [], future: [] };
  }

  /** Put the state into the address: a new entry of the history for a new design, else the present one. */
  write(cause) {
    if (NEW_ENTRIES.includes(cause) && location.hash) this.#isNew = true;
    if (cause === "back") return;
    clearTimeout(this.#waiting);
    document.body.dataset.address = "to be written";
    this.#waiting = setTimeout(() => this.writeNow(), this.#isNew ? 0 : DELAY);
  }

  async writeNow() {
    clearTimeout(this.#waiting);
    const { state } = this.store;
    try {
      const { fragment, isLink } = await toFragment(state);
      if (state !== this.store.state) return;
      this.#before = this.#isNew ? null : location.hash;
      history[this.#isNew ? "pushState" : "replaceState"](null, "", fragment);
      this.#isNew = false;
      document.body.dataset.address = "written";
      keepRecent(state.design.title || state.design.name, fragment);
      this.kept(isLink ? null : TOO_LONG);
    } catch (error) {
      this.kept(error.message);
    }
  }

  async #follow() {
    try {
      const state = await fromFragment(location.hash);
      if (state && JSON.stringify(state) !== JSON.stringify(this.store.state))
        this.store.change(state, { cause: "back" });
    } catch (error) {
      this.damaged(error);
    }
  }
}
