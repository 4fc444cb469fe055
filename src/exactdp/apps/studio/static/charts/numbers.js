/** The numbers of a chart as a table, drawn only while it is open. */

import { headAndBody, make } from "../dom.js";

export class Numbers {
  /** `content()` gives the heads and the rows, each with its names (row headers) and cells. */
  constructor(label, content) {
    this.content = content;
    this.frame = make("div", { className: "numbers", hidden: true, tabIndex: 0, role: "region", aria: { label } });
    const title = "The numbers of this chart";
    const looks = { type: "button", className: "small quietly", title, aria: { expanded: "false", label } };
    this.button = make("button", { ...looks, onclick: () => this.toggle() }, "Table");
  }

  toggle() {
    this.frame.hidden = !this.frame.hidden;
    this.button.setAttribute("aria-expanded", String(!this.frame.hidden));
    this.update();
  }

  update() {
    if (this.frame.hidden) return;
    const { heads, rows } = this.content();
    this.frame.replaceChildren(make("table", {}, ...headAndBody(heads, rows)));
  }
}
