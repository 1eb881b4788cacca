// A file's changes as rows to show: pure, so that they can be tested.

/** @typedef {import("../api.d.ts").FileDiff} FileDiff */
/** @typedef {import("../api.d.ts").Hunk} Hunk */
/** @typedef {{ kind: "hunk" | "same" | "add" | "del" | "note", old: number, now: number, text: string, hunk: Hunk, at: number, mark?: [number, number] }} DiffRow */

const LONGEST = 2000; // characters of a line that are shown

/** @param {string} text */
export const cutLine = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST)} …` : text);

/** @type {WeakMap<Hunk, DiffRow[]>} */
const known = new WeakMap();

/** The rows of a hunk, its heading first: made once. @param {Hunk} hunk @returns {DiffRow[]} */
export function rowsOf(hunk) {
  const mine = known.get(hunk) || made(hunk);
  known.set(hunk, mine);
  return mine;
}

/** @param {Hunk} hunk @returns {DiffRow[]} */
function made(hunk) {
  let old = hunk.old_start;
  let now = hunk.new_start;
  /** @type {DiffRow[]} */
  const rows = [{ kind: "hunk", old, now, text: hunk.heading || "", hunk, at: -1 }];
  (hunk.lines || []).forEach((line, at) => {
    const sign = line[0];
    const text = cutLine(line.slice(1));
    if (sign === "+") rows.push({ kind: "add", old: 0, now: now++, text, hunk, at });
    else if (sign === "-") rows.push({ kind: "del", old: old++, now: 0, text, hunk, at });
    else if (sign === "\\") rows.push({ kind: "note", old: 0, now: 0, text: text.trim(), hunk, at });
    else rows.push({ kind: "same", old: old++, now: now++, text, hunk, at });
  });
  return marked(rows);
}

/** With the part that differs marked, where lines were exchanged one for one. @param {DiffRow[]} rows */
function marked(rows) {
  for (let at = 0; at < rows.length;) {
    let removed = 0;
    while (rows[at + removed]?.kind === "del") removed++;
    let added = 0;
    while (rows[at + removed + added]?.kind === "add") added++;
    if (removed && removed === added) {
      for (let each = 0; each < removed; each++) markPair(rows[at + each], rows[at + removed + each]);
    }
    at += Math.max(1, removed + added);
  }
  return rows;
}

/** @param {DiffRow} one @param {DiffRow} other */
function markPair(one, other) {
  const [start, end] = differing(one.text, other.text);
  if (start + end === 0) return; // nothing in common: all of it differs
  if (start < one.text.length - end) one.mark = [start, one.text.length - end];
  if (start < other.text.length - end) other.mark = [start, other.text.length - end];
}

/** How many characters two lines share at the start and at the end. @param {string} one @param {string} other @returns {[number, number]} */
export function differing(one, other) {
  const most = Math.min(one.length, other.length);
  let start = 0;
  while (start < most && one[start] === other[start]) start++;
  let end = 0;
  while (end < most - start && one[one.length - 1 - end] === other[other.length - 1 - end]) end++;
  return [start, end];
}

/** Side by side: each pair has what was on the left, and what is on the right. @param {DiffRow[]} rows @returns {[DiffRow | null, DiffRow | null][]} */
export function pairs(rows) {
  /** @type {[DiffRow | null, DiffRow | null][]} */
  const some = [];
  /** @type {DiffRow[]} */
  let left = [];
  /** @type {DiffRow[]} */
  let right = [];
  const flush = () => {
    for (let at = 0; at < Math.max(left.length, right.length); at++) some.push([left[at] || null, right[at] || null]);
    left = [];
    right = [];
  };
  for (const row of rows) {
    if (row.kind === "del") left.push(row);
    else if (row.kind === "add") right.push(row);
    else {
      flush();
      some.push([row, row]);
    }
  }
  flush();
  return some;
}

/**
 * Files by directory; a directory with one directory in it is written with it.
 * @typedef {{ name: string, path: string, files: FileDiff[], folders: Tree[] }} Tree
 * @param {FileDiff[]} files @returns {Tree}
 */
export function treeOf(files) {
  /** @type {Tree} */
  const top = { name: "", path: "", files: [], folders: [] };
  for (const file of files) {
    const parts = file.path.split("/");
    parts.pop();
    let here = top;
    for (const name of parts) {
      const path = here.path ? `${here.path}/${name}` : name;
      let next = here.folders.find((folder) => folder.path === path);
      if (!next) here.folders.push(next = { name, path, files: [], folders: [] });
      here = next;
    }
    here.files.push(file);
  }
  top.folders = top.folders.map(joined);
  return top;
}

/** @param {Tree} tree @returns {Tree} */
function joined(tree) {
  if (tree.folders.length === 1 && !tree.files.length) {
    const [only] = tree.folders;
    return joined({ ...only, name: `${tree.name}/${only.name}` });
  }
  return { ...tree, folders: tree.folders.map(joined) };
}

/** In the order of the tree, folders first. @param {Tree} tree @returns {FileDiff[]} */
export const inOrder = (tree) => [...tree.folders.flatMap(inOrder), ...tree.files];
