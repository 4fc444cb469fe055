/** The numbers of a chart as a table, drawn only while it is open. */

import { make } from "./dom.js";

export class Numbers {
  /** `content()` gives the heads and the rows, each with its names (row headers) and cells. */
  constructor(label, content) {
    this.content = content;
    this.frame = make("div", { className: "numbers", hidden: true, tabIndex: 0, aria: { label } });
    this.frame.setAttribute("role", "region");
    this.button = make(
      "button",
      {
        type: "button",
        className: "small quietly",
        title: "The numbers of this chart",
        aria: { expanded: "false", label },
      },
      "Table",
    );
    this.button.addEventListener("click", () => this.toggle());
  }

  toggle() {
    this.frame.hidden = !this.frame.hidden;
    this.button.setAttribute("aria-expanded", String(!this.frame.hidden));
    this.update();
  }

  update() {
    if (this.frame.hidden) return;
    const { heads, rows } = this.content();
    const head = make("thead", {}, make("tr", {}, ...heads.map((name) => make("th", { scope: "col" }, name))));
    const body = make(
      "tbody",
      {},
      ...rows.map(({ names, cells }) =>
        make(
          "tr",
          {},
          ...names.map((name) => make("th", { scope: "row" }, name)),
          ...cells.map((text) => make("td", {}, text)),
        ),
      ),
    );
    this.frame.replaceChildren(make("table", {}, head, body));
  }
}
