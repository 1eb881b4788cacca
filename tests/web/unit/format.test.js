// What hides in a line or turns it around is shown, as the command line shows it.
import { harmless } from "../../../src/fleet/web/parts/format.js";
import { same } from "./same.js";

Deno.test("what turns a line around, and what a terminal obeys, is written out", () => {
  same(harmless("a\u202eb\u2066c\x1b[31m\x00"), "a\\u202eb\\u2066c\\x1b[31m\\x00");
  same(harmless("in\u200bvisible\ufeff"), "in\\u200bvisible\\ufeff");
});

Deno.test("languages, emoji, tabs and line breaks stay as they are", () => {
  const text = "\u0627\u0644\u0639 \u05e2\u05d1\u05e8 \u6f22\u5b57 \u{1f469}\u200d\u{1f469}\u200d\u{1f467} na\u00efve\n\tx\r\n";
  same(harmless(text), text);
});
