// The rows of a diff: numbers, marks, pairs and the tree of files.
import { differing, inOrder, pairs, rowsOf, treeOf } from "../../../src/fleet/web/parts/diff_rows.js";
import { same } from "./same.js";

const HUNK = {
  old_start: 10, old_lines: 3, new_start: 20, new_lines: 4, heading: "def f():",
  lines: [" a", "-price = 3", "+price = 30", "+tax = 1", " b", "\\ No newline at end of file"],
};

Deno.test("each row has its number on each side", () => {
  const rows = rowsOf(HUNK);
  same(rows.map((row) => [row.kind, row.old, row.now]), [
    ["hunk", 10, 20], ["same", 10, 20], ["del", 11, 0], ["add", 0, 21], ["add", 0, 22], ["same", 12, 23], ["note", 0, 0],
  ]);
});

Deno.test("what differs in lines that were exchanged is marked", () => {
  const rows = rowsOf({ ...HUNK, lines: ["-price = 3", "+price = 30"] });
  same([rows[1].mark, rows[2].mark], [undefined, [9, 10]]);
  same(differing("abc", "abc"), [3, 0]);
});

Deno.test("side by side, what was removed is beside what was added", () => {
  const both = pairs(rowsOf(HUNK)).map(([left, right]) => [left && left.text, right && right.text]);
  same(both[2], ["price = 3", "price = 30"]);
  same(both[3], [null, "tax = 1"]);
});

Deno.test("a line of a megabyte is cut", () => {
  const [, row] = rowsOf({ ...HUNK, lines: [`+${"x".repeat(1_000_000)}`] });
  if (row.text.length > 2100) throw new Error("not cut");
});

Deno.test("folders with one folder in them are one row, and come before files", () => {
  const file = (/** @type {string} */ path) => ({ path, change: "modified", added: 1, removed: 0 });
  const tree = treeOf([file("setup.py"), file("src/app/ui/a.py"), file("src/app/ui/b.py"), file("src/app/core.py")]);
  same(tree.folders.map((folder) => folder.name), ["src/app"]);
  same(inOrder(tree).map((each) => each.path), ["src/app/ui/a.py", "src/app/ui/b.py", "src/app/core.py", "setup.py"]);
});
