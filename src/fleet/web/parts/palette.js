// Find a task by any word, text in transcripts, an agent, a node, or something to do.
import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { call, signOut, toast } from "../call.js";
import { loadMore } from "../live.js";
import { go, rail } from "../router.js";
import { matcher } from "../screens/tasks.js";
import { may, me, numberOf, overlay, tasks, version } from "../store.js";
import { useAgents } from "./agents.js";
import { confirm, Dialog } from "./dialog.js";
import { Status, turnTheme } from "./show.js";

/** `group`: named above the first of its choices. @typedef {{ key: string, group: string, label: string, note?: any, run: () => void }} Choice */

const MORE = /** @type {[string, string][]} */ ([["/tasks?as=board", "Board"], ["/tasks?as=graph", "Graph"]]);
const BUSY = new Set(["running", "starting", "ready"]);

/** Do it to each, a few at a time, and say how many there were. @param {"task.pause" | "task.resume"} name @param {Set<string>} statuses @param {{ title: string, yes: string, done: string }} words */
async function toEach(name, statuses, { title, yes, done }) {
  await loadMore(["active"], true);
  const ids = [...tasks.values()].filter((row) => statuses.has(row.status)).map((row) => row.id);
  if (!ids.length) return toast("There is none.");
  if (!await confirm({ title: `${title} ${ids.length} ${ids.length === 1 ? "task" : "tasks"}?`, text: "What runs finishes its current run first. Nothing that was done is lost.", yes })) return;
  let count = 0;
  for (let at = 0; at < ids.length; at += 8) {
    const some = await Promise.allSettled(ids.slice(at, at + 8).map((task) => call(name, { task })));
    count += some.filter((each) => each.status === "fulfilled").length;
  }
  toast(`${count} ${count === 1 ? "task" : "tasks"} ${done}.`);
}

/** `open`: to show this over the page. @type {{ label: string, needs: string, open?: string, run?: () => unknown }[]} */
const ACTIONS = [
  { label: "New task", needs: "add", open: "new" },
  { label: "Pause everything that runs or is ready", needs: "assign", run: () => toEach("task.pause", BUSY, { title: "Pause", yes: "Pause them", done: "paused" }) },
  { label: "Resume everything that is paused", needs: "assign", run: () => toEach("task.resume", new Set(["paused"]), { title: "Resume", yes: "Resume them", done: "resumed" }) },
  { label: "Light or dark", needs: "", run: turnTheme },
  { label: "Show the keys", needs: "", open: "keys" },
  { label: "Sign out", needs: "", run: () => signOut() },
];
const MOST = 12;
const MOST_NAMES = 6;

/** The agents and nodes that have these words in their names. @param {string} words @param {(path: string) => () => void} to @returns {Choice[]} */
function useNames(words, to) {
  const { agents, nodes } = useAgents();
  if (!words) return [];
  const some = (/** @type {string[]} */ names) => names.filter((name) => name.toLowerCase().includes(words)).slice(0, MOST_NAMES);
  return [
    ...some(agents).map((name) => ({ key: `agent ${name}`, group: "Agents", label: name, run: to(`/tasks?view=all&q=agent:${encodeURIComponent(name)}`) })),
    ...some(nodes).map((name) => ({ key: `node ${name}`, group: "Nodes", label: name, run: to(`/machines?node=${encodeURIComponent(name)}`) })),
  ];
}

/** The settings that have these words, with where each is set, for who may know. @param {string} text @param {(text: string) => void} copy @returns {Choice[]} */
function useSettings(text, copy) {
  const [rows, setRows] = useState(/** @type {import("../api.d.ts").SettingRow[]} */ ([]));
  useEffect(() => {
    setRows([]);
    const words = text.trim();
    if (words.length < 3 || !may("admin")) return;
    let gone = false;
    const timer = setTimeout(() => call("setting.find", { words, limit: MOST_NAMES }).then((found) => gone || setRows(found), () => {}), 250);
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [text]);
  return rows.map((row) => ({
    key: `setting ${row.setting}`, group: "Settings", label: `${row.setting} = ${row.text}`, note: html`<small><bdi>${row.origin}</bdi></small>`,
    run: () => copy(row.setting),
  }));
}

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

/** @param {{ close: () => void }} props */
export default function Palette({ close }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(""); // the key of the chosen one: others may come before it
  const hits = useHits(text);
  const words = text.trim().toLowerCase();
  const to = (/** @type {string} */ path) => () => {
    close();
    go(path);
  };
  const names = useNames(words, to);
  const settings = useSettings(text, (name) => {
    close();
    const typed = `fleet config get ${name} --show-origin`;
    navigator.clipboard?.writeText(typed).catch(() => {});
    toast(`Copied: ${typed}`);
  });
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  const choices = useMemo(() => {
    /** @type {Choice[]} */
    const actions = (me.value ? ACTIONS : []).filter((each) => (!each.needs || may(each.needs)) && each.label.toLowerCase().includes(words))
      .map((each) => ({ key: each.label, group: "Do", label: each.label, run: () => { close(); each.open ? (overlay.value = each.open) : each.run?.(); } }));
    const screens = /** @type {[string, string][]} */ (rail().map(({ to: where, name }) => [where, name]));
    /** @type {Choice[]} */
    const places = [...screens, ...MORE].filter(([, name]) => `go to ${name}`.toLowerCase().includes(words))
      .map(([path, name]) => ({ key: path, group: "Go to", label: name, run: to(path) }));
    const rows = [...tasks.values()].filter(matcher(words)).sort((one, other) => numberOf(other.id) - numberOf(one.id));
    const found = rows.slice(0, MOST).map((row) => ({
      key: row.id, group: "Tasks", label: `${row.id}  ${row.title}`, note: html`<${Status} status=${row.status} />`, run: to(`/t/${row.id}`),
    }));
    const known = new Set(found.map((each) => each.key));
    const texts = hits.filter((hit) => !known.has(hit.task)).map((hit) => ({
      key: `${hit.task} ${hit.where} ${hit.run}`, group: "In prompts and transcripts", label: `${hit.task}  ${hit.text}`, note: html`<small>${hit.where}</small>`, run: to(`/t/${hit.task}`),
    }));
    return words ? [...found, ...names, ...places, ...actions, ...settings, ...texts] : [...places, ...actions, ...found];
  }, [text, hits, version.value, me.value, [...names, ...settings].map((each) => each.key).join()]);
  const chosen = Math.max(0, choices.findIndex((each) => each.key === at));
  const choose = (/** @type {number} */ index) => setAt(choices[Math.max(0, Math.min(index, choices.length - 1))]?.key || "");
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    if (event.key === "ArrowDown") choose(chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen - 1);
    else if (event.key === "Enter") choices[chosen]?.run();
    else return;
    event.preventDefault();
  };
  return html`<${Dialog} title="Search and do" close=${close} wide>
    <input role="combobox" aria-expanded="true" aria-controls="choices" aria-activedescendant=${choices.length ? `choice-${chosen}` : undefined}
      aria-label="Search" autofocus placeholder="Tasks, transcripts, settings …" value=${text} onKeyDown=${press}
      onInput=${(/** @type {any} */ event) => { setText(event.target.value); setAt(""); }} />
    <div class="choices" id="choices" ref=${list} role="listbox" aria-label="Results">${choices.map((choice, index) =>
      html`${choice.group !== choices[index - 1]?.group && html`<span class="of-group" role="presentation">${choice.group}</span>`}<div key=${choice.key} id=${`choice-${index}`} role="option" aria-selected=${index === chosen} onPointerMove=${() => choose(index)} onClick=${choice.run}>
        <bdi>${choice.label}</bdi>${choice.note}</div>`)}</div>
    ${!choices.length && html`<p class="soft">Nothing found.</p>`}
  <//>`;
}
