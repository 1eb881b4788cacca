// What the page writes for times, money and numbers.
import { duration, money, short } from "../../../src/fleet/web/parts/format.js";
import { same } from "./same.js";


Deno.test("a duration has its largest unit", () => {
  same(duration(0), "0s");
  same(duration(59.9), "59s");
  same(duration(3600), "1h");
  same(duration(90000), "1d");
});

Deno.test("money below a cent is not nothing", () => {
  same(money(0), "");
  same(money(1), "<$0.01");
  same(money(1_500_000), "$1.50");
  same(money(120_000_000, true), "$120 est.");
});

Deno.test("numbers are short", () => {
  same(short(999), "999");
  same(short(1500), "1.5k");
  same(short(25_000), "25k");
  same(short(2_500_000), "2.5M");
});
