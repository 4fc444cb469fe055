/** Numbers for people: how many digits a certified interval justifies, powers of ten, short forms for narrow cells. */

import { Rational } from "./rational.js";

const MOST_DIGITS = 12;
const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** The upper end of a certified interval, rounded up to the digits on which both ends agree. */
export function roundedUp(lower, upper, most = MOST_DIGITS) {
  return outward(upper, agreedDigits(lower, upper, most), 1);
}

/** The lower end of a certified interval, rounded down to the digits on which both ends agree. */
export function roundedDown(lower, upper, most = MOST_DIGITS) {
  return outward(lower, agreedDigits(lower, upper, most), -1);
}

function agreedDigits(lower, upper, most) {
  const width = Math.abs(upper - lower);
  const size = Math.max(Math.abs(lower), Math.abs(upper));
  if (!width || !size) return most;
  return Math.max(2, Math.min(most, Math.floor(-Math.log10(width / size))));
}

function outward(value, digits, direction) {
  if (!Number.isFinite(value) || value === 0) return String(value).replace("Infinity", "∞");
  const nearest = value.toPrecision(digits);
  if (direction * (Number(nearest) - value) >= 0) return plain(nearest);
  const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
  const unit = 10 ** (Number(exponent) - digits + 1);
  return plain((Number(`${mantissa}e${exponent}`) + direction * unit).toPrecision(digits));
}

/** Without an exponent from 1e-4 to 1e7, with one elsewhere; at most `most` decimals. */
function written(value, digits, most) {
  const size = Math.abs(value);
  if (!(size >= 1e-4 && size < 1e7)) return value.toExponential(Math.max(digits - 1, 0));
  return value.toFixed(Math.min(Math.max(0, digits - 1 - Math.floor(Math.log10(size))), most));
}

function plain(text) {
  const digits = text
    .replace(/e.*$/, "")
    .replace(/^-?0?\.?0*/, "")
    .replace(/[-.]/g, "").length;
  return written(Number(text), digits, 20);
}

/** A number in about `digits` significant digits, nearest. */
export function short(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : value < 0 ? "−∞" : "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e7) return String(value);
  return written(value, digits, 12);
}

/** 10 to a whole power, in typographic form: 10⁻¹². */
export function powerOfTen(exponent) {
  const digits = [...String(Math.abs(exponent))].map((digit) => SUPERSCRIPTS[Number(digit)]).join("");
  return `10${exponent < 0 ? "⁻" : ""}${digits}`;
}

/** delta from its base-10 logarithm, also below the range of doubles. */
export function fromLog10(log10, digits = 4) {
  if (log10 === null || log10 === undefined) return "–";
  if (log10 === -Infinity) return "0";
  if (log10 > -300) return short(10 ** log10, digits);
  const exponent = Math.floor(log10);
  return `${(10 ** (log10 - exponent)).toFixed(digits - 1)}e${exponent}`;
}

/** What a narrow cell shows of an exact text: itself where it fits, else the nearest short decimal marked as such. */
export function inCell(text, style) {
  const exact = Rational.parse(text);
  if (!exact) return text;
  const [whole, most] = style === "fraction" ? [exact.toString(), 9] : [exact.toDecimal(), 8];
  return whole !== null && whole.length <= most ? whole : `≈${short(exact.toNumber(), 3)}`;
}

/** A relative change in percent with a sign; a factor where it is tenfold; a dash where there is none to speak of. */
export function change(from, to) {
  if (!Number.isFinite(from) || !Number.isFinite(to) || from === 0) return "–";
  if (from > 0 && to > 0 && (to / from >= 10 || from / to >= 10)) return `× ${short(to / from, 4)}`;
  const share = ((to - from) / Math.abs(from)) * 100;
  if (Math.abs(share) < 5e-7) return "0%";
  const sign = share > 0 ? "+" : "−";
  const size = Math.abs(share);
  return `${sign}${size >= 0.01 ? size.toFixed(2) : size.toPrecision(2)}%`;
}
