/** Where a design comes from: a built-in release, a file chosen or dropped, or a small one to begin with. */

import { ask, get } from "../ask/api.js";
import { byId, make } from "../dom.js";
import { opened, SMALL } from "../state/design.js";
import { counted } from "../state/format.js";
import { recentDesigns } from "../state/memory.js";
import { fromFile, fromFragment, isBudget, isCertificate } from "../state/share.js";
import { notify } from "./notices.js";
import { verifyDialog } from "./verifying.js";

const LARGEST_FILE = 1_000_000;

export class Opening {
  /** `open(state)` takes the design. */
  constructor(open) {
    this.open = open;
    this.dialog = byId("start-dialog");
    byId("file").addEventListener("change", ({ target }) => {
      if (target.files.length) this.read(target.files[0]);
      target.value = "";
    });
    byId("small-design").addEventListener("click", () => this.#take(opened(structuredClone(SMALL))));
    this.#listenToDrops();
  }

  /** The dialog, with a sentence where something could not be opened. */
  async show(problem = "") {
    byId("start-error").textContent = problem;
    this.#showRecent();
    if (!this.dialog.open) this.dialog.showModal();
    try {
      const { releases } = await get("/releases");
      byId("release-list").replaceChildren(...releases.map((release) => this.#card(release)));
    } catch (error) {
      byId("start-error").textContent = error.message;
    }
  }

  /** Open a budget file or a design file; what is wrong with it is said in one sentence and changes nothing. */
  async read(chosen) {
    byId("start-error").textContent = "";
    try {
      if (chosen.size > LARGEST_FILE)
        throw new Error(
          `A file must have at most ${counted(LARGEST_FILE)} bytes. Found ${counted(chosen.size)} in ${chosen.name}.`,
        );
      const text = await chosen.text();
      if (isCertificate(text)) {
        this.dialog.close();
        verifyDialog(chosen.name, text);
        return;
      }
      const isState = chosen.name.toLowerCase().endsWith(".json") && !isBudget(text);
      if (isState) this.#take(fromFile(text, chosen.name));
      else this.#take(opened((await ask("/parse", { file_name: chosen.name, text })).design));
    } catch (error) {
      if (this.dialog.open) byId("start-error").textContent = error.message;
      else notify("error", error.message, { key: "file" });
    }
  }

  #showRecent() {
    const entries = recentDesigns().map(({ title, fragment, time }) => {
      const onclick = async () => {
        try {
          this.#take(await fromFragment(fragment));
        } catch (error) {
          byId("start-error").textContent = error.message;
        }
      };
      const when = new Date(time).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });
      const card = { type: "button", className: "card", onclick };
      return make("li", {}, make("button", card, make("b", {}, title), make("span", {}, when)));
    });
    byId("recent-list").replaceChildren(...entries);
    byId("recent").hidden = !entries.length;
  }

  #card({ name, title, levels, cells, pairs }) {
    const size = `${levels} levels, ${cells} budgets, ${pairs === 1 ? "1 pair" : `${pairs} pairs`} of paths`;
    const onclick = async () => {
      try {
        const { design, typical } = await get(`/releases/${encodeURIComponent(name)}`);
        this.#take(opened(design, typical));
      } catch (error) {
        byId("start-error").textContent = error.message;
      }
    };
    const words = [make("b", {}, title), make("span", {}, size)];
    const card = { type: "button", className: "card", data: { release: name }, onclick };
    return make("li", {}, make("button", card, ...words));
  }

  #take(state) {
    this.dialog.close();
    this.open(state);
  }

  #listenToDrops() {
    const veil = byId("drop");
    let depth = 0;
    const holdsFiles = (event) => event.dataTransfer?.types.includes("Files");
    document.addEventListener("dragenter", (event) => {
      if (!holdsFiles(event)) return;
      depth += 1;
      veil.hidden = false;
    });
    document.addEventListener("dragleave", (event) => {
      if (!holdsFiles(event)) return;
      depth -= 1;
      if (depth <= 0) veil.hidden = true;
    });
    document.addEventListener("dragover", (event) => holdsFiles(event) && event.preventDefault());
    document.addEventListener("drop", (event) => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      depth = 0;
      veil.hidden = true;
      if (event.dataTransfer.files.length) this.read(event.dataTransfer.files[0]);
    });
  }
}
