// Text with terminal colours as runs of one style. Whatever else a terminal would obey is left out.

/** @typedef {{ text: string, fg: string, bg: string, bold: boolean, dim: boolean, italic: boolean, line: boolean, swap: boolean }} Piece */

const PLAIN = { fg: "", bg: "", bold: false, dim: false, italic: false, line: false, swap: false };
// deno-lint-ignore no-control-regex -- these are what is looked for
const ESCAPE = /\x1b\[([\d;:]*)m|\x1b\[[\d;:?<=>!]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)|\x1b[ -/]*[0-~]|\x1b|[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;

/** @param {string} text @returns {Piece[]} */
export function pieces(text) {
  /** @type {Piece[]} */
  const some = [];
  let style = PLAIN;
  let at = 0;
  for (const match of text.matchAll(ESCAPE)) {
    if (match.index > at) some.push({ ...style, text: text.slice(at, match.index) });
    at = match.index + match[0].length;
    if (match[1] !== undefined) style = styled(style, match[1].split(/[;:]/).map(Number));
  }
  if (at < text.length) some.push({ ...style, text: text.slice(at) });
  return some;
}

/** The text alone. @param {string} text */
export const plain = (text) => text.replace(ESCAPE, "");

/** @param {typeof PLAIN} before @param {number[]} codes */
function styled(before, codes) {
  let style = before;
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at];
    if (code === 38 || code === 48) {
      const [colour, used] = wide(codes.slice(at + 1));
      style = { ...style, [code === 38 ? "fg" : "bg"]: colour };
      at += used;
    } else style = one(style, code);
  }
  return style;
}

/** @param {typeof PLAIN} style @param {number} code */
function one(style, code) {
  if (code === 0) return PLAIN;
  if (code === 1) return { ...style, bold: true };
  if (code === 2) return { ...style, dim: true };
  if (code === 3) return { ...style, italic: true };
  if (code === 4) return { ...style, line: true };
  if (code === 7) return { ...style, swap: true };
  if (code === 22) return { ...style, bold: false, dim: false };
  if (code === 23) return { ...style, italic: false };
  if (code === 24) return { ...style, line: false };
  if (code === 27) return { ...style, swap: false };
  if (code === 39) return { ...style, fg: "" };
  if (code === 49) return { ...style, bg: "" };
  if (code >= 30 && code <= 37) return { ...style, fg: String(code - 30) };
  if (code >= 90 && code <= 97) return { ...style, fg: String(code - 82) };
  if (code >= 40 && code <= 47) return { ...style, bg: String(code - 40) };
  if (code >= 100 && code <= 107) return { ...style, bg: String(code - 92) };
  return style;
}

/** A colour of 256, or of three parts: and how many numbers it took. @param {number[]} rest @returns {[string, number]} */
function wide([kind, a = 0, b = 0, c = 0]) {
  if (kind === 2) return [`rgb(${byte(a)} ${byte(b)} ${byte(c)})`, 4];
  if (kind !== 5) return ["", 1];
  if (a < 16) return [String(byte(a)), 2];
  if (a >= 232) return [`rgb(${(a - 232) * 10 + 8} ${(a - 232) * 10 + 8} ${(a - 232) * 10 + 8})`, 2];
  const cube = (/** @type {number} */ step) => (step ? 55 + 40 * step : 0);
  const left = a - 16;
  return [`rgb(${cube(Math.floor(left / 36))} ${cube(Math.floor(left / 6) % 6)} ${cube(left % 6)})`, 2];
}

/** @param {number} value */
const byte = (value) => Math.max(0, Math.min(255, value | 0));

/** The classes and colours of a piece, for an element. @param {Piece} piece */
export function look(piece) {
  const [fg, bg] = piece.swap ? [piece.bg || "bg", piece.fg || "fg"] : [piece.fg, piece.bg];
  const names = [piece.bold && "b", piece.dim && "d", piece.italic && "i", piece.line && "u"];
  /** @type {Record<string, string>} */
  const style = {};
  for (const [kind, colour] of [["f", fg], ["g", bg]]) {
    if (/^\w+$/.test(colour)) names.push(`${kind}${colour}`);
    else if (colour) style[kind === "f" ? "color" : "background"] = colour;
  }
  return { class: names.filter(Boolean).join(" ") || undefined, style };
}
