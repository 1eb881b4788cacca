// Colours of source code: every character stays, in its place.
import { coloured, languageOf, withMark } from "../../../src/fleet/web/parts/colour.js";
import hljs from "../../../src/fleet/web/vendor/hljs.js";
import { same } from "./same.js";

Deno.test("a string over two lines stays a string, and no character is lost", () => {
  const lines = ['x = """one', 'two"""', "# <b>end</b> & done"];
  const made = coloured(hljs, "python", lines) || [];
  same(made.map((tokens) => tokens.map((token) => token.text).join("")), lines);
  same(made[1].every((token) => token.kind === "string"), true);
});

Deno.test("a mark is cut out of the tokens that it touches", () => {
  const some = withMark([{ text: "price", kind: "a" }, { text: " = 30", kind: "b" }], [3, 7]);
  same(some.map((each) => [each.text, each.mark || false]), [["pri", false], ["ce", true], [" =", true], [" 30", false]]);
});

Deno.test("what we do not know has no colours", () => {
  same(languageOf("a/b.unknown"), "");
  same(coloured(hljs, "", ["x"]), null);
});
