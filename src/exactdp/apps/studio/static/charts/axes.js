/** Axes: round tick values and the way from a value to a place on the page. */

const STEPS = [1, 2, 5, 10];

/** About `count` round values between low and high. */
export function roundTicks(low, high, count) {
  const span = high - low || 1;
  const size = 10 ** Math.floor(Math.log10(span / count));
  const step = size * STEPS.find((s) => s * size >= (span / count) * 0.999);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/** Whole exponents between low and high (base-10 logarithms), at most about `count` of them. */
export function exponentTicks(low, high, count) {
  const step = [1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000].find((s) => (high - low) / s <= count) ?? 5000;
  const last = Math.floor(high / step + 1e-9) * step;
  return Array.from({ length: Math.floor((last - low) / step + 1e-9) + 1 }, (_, i) => last - i * step).reverse();
}

/** The straight map from [low, high] to [from, to]. */
export function linear(low, high, from, to) {
  const slope = (to - from) / (high - low || 1);
  const place = (value) => from + (value - low) * slope;
  place.back = (position) => low + (position - from) / slope;
  return place;
}
