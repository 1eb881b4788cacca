// Find a task by any word, text in transcripts, or something to do.
import { html, useEffect, useMemo, useState } from "../vendor/preact.js";
import { call, toast } from "../call.js";
import { loadMore } from "../live.js";
import { go } from "../router.js";
import { matcher } from "../screens/tasks.js";
import { rail } from "../screens.js";
import { may, numberOf, tasks, version } from "../store.js";
import { confirm, Dialog } from "./dialog.js";
import { Status } from "./show.js";

/** @typedef {{ key: string, label: string, note?: any, run: () => void }} Choice */

const MORE = /** @type {[string, string][]} */ ([["/tasks?as=board", "Board"], ["/tasks?as=graph", "Graph"]]);
const BUSY = new Set(["running", "starting", "ready"]);

/** Do it to each, a few at a time, and say how many there were. @param {"task.pause" | "task.resume"} name @param {Set<string>} statuses @param {{ title: string, yes: string, done: string }} words */
async function toEach(name, statuses, { title, yes, done }) {
  await loadMore(["active"], true);
  const ids = [...tasks.values()].filter((row) => statuses.has(row.status)).map((row) => row.id);
  if (!ids.length) return toast("There is none.");
  if (!await confirm({ title: `${title} ${ids.length} ${ids.length === 1 ? "task" : "tasks"}?`, text: "Nothing that was done is lost.", yes })) return;
  let count = 0;
  for (let at = 0; at < ids.length; at += 8) {
    const some = await Promise.allSettled(ids.slice(at, at + 8).map((task) => call(name, { task })));
    count += some.filter((each) => each.status === "fulfilled").length;
  }
  toast(`${count} ${count === 1 ? "task" : "tasks"} ${done}.`);
}

/** @type {{ label: string, needs: string, run: () => unknown }[]} */
const ACTIONS = [
  { label: "Pause everything that runs or is ready", needs: "assign", run: () => toEach("task.pause", BUSY, { title: "Pause", yes: "Pause them", done: "paused" }) },
  { label: "Resume everything that is paused", needs: "assign", run: () => toEach("task.resume", new Set(["paused"]), { title: "Resume", yes: "Resume them", done: "resumed" }) },
];
const MOST = 12;

/** What the server finds in prompts and transcripts, a moment after typing ends. @param {string} text */
function useHits(text) {
  const [hits, setHits] = useState(/** @type {import("../api.d.ts").Hit[]} */ ([]));
  useEffect(() => {
    setHits([]);
    if (text.trim().length < 3) return;
    loadMore(["active", "closed"], true); // for branches and labels of older tasks
    let gone = false;
    const timer = setTimeout(() => {
      call("search.find", { text, limit: 8 }).then((found) => gone || setHits(found), () => {});
    }, 250);
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [text]);
  return hits;
}

/** @param {{ close: () => void, extra?: [string, string][] }} props */
export default function Palette({ close }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const hits = useHits(text);
  const choices = useMemo(() => {
    const to = (/** @type {string} */ path) => () => {
      close();
      go(path);
    };
    const words = text.trim().toLowerCase();
    /** @type {Choice[]} */
    const actions = ACTIONS.filter((each) => may(each.needs) && each.label.toLowerCase().includes(words))
      .map((each) => ({ key: each.label, label: each.label, run: () => { close(); each.run(); } }));
    const screens = /** @type {[string, string][]} */ (rail().map(({ to: where, name }) => [where, name]));
    /** @type {Choice[]} */
    const places = [...screens, ...MORE].filter(([, name]) => `go to ${name}`.toLowerCase().includes(words))
      .map(([path, name]) => ({ key: path, label: `Go to ${name}`, run: to(path) }));
    const rows = [...tasks.values()].filter(matcher(words)).sort((one, other) => numberOf(other.id) - numberOf(one.id));
    const found = rows.slice(0, MOST).map((row) => ({
      key: row.id, label: `${row.id}  ${row.title}`, note: html`<${Status} status=${row.status} />`, run: to(`/t/${row.id}`),
    }));
    const known = new Set(found.map((each) => each.key));
    const texts = hits.filter((hit) => !known.has(hit.task)).map((hit) => ({
      key: `${hit.task} ${hit.where} ${hit.run}`, label: `${hit.task}  ${hit.text}`, note: html`<small>${hit.where}</small>`, run: to(`/t/${hit.task}`),
    }));
    return words ? [...found, ...texts, ...places, ...actions] : [...places, ...actions, ...found];
  }, [text, hits, version.value]);
  const chosen = Math.min(at, choices.length - 1);
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    if (event.key === "ArrowDown") setAt(Math.min(chosen + 1, choices.length - 1));
    else if (event.key === "ArrowUp") setAt(Math.max(chosen - 1, 0));
    else if (event.key === "Enter") choices[chosen]?.run();
    else return;
    event.preventDefault();
  };
  return html`<${Dialog} title="Search and do" close=${close} wide>
    <input role="combobox" aria-expanded="true" aria-controls="choices" aria-activedescendant=${choices.length ? `choice-${chosen}` : undefined}
      aria-label="Search" autofocus placeholder="A word of a title, a branch, a transcript …" value=${text} onKeyDown=${press}
      onInput=${(/** @type {any} */ event) => { setText(event.target.value); setAt(0); }} />
    <div class="choices" id="choices" role="listbox" aria-label="Results">${choices.map((choice, index) =>
      html`<div key=${choice.key} id=${`choice-${index}`} role="option" aria-selected=${index === chosen} onPointerMove=${() => setAt(index)} onClick=${choice.run}>
        <bdi>${choice.label}</bdi>${choice.note}</div>`)}</div>
    ${!choices.length && html`<p class="soft">Nothing found.</p>`}
  <//>`;
}
