/**
 * Numbers as people read them, as exactdp/numerals.py writes them: bounds rounded outward from the exact number (a double is a
 * fraction), estimates to the nearest and marked, exact numbers whole or marked. Everything is done in whole numbers.
 */

import { Rational } from "./rational.js";

const [FIRST_PLAIN, LAST_PLAIN] = [-5, 7]; // decimal exponents written without a power of ten, exclusive
const MOST_WHOLE = 15; // digits of an exact decimal
const LONGEST = 12; // characters of an exact number,
const LONGEST_FRACTION = 7; // and of one that is a fraction
const [UP, DOWN, NEAREST] = [1, -1, 0];

/** The fraction that a finite double is. */
export function exactly(value) {
  const bits = new BigUint64Array(new Float64Array([value]).buffer)[0];
  const power = Number((bits >> 52n) & 0x7ffn);
  const fraction = bits & ((1n << 52n) - 1n);
  const size = power ? fraction | (1n << 52n) : fraction;
  const shift = Math.max(power, 1) - 1075;
  const signed = bits >> 63n ? -size : size;
  return shift >= 0 ? new Rational(signed << BigInt(shift)) : new Rational(signed, 1n << BigInt(-shift));
}

/** 1 - value, exactly. */
export function oneMinus(value) {
  return new Rational(1n).plus(exactly(value).times(new Rational(-1n)));
}

/** An upper bound (a number or a Rational), rounded up. */
export const atMost = (value, digits = 6) => numeral(value, digits, UP);

/** A lower bound, rounded down. */
export const atLeast = (value, digits = 6) => numeral(value, digits, DOWN);

/** An estimate, to the nearest: never a bound, and marked. */
export function about(value, digits = 6) {
  const text = numeral(value, digits, NEAREST);
  return /^-?\d/.test(text) ? `~${text}` : text;
}

/** An exact number as it is: 1e-8, 26.34, 1/3; one of more than `most` characters cut to so many digits, and marked. */
export function exactText(value, most = LONGEST, digits = 6) {
  const text = wholeText(value);
  return text.length <= (text.includes("/") ? Math.min(most, LONGEST_FRACTION) : most) ? text : about(value, digits);
}

/** An exact number with all its digits: a decimal where that is a short one, else a fraction. */
export function wholeText(value) {
  if (value.n === 0n) return "0";
  const [power, rest] = powerOfTenOf(value.d);
  const figures = String(size(value.n) * (10n ** BigInt(power) / value.d));
  if (rest !== 1n || figures.length > MOST_WHOLE + power || stripped(figures).length > MOST_WHOLE)
    return value.toString();
  return shortest(value.n < 0n, figures, figures.length - 1 - power);
}

const size = (n) => (n < 0n ? -n : n);
const stripped = (figures) => figures.replace(/0+$/, "");

/** The least power of ten that a denominator divides, and what is left of it without twos and fives. */
function powerOfTenOf(d) {
  let [rest, twos, fives] = [d, 0, 0];
  for (; rest % 2n === 0n; rest /= 2n) twos += 1;
  for (; rest % 5n === 0n; rest /= 5n) fives += 1;
  return rest === 1n ? [Math.max(twos, fives), rest] : [0, rest];
}

function numeral(value, digits, direction) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === Infinity || value === -Infinity) return value > 0 ? "∞" : "−∞";
  const number = typeof value === "number" ? exactly(value) : value;
  if (number.n === 0n) return "0";
  const isNegative = number.n < 0n;
  let [figures, exponent, isExact] = rounded(size(number.n), number.d, digits, isNegative ? -direction : direction);
  if (figures.length > digits) [figures, exponent] = [figures.slice(0, digits), exponent + 1];
  return isExact ? shortest(isNegative, figures, exponent) : written(isNegative, figures, exponent, digits);
}

/** The first digits of n / d, its decimal exponent, and whether nothing was cut. */
function rounded(n, d, digits, direction) {
  let exponent = String(n).length - String(d).length;
  if (scaled(n, -exponent) < scaled(d, exponent)) exponent -= 1;
  const shift = digits - 1 - exponent;
  const [top, bottom] = [scaled(n, shift), scaled(d, -shift)];
  let [whole, rest] = [top / bottom, top % bottom];
  const isOverHalf = 2n * rest > bottom || (2n * rest === bottom && whole % 2n === 1n);
  if (direction === UP ? rest > 0n : direction === NEAREST && isOverHalf) whole += 1n;
  return [String(whole), exponent, rest === 0n];
}

const scaled = (n, power) => (power > 0 ? n * 10n ** BigInt(power) : n);

/** With all figures, zeros at the end too: digits were cut. */
function written(isNegative, figures, exponent, digits) {
  const isPlain = FIRST_PLAIN < exponent && exponent < Math.max(LAST_PLAIN, digits);
  return (isNegative ? "-" : "") + (isPlain ? plainly(figures, exponent) : powered(figures, exponent));
}

/** Without zeros at the end: nothing was cut. */
function shortest(isNegative, figures, exponent) {
  const kept = stripped(figures);
  const isPlain = FIRST_PLAIN < exponent && exponent < LAST_PLAIN;
  return (isNegative ? "-" : "") + (isPlain ? plainly(kept, exponent) : powered(kept, exponent));
}

function plainly(figures, exponent) {
  if (exponent < 0) return `0.${"0".repeat(-exponent - 1)}${figures}`;
  const whole = figures.padEnd(exponent + 1, "0");
  return whole.length > exponent + 1 ? `${whole.slice(0, exponent + 1)}.${whole.slice(exponent + 1)}` : whole;
}

const powered = (figures, exponent) => `${figures[0]}${figures.length > 1 ? `.${figures.slice(1)}` : ""}e${exponent}`;
