/** Numbers for people: how many digits a certified interval justifies, powers of ten, short forms for narrow cells. */

import { about, atLeast, atMost, exactText } from "./numerals.js";
import { Rational } from "./rational.js";

const MOST_DIGITS = 12;
const FEWEST_DIGITS = 2;
const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** The upper end of a certified interval, rounded up to the digits on which both ends agree. */
export function roundedUp(lower, upper, most = MOST_DIGITS) {
  return atMost(upper, agreedDigits(lower, upper, most));
}

/** The lower end of a certified interval, rounded down to the digits on which both ends agree. */
export function roundedDown(lower, upper, most = MOST_DIGITS) {
  return atLeast(lower, agreedDigits(lower, upper, most));
}

/** Heuristic: how many digits are shown; whichever way, they are rounded outward. */
function agreedDigits(lower, upper, most) {
  const width = Math.abs(upper - lower);
  const size = Math.max(Math.abs(lower), Math.abs(upper));
  if (!width || !size || !Number.isFinite(width)) return most;
  return Math.max(FEWEST_DIGITS, Math.min(most, Math.floor(-Math.log10(width / size))));
}

const GROUPED = new Intl.NumberFormat("en"); // made once: toLocaleString makes one for every number

/** A count with its thousands apart: 1,234. */
export const counted = (count) => GROUPED.format(count);

/** 10 to a whole power, in typographic form: 10⁻¹². */
export function powerOfTen(exponent) {
  const digits = [...String(Math.abs(exponent))].map((digit) => SUPERSCRIPTS[Number(digit)]).join("");
  return `10${exponent < 0 ? "⁻" : ""}${digits}`;
}

/** What a chart is read at: a number from its base-10 logarithm, also below the range of doubles. An estimate. */
export function fromLog10(log10, digits = 4) {
  if (log10 === null || log10 === undefined || Number.isNaN(log10)) return "–";
  if (log10 === -Infinity) return "0";
  if (log10 > -300) return about(10 ** log10, digits);
  const exponent = Math.floor(log10);
  return `~${(10 ** (log10 - exponent)).toFixed(digits - 1)}e${exponent}`;
}

/** What a narrow cell shows of an exact text: itself where it fits, else the nearest short decimal, marked with a tilde. */
export function inCell(text, style) {
  const exact = Rational.parse(text);
  if (!exact) return text;
  if (style === "fraction" && exact.toString().length <= 9) return exact.toString();
  // among decimals only fractions that people type, such as 1/3: not what a factor such as 1/1.001 leaves of a decimal
  if (style === "decimal" && exact.d >= 100n && exact.toDecimal() === null) return about(exact.toNumber(), 4);
  return exactText(exact, 8, 4);
}

/** A relative change in percent with a sign, a factor where it is tenfold, a dash where there is none: estimates. */
export function change(from, to) {
  if (!Number.isFinite(from) || !Number.isFinite(to) || from === 0) return "–";
  if (from > 0 && to > 0 && (to / from >= 10 || from / to >= 10)) return `× ${about(to / from, 4)}`;
  const share = ((to - from) / Math.abs(from)) * 100;
  if (Math.abs(share) < 5e-7) return "~0%";
  const sign = share > 0 ? "+" : "−";
  const size = Math.abs(share);
  return `~${sign}${size >= 0.01 ? size.toFixed(2) : size.toPrecision(2)}%`;
}
