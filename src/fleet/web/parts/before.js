// What one looks at before one acts on an item of the inbox: the screen that asks, what the gate printed, what conflicts.
import { html } from "../vendor/preact.js";
import { call } from "../call.js";
import { may } from "../store.js";
import { plain } from "./ansi.js";
import { useLoaded } from "./show.js";

/** @typedef {import("../api.d.ts").InboxItem} Item */

const LINES = 8;
const FRESH = 15_000; // milliseconds

/** @param {string[]} lines */
const lastOf = (lines) => plain(lines.filter((line) => line.trim()).slice(-LINES).join("\n"));

/** @type {Record<string, (item: Item) => Promise<{ name: string, text: string }>>} */
const EXCERPTS = {
  async permission(item) {
    const screen = await call("run.screen", { name: item.run || "" });
    return { name: screen.rule ? `Its screen, by the rule ${screen.rule}` : "Its screen", text: lastOf(screen.lines) };
  },
  async landing(item) {
    const { evidence } = await call("land.show", { landing: item.id.slice(item.id.lastIndexOf(":") + 1) });
    return { name: "What its gate printed last", text: evidence?.failed ? lastOf((evidence.output || "").split("\n")) : "" };
  },
};

/** @param {{ item: Item }} props */
export default function Before({ item }) {
  if (item.kind === "permission" && !may("answer")) return null;
  return EXCERPTS[item.kind] ? html`<${Excerpt} item=${item} />` : html`<${Conflicts} task=${item.task || ""} />`;
}

/** @param {{ item: Item }} props */
function Excerpt({ item }) {
  const { data } = useLoaded(() => EXCERPTS[item.kind](item), [item.id]);
  if (!data?.text) return null;
  return html`<figure class="excerpt"><figcaption>${data.name}</figcaption><pre tabindex="0" aria-label=${data.name}><bdi>${data.text}</bdi></pre></figure>`;
}

let foreseen = { at: -FRESH, rows: /** @type {Promise<import("../api.d.ts").ForecastRow[]>} */ (Promise.resolve([])) };

/** Asked once for all items. */
function forecast() {
  if (performance.now() - foreseen.at > FRESH) foreseen = { at: performance.now(), rows: call("land.forecast", {}) };
  return foreseen.rows;
}

/** @param {{ task: string }} props */
function Conflicts({ task }) {
  const { data } = useLoaded(forecast, [task]);
  const row = data?.find((each) => each.task === task);
  if (!row?.conflicts.length && !row?.rivals.length) return null;
  const files = row.conflicts.slice(0, 3).join(", ");
  return html`<p class="conflicts warn-text">Conflicts with ${row.rivals.slice(0, 4).join(", ") || row.onto}${files && html` in <bdi>${files}</bdi>`}</p>`;
}
