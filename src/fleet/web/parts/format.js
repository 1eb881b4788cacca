// Words for times, money and numbers, and any words made harmless. Nothing here looks at the page.

const STEPS = /** @type {[number, string][]} */ ([[86400, "d"], [3600, "h"], [60, "m"]]);

/** @param {number} seconds */
export function duration(seconds) {
  for (const [size, unit] of STEPS) {
    if (seconds >= size) return `${Math.floor(seconds / size)}${unit}`;
  }
  return `${Math.max(0, Math.floor(seconds))}s`;
}

/** @param {number} microdollars @param {boolean} [estimated] */
export function money(microdollars, estimated = false) {
  if (!microdollars) return "";
  const dollars = microdollars / 1e6;
  const text = dollars < 0.01 ? "<$0.01" : `$${dollars.toFixed(dollars < 100 ? 2 : 0)}`;
  return estimated ? `${text} est.` : text;
}

/** @param {number | null | undefined} count */
export function short(count) {
  if (!count) return "0";
  if (count < 1000) return String(count);
  return count < 1e6 ? `${(count / 1e3).toFixed(count < 1e4 ? 1 : 0)}k` : `${(count / 1e6).toFixed(1)}M`;
}

/** The last part of a directory. @param {string} path */
export const last = (path) => path.replace(/\/+$/, "").split("/").pop() || path;

// What would turn a line around, or hide in it, is shown as the command line shows it: `\u202e`.
/** Control and format characters, but for line breaks, tabs, and what joins emoji and letters. */
const HIDDEN = /(?![\t\n\r\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}]/gu;

/** @param {string} text */
export const harmless = (text) => text.replace(HIDDEN, written);

/** @param {string} character */
function written(character) {
  const code = character.codePointAt(0) || 0;
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
}
