/** Exact rationals for editing a budget: sums and products of what the user typed, without rounding. */

const NUMBER = /^[+-]?(?:(\d+)\/(\d+)|(\d*)\.?(\d*)(?:[eE]([+-]?\d{1,3}))?)$/;
const LONGEST = 4000;
const MOST_DECIMALS = 15;

function gcd(a, b) {
  while (b) [a, b] = [b, a % b];
  return a;
}

export class Rational {
  /** n / d in lowest terms; d must be positive. */
  constructor(n, d = 1n) {
    const common = gcd(n < 0n ? -n : n, d) || 1n;
    this.n = n / common;
    this.d = d / common;
  }

  /** The number a text such as "73/10000", "0.0073" or "1e-3" says exactly, or null. */
  static parse(text) {
    const trimmed = String(text).trim();
    const found = trimmed.length <= LONGEST && NUMBER.exec(trimmed);
    if (!found) return null;
    const sign = trimmed.startsWith("-") ? -1n : 1n;
    const [, over, under, whole, decimals, exponent] = found;
    if (over !== undefined) return BigInt(under) ? new Rational(sign * BigInt(over), BigInt(under)) : null;
    if (!whole && !decimals) return null;
    const shift = Number(exponent ?? 0) - decimals.length;
    const digits = sign * BigInt(whole + decimals);
    return shift >= 0 ? new Rational(digits * 10n ** BigInt(shift)) : new Rational(digits, 10n ** BigInt(-shift));
  }

  plus(other) {
    return new Rational(this.n * other.d + other.n * this.d, this.d * other.d);
  }

  times(other) {
    return new Rational(this.n * other.n, this.d * other.d);
  }

  get isPositive() {
    return this.n > 0n;
  }

  /** The nearest double, for showing and for the width of bars only. */
  toNumber() {
    const extra = this.d.toString().length - this.n.toString().length + 20;
    if (extra <= 0) return Number(this.n / this.d);
    return Number(`${(this.n * 10n ** BigInt(extra)) / this.d}e${-extra}`);
  }

  /** The exact finite decimal with at most 15 decimals, or null where there is none. */
  toDecimal() {
    const scale = 10n ** BigInt(MOST_DECIMALS);
    if (scale % this.d) return null;
    const digits = ((this.n < 0n ? -this.n : this.n) * (scale / this.d)).toString().padStart(MOST_DECIMALS + 1, "0");
    const text = `${digits.slice(0, -MOST_DECIMALS)}.${digits.slice(-MOST_DECIMALS)}`.replace(/\.?0+$/, "");
    return this.n < 0n ? `-${text}` : text;
  }

  toString() {
    return this.d === 1n ? `${this.n}` : `${this.n}/${this.d}`;
  }
}

const ZERO = new Rational(0n);

/** The exact product of two texts, written as the first one was: as a fraction, or as a decimal where it is one. */
export function product(text, factor) {
  const [a, b] = [Rational.parse(text), Rational.parse(factor)];
  if (!a || !b) return null;
  const result = a.times(b);
  return text.includes("/") ? result.toString() : (result.toDecimal() ?? result.toString());
}

/** The exact sum of the texts that are numbers. */
export function total(texts) {
  return texts.reduce((sum, text) => sum.plus(Rational.parse(text) ?? ZERO), ZERO);
}
