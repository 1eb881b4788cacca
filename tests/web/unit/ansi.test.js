// Terminal colours: styles count, everything else that a terminal obeys is left out.
import { look, pieces, plain } from "../../../src/fleet/web/parts/ansi.js";
import { same } from "./same.js";

Deno.test("colours and weights begin and end", () => {
  const [red, rest] = pieces("\x1b[1;31mno\x1b[0m yes");
  same([red.text, red.fg, red.bold], ["no", "1", true]);
  same([rest.text, rest.fg, rest.bold], [" yes", "", false]);
});

Deno.test("256 and full colours", () => {
  same(pieces("\x1b[38;5;196mx")[0].fg, "rgb(255 0 0)");
  same(pieces("\x1b[48;2;1;2;999mx")[0].bg, "rgb(1 2 255)");
  same(pieces("\x1b[38;5;3mx")[0].fg, "3");
});

Deno.test("titles, cursor moves, links and control characters are left out", () => {
  same(plain("\x1b]0;evil\x07a\x1b[2Jb\x1b[10;10Hc\x1b]8;;http://x\x1b\\d\x00\x9b"), "abcd");
});

Deno.test("an escape that never ends is no text", () => {
  same(plain("a\x1b]0;never"), "a");
});

Deno.test("swapped colours are classes, too", () => {
  same(look(pieces("\x1b[7;32mx")[0]).class, "fbg g2");
});
