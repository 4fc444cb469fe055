/** The size of an element, told by the browser when it changes: to ask for it while drawing would lay out the page again. */

export class Size {
  width = 0;
  height = 0;

  constructor(node, changed) {
    const told = () => {
      Object.assign(this, { width: node.clientWidth, height: node.clientHeight });
      changed();
    };
    new ResizeObserver(told).observe(node);
  }

  /** Whether there is room for a drawing. */
  get isEnough() {
    return this.width >= 50 && this.height >= 50;
  }
}
