// Source code in colours: pieces of text with the kind of each, never HTML.

/** @typedef {{ text: string, kind: string }} Token */

/** @type {Record<string, string>} */
const LANGUAGES = {
  bash: "bash", c: "c", cc: "c", cpp: "c", h: "c", css: "css", go: "go", html: "xml", ini: "ini", java: "java", js: "javascript",
  json: "json", jsx: "javascript", kt: "java", mjs: "javascript", py: "python", pyi: "python", rs: "rust",
  sh: "bash", sql: "sql", svg: "xml", toml: "ini", ts: "typescript", tsx: "typescript", xml: "xml", yaml: "yaml", yml: "yaml",
};
const LONGEST = 60_000; // characters that are looked at together

/** @param {string} path */
export const languageOf = (path) => LANGUAGES[(path.split(".").pop() || "").toLowerCase()] || "";

/** The tokens of each line. @param {any} hljs @param {string} language @param {string[]} lines @returns {Token[][] | null} */
export function coloured(hljs, language, lines) {
  const text = lines.join("\n");
  if (!language || text.length > LONGEST) return null;
  try {
    const made = [/** @type {Token[]} */ ([])];
    walk(hljs.highlight(text, { language, ignoreIllegals: true })._emitter.rootNode, "", made);
    return made;
  } catch {
    return null; // plain text is good enough
  }
}

/** @param {any} node @param {string} kind @param {Token[][]} made */
function walk(node, kind, made) {
  if (typeof node === "string") {
    node.split("\n").forEach((part, at) => {
      if (at) made.push([]);
      if (part) made[made.length - 1].push({ text: part, kind });
    });
    return;
  }
  const own = node.scope ? String(node.scope).split(".")[0] : kind;
  for (const child of node.children) walk(child, own, made);
}

/** Only these characters of the tokens, marked. @param {Token[]} tokens @param {[number, number]} mark @returns {(Token & { mark?: boolean })[]} */
export function withMark(tokens, [from, to]) {
  /** @type {(Token & { mark?: boolean })[]} */
  const some = [];
  let at = 0;
  for (const token of tokens) {
    const end = at + token.text.length;
    const [start, stop] = [Math.max(from, at), Math.min(to, end)];
    if (start >= stop) some.push(token);
    else {
      if (start > at) some.push({ ...token, text: token.text.slice(0, start - at) });
      some.push({ ...token, text: token.text.slice(start - at, stop - at), mark: true });
      if (stop < end) some.push({ ...token, text: token.text.slice(stop - at) });
    }
    at = end;
  }
  return some;
}
