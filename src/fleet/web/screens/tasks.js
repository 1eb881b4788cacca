// Every task, live: a table of any length, or a board. Filters are words, kept in the address.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { act, call, toast } from "../call.js";
import { useCursor, useKeys } from "../keys.js";
import { Meter, Switch } from "../parts/data.js";
import { ask, confirm } from "../parts/dialog.js";
import { priorityKeys, Rank } from "../parts/priority.js";
import { AddOne, Ago, Empty, Icon, last, lasted, Loading, money, short, Status, Trouble, useLoaded, usePart } from "../parts/show.js";
import { placed, Virtual } from "../parts/virtual.js";
import { go, query } from "../router.js";
import { begun, loadMore } from "../live.js";
import { complete, connection, counts, further, loaded, may, numberOf, tasks, version } from "../store.js";

/** @typedef {import("../api.d.ts").TaskRow} TaskRow */

const CLOSED = new Set(["done", "cancelled"]);
/** @typedef {typeof counts.value} Counts */
/** Each with how many there are. @type {[string, string, (row: TaskRow) => boolean, (by: Counts) => number][]} */
const VIEWS = [
  ["active", "Active", (row) => !CLOSED.has(row.state), (by) => by.open + by.running + by.review + by.failed],
  ["needs", "Needs you", (row) => ["asking", "failed", "review", "held"].includes(row.status), (by) => by.asking + by.failed + by.review + by.held],
  ["running", "Running", (row) => row.state === "running", (by) => by.running],
  ["waiting", "Waiting", (row) => row.state === "open" && row.status !== "asking", (by) => by.open - by.asking],
  ["done", "Done", (row) => row.state === "done", (by) => by.done],
  ["all", "All", () => true, (by) => by.open + by.running + by.review + by.failed + by.done + by.cancelled],
];
/** Which lists of the server have the tasks of a view. @param {string} view @returns {("active" | "closed")[]} */
const listsOf = (view) => (view === "done" ? ["closed"] : view === "all" ? ["active", "closed"] : ["active"]);

/** Whether a row matches every word: `status:asking agent:planner label:ui`, or text of its title. @param {string} words */
export function matcher(words) {
  const tests = words.toLowerCase().split(/\s+/).filter(Boolean).map((word) => {
    const [, field, value] = /^(status|agent|coder|model|label|parent|project|team|is):(.*)$/.exec(word) || [];
    /** @param {TaskRow} row */
    return (row) => {
      if (field === "label") return row.labels.some((label) => label.toLowerCase().includes(value));
      if (field === "is") return VIEWS.some(([name, , test]) => name === value && test(row));
      if (field) return String(row[/** @type {keyof TaskRow} */ (field)]).toLowerCase().includes(value);
      return `${row.id} ${row.title} ${row.run?.branch || ""} ${row.labels.join(" ")}`.toLowerCase().includes(word);
    };
  });
  return (/** @type {TaskRow} */ row) => tests.every((test) => test(row));
}

/** The order in which groups of statuses are listed: what needs a person first. */
const STATUSES = [
  "asking", "failed", "review", "held", "running", "starting", "stopping", "children", "landing", "ready", "waiting",
  "postponed", "assigned", "paused", "done", "landed", "beaten", "cancelled",
];
/** By what the table can be grouped. @type {Record<string, (row: TaskRow, parents: Set<string>) => string>} */
const GROUPS = {
  status: (row) => row.status,
  agent: (row) => row.agent || row.coder,
  project: (row) => last(row.project),
  parent: (row, parents) => row.parent || (parents.has(row.id) ? row.id : ""),
};
/** The order of two groups. @type {Record<string, (one: string, other: string) => number>} */
const ORDERS = {
  status: (one, other) => STATUSES.indexOf(one) - STATUSES.indexOf(other),
  parent: (one, other) => numberOf(other) - numberOf(one), // the newest first, those without one last
};
/** How a group is named. @param {string} by @param {string} name */
function nameOf(by, name) {
  if (by !== "parent") return name;
  return name ? `${name} ${tasks.get(name)?.title || ""}` : "Without a parent";
}

/**
 * The rows in their groups, each behind a line with its name and how many there are.
 * @param {TaskRow[]} rows @param {string} by @returns {({ row: TaskRow } | { name: string, count: number })[]}
 */
function grouped(rows, by) {
  const of = GROUPS[by];
  if (!of) return rows.map((row) => ({ row }));
  const parents = new Set(rows.map((row) => row.parent || ""));
  const groups = Map.groupBy(rows, (row) => of(row, parents));
  const names = [...groups.keys()].sort(ORDERS[by] || ((one, other) => one.localeCompare(other)));
  return names.flatMap((name) => {
    const some = groups.get(name) || [];
    if (by === "parent") some.sort((one, other) => Number(other.id === name) - Number(one.id === name)); // the parent first
    return [{ name: nameOf(by, name), count: some.length }, ...some.map((row) => ({ row }))];
  });
}

function useNarrow() {
  const [narrow, setNarrow] = useState(matchMedia("(max-width: 760px)").matches);
  useEffect(() => {
    const media = matchMedia("(max-width: 760px)");
    const hear = () => setNarrow(media.matches);
    media.addEventListener("change", hear);
    return () => media.removeEventListener("change", hear);
  }, []);
  return narrow;
}

/** The order stays as it is while the pointer is in the list; how many more there are then. @param {TaskRow[]} wanted @param {boolean} frozen */
function useSteady(wanted, frozen) {
  const shown = useRef(/** @type {string[]} */ ([]));
  const ids = wanted.map((row) => row.id);
  if (!frozen || !shown.current.length) {
    shown.current = ids;
    return { rows: wanted, more: 0 };
  }
  const known = new Set(shown.current);
  const rows = shown.current.map((id) => tasks.get(id)).filter((row) => row !== undefined);
  return { rows: /** @type {TaskRow[]} */ (rows), more: ids.filter((id) => !known.has(id)).length };
}

export default function Tasks() {
  const params = new URLSearchParams(query.value);
  const view = params.get("view") || "active";
  const words = params.get("q") || "";
  const as = params.get("as") || "table";
  const group = params.get("by") || "";
  const board = as !== "table";
  const set = (/** @type {Record<string, string>} */ changes) => {
    const next = new URLSearchParams(query.value);
    for (const [name, value] of Object.entries(changes)) value ? next.set(name, value) : next.delete(name);
    go(`/tasks${next.size ? `?${next}` : ""}`, { replace: true });
  };
  version.value;
  const all = [...tasks.values()].sort((one, other) => numberOf(other.id) - numberOf(one.id));
  const matching = all.filter(matcher(words));
  const [, , test, total] = VIEWS.find(([name]) => name === view) || VIEWS[0];
  const by = counts.value;
  const any = VIEWS[VIEWS.length - 1][3](by) > 0;
  const lists = listsOf(as === "board" ? "all" : view);
  const whole = lists.every((list) => complete.value[list]);
  const missing = !whole && (words.trim() !== "" || matching.filter(test).length < total(by));
  useEffect(() => {
    const absent = lists.filter((list) => !begun(list));
    if (loaded.value && absent.length) loadMore(absent);
  }, [lists.join(), loaded.value]);
  useEffect(() => {
    if (words.trim() && loaded.value) loadMore(["active", "closed"], true);
  }, [Boolean(words.trim()), loaded.value]);
  const none = missing && !matching.some(test);
  const views = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => { // the chosen one may be beyond the edge of a phone
    views.current?.querySelector("[aria-pressed=true]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [view, board]);
  const live = connection.value === "live";
  useEffect(() => { // what is looked for may be on any later page
    if (none && loaded.value && live) loadMore(lists, true);
  }, [none, loaded.value, live, lists.join()]);
  return html`<section class="tasks" aria-labelledby="tasks-title">
    <header class="head"><h1 id="tasks-title">Tasks</h1>
      <${Filter} words=${words} set=${(/** @type {string} */ q) => set({ q })} />
      <${Switch} label="Show as" value=${as} options=${[["table", "Table"], ["board", "Board"], ["graph", "Graph"]]}
        choose=${(/** @type {string} */ value) => set({ as: value === "table" ? "" : value })} />
    </header>
    ${!board &&
    html`<div class="views" ref=${views} role="group" aria-label="Which tasks">
      ${VIEWS.map(([name, label, is, all]) =>
        html`<button aria-pressed=${view === name} onClick=${() => set({ view: name === "active" ? "" : name })}>${label}<span>${words.trim() ? matching.filter(is).length : all(by)}</span></button>`
      )}<${Saved} words=${words} set=${(/** @type {string} */ q) => set({ q, view: "all" })} />
      <span class="grow"></span>
      <select class="quiet" aria-label="Group by" value=${group} onChange=${(/** @type {any} */ event) => set({ by: event.target.value })}>
        <option value="">No groups</option>${Object.keys(GROUPS).map((name) => html`<option key=${name} value=${name}>By ${name}</option>`)}</select></div>`}
    ${!loaded.value && !all.length
      ? html`<${Loading} rows=${6} />`
      : !any
      ? html`<${NoTasks} />`
      : as === "board"
      ? html`<${Lazy} key="board" load=${loadBoard} rows=${matching} by=${words.trim() ? null : by} />`
      : as === "graph"
      ? html`<${Lazy} key="graph" load=${loadGraph} rows=${matching} filtered=${words.trim() !== ""} />`
      : html`<${Table} rows=${matching.filter(test)} by=${group} words=${words} any=${any} missing=${missing} lists=${lists} total=${words.trim() ? 0 : total(by)} />`}
  </section>`;
}

const loadBoard = () => import("./board.js");
const loadGraph = () => import("./graph.js");

/** @param {{ load: () => Promise<any> } & Record<string, unknown>} props */
function Lazy({ load, ...rest }) {
  const { View, error } = usePart(load);
  if (error) return html`<${Trouble} error=${error} />`;
  return View ? html`<${View} ...${rest} />` : html`<${Loading} />`;
}

/** Filters that the team has saved, and the one in use, to be saved. @param {{ words: string, set: (words: string) => void }} props */
function Saved({ words, set }) {
  const { data, again } = useLoaded(() => call("view.list"), []);
  const views = data || [];
  const known = views.find((view) => view.words === words.trim());
  const save = async () => {
    const name = await ask({ title: "Save this filter", text: words, field: "Its name", yes: "Save", needed: true, choices: [] });
    if (name && (await act("view.save", { name: name.replace(/\s+/g, " "), words }, `Saved as ${name}.`))) again();
  };
  const remove = async () => {
    if (known && (await act("view.remove", { name: known.name }, `Removed ${known.name}.`))) again();
  };
  return html`${views.map((view) => html`<button key=${view.id} aria-pressed=${view === known} onClick=${() => set(view === known ? "" : view.words)}><bdi>${view.name}</bdi></button>`)}
    ${words.trim() && !known && may("add") && html`<button class="quiet" onClick=${save}><${Icon} name="plus" />Save filter</button>`}
    ${known && may("add") && html`<button class="quiet" onClick=${remove}>Remove view</button>`}`;
}

/** @param {{ words: string, set: (words: string) => void }} props */
function Filter({ words, set }) {
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useKeys([{ key: "f", what: "Filter the tasks", run: () => field.current?.focus() }], []);
  return html`<input class="filter" ref=${field} type="search" aria-label="Filter" placeholder="Filter: status:asking label:ui …" value=${words}
    onInput=${(/** @type {any} */ event) => set(event.target.value)}
    onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === "Escape" && field.current?.blur()} />`;
}

/**
 * `missing`: there are more of these, which the page has not loaded; `total` of them, if that is known.
 * `by`: the groups that they are in, if any.
 * @param {{ rows: TaskRow[], by: string, words: string, any: boolean, missing: boolean, lists: ("active" | "closed")[], total: number }} props
 */
function Table({ rows: wanted, by, words, any, missing, lists, total }) {
  const [inside, setInside] = useState(false);
  const [chosen, setChosen] = useState(/** @type {Set<string>} */ (new Set()));
  const narrow = useNarrow();
  const height = narrow ? 62 : 36;
  const { rows: steady, more } = useSteady(wanted, inside && wanted.length > 0 && !words);
  const items = grouped(steady, by);
  const rows = items.flatMap((item) => "row" in item ? [item.row] : []);
  const { id: at, index: cursor, move, set: setAt } = useCursor(rows.map((row) => row.id));
  const toggle = (/** @type {string} */ id) => {
    const next = new Set(chosen);
    next.delete(id) || next.add(id);
    setChosen(next);
  };
  useKeys([
    { key: "j", what: "Next task", run: () => move(1) },
    { key: "k", what: "Previous task", run: () => move(-1) },
    { key: "Enter", what: "Open the task", run: () => rows[cursor] && go(`/t/${rows[cursor].id}`) },
    ...(mayChange() ? [{ key: "x", what: "Select the task", run: () => rows[cursor] && toggle(rows[cursor].id) }] : []),
    ...(may("assign") && rows[cursor] ? priorityKeys(rows[cursor]) : []),
    { key: "Escape", what: "Select none", run: () => setChosen(new Set()) },
  ], [cursor, rows.length, chosen, rows[cursor]?.id, rows[cursor]?.priority]);
  if (!rows.length && missing && further.value !== "full") return html`<${Loading} rows=${6} />`;
  if (!rows.length) {
    return any
      ? html`<${Empty} icon="search" title="No task matches"><p>Change the filter, or choose another group above.</p><${Cut} missing=${missing} total=${total} /><//>`
      : html`<${NoTasks} />`;
  }
  const head = html`<div class="row heads" role="row" aria-rowindex="1">
    ${["Status", "Task", "Title", "Agent", "Last words", "Context", "Tokens", "Cost", "Age"].map((name) =>
      html`<span role="columnheader" class=${`c-${name.split(" ")[0].toLowerCase()}`}>${name}</span>`)}</div>`;
  return html`<div class=${`list ${mayChange() ? "" : "unselectable"} ${connection.value === "lost" ? "stale" : ""}`}
      onPointerEnter=${() => setInside(true)} onPointerLeave=${() => setInside(false)}>
    ${more > 0 && html`<button class="more" onClick=${() => setInside(false)}>${more} new</button>`}
    <${Virtual} count=${items.length} height=${height} at=${items.findIndex((item) => "row" in item && item.row === rows[cursor])} of=${at} label="Tasks" head=${head}
      foot=${html`<${Cut} missing=${missing} total=${total} count=${rows.length} />`} atEnd=${() => missing && loaded.value && loadMore(lists)}
      row=${(/** @type {number} */ index) => {
        const item = items[index];
        if (!("row" in item)) return html`<${Group} key=${`of ${item.name}`} ...${item} index=${index} height=${height} />`;
        const row = item.row;
        return html`<${Row} key=${row.id} row=${row} index=${index} height=${height} current=${row === rows[cursor]}
          chosen=${chosen.has(row.id)} choose=${() => setAt(row.id)} toggle=${toggle} />`;
      }} />
    ${chosen.size > 0 && html`<${Bulk} ids=${[...chosen]} clear=${() => setChosen(new Set())} />`}
  </div>`;
}

const NoTasks = () =>
  html`<${Empty} icon="tasks" title="No tasks yet"><p>Say what an agent shall do, here or with <code>fleet add</code> in a project.</p><${AddOne} /><//>`;

/** What the list lacks, in words. @param {{ missing: boolean, total: number, count?: number }} props */
function Cut({ missing, total, count = 0 }) {
  if (!missing) return null;
  if (further.value === "full") return html`<p class="cut" role="status">The page holds the newest ${tasks.size} tasks; older ones are not searched here. <code>fleet search</code> finds them.</p>`;
  if (further.value) return html`<p class="cut" role="status">Loading older tasks …</p>`;
  return total ? html`<p class="cut" role="status">${count} of ${total}. Scroll on for the rest.</p>` : null;
}

/** @param {{ name: string, count: number, index: number, height: number }} props */
const Group = ({ name, count, index, height }) =>
  html`<div class="row group" role="row" aria-rowindex=${index + 2} style=${placed(index, height)}>
    <span role="cell"><bdi>${name}</bdi> <small>${count}</small></span></div>`;

/** @param {{ row: TaskRow, index: number, height: number, current: boolean, chosen: boolean, choose: () => void, toggle: (id: string) => void }} props */
function Row({ row, index, height, current, chosen, choose, toggle }) {
  const run = row.run;
  const usage = run?.usage || {};
  const tokens = (usage.input || 0) + (usage.output || 0);
  const busy = row.state === "running";
  const waits = row.waits_for?.join(" ");
  return html`<div class="row" role="row" aria-rowindex=${index + 2} style=${placed(index, height)}
      data-current=${current || undefined} data-chosen=${chosen || undefined} onPointerDown=${choose}
      onClick=${(/** @type {Event} */ event) => !(/** @type {Element} */ (event.target)).closest("a, input") && go(`/t/${row.id}`)}>
    <span role="cell" class="c-status">${mayChange() && html`<input type="checkbox" aria-label=${`Select ${row.id}`} checked=${chosen} onChange=${() => toggle(row.id)} />`}<${Status} status=${row.status} /></span>
    <span role="cell" class="c-task"><a href=${`/t/${row.id}`}>${row.id}</a></span>
    <span role="cell" class="c-title"><${Rank} priority=${row.priority} /><bdi>${row.title}</bdi>${row.labels.map((label) => html`<span class="chip">${label}</span>`)}</span>
    <span role="cell" class="c-agent" title=${row.model}>${row.agent || row.coder}${row.model && html` <small>${row.model}${run?.node && ` @ ${run.node}`}</small>`}</span>
    <span role="cell" class="c-last"><bdi>${waits ? `after ${waits}` : run?.setup || run?.last}</bdi></span>
    <span role="cell" class="c-context">${busy && run?.window ? html`<${Context} id=${row.id} used=${usage.context || 0} window=${run.window} />` : ""}</span>
    <span role="cell" class="c-tokens number">${tokens ? short(tokens) : ""}</span>
    <span role="cell" class=${`c-cost number ${spentTone(row)}`}>${row.budget ? `${money(row.spent || 0) || "$0"} of ${money(row.budget)}` : money(usage.cost || 0, usage.estimated)}</span>
    <span role="cell" class="c-age number">${busy && run?.started_at ? lasted(run.started_at) : html`<${Ago} at=${row.created_at} />`}</span>
  </div>`;
}

/** How full the context of its agent is. @param {{ id: string, used: number, window: number }} props */
const Context = ({ id, used, window }) =>
  html`<span title=${`${short(used)} of ${short(window)} tokens`}><${Meter} value=${used} max=${window} label=${`Context of ${id} in use`} />${Math.round((used / window) * 100)} %</span>`;

/** From 80 % of its budget on it warns. @param {TaskRow} row */
const spentTone = ({ spent = 0, budget = 0 }) => (!budget || spent < budget * 0.8 ? "" : spent < budget ? "warn-text" : "bad");

/** Whether this person can do anything with several tasks. */
const mayChange = () => may("assign") || may("merge");

/** @param {{ ids: string[], clear: () => void }} props */
function Bulk({ ids, clear }) {
  const each = async (/** @type {any} */ name, /** @type {string} */ done) => {
    let count = 0;
    for (const task of ids) if (await act(name, { task })) count++;
    if (count) toast(`${count} ${count === 1 ? "task" : "tasks"} ${done}.`);
    clear();
  };
  const cancel = async () => {
    const agreed = await confirm({ title: `Cancel ${ids.length} tasks?`, text: "Their branches and what was done stay.", yes: "Cancel them", danger: true });
    if (agreed) each("task.cancel", "cancelled");
  };
  const land = async () => {
    if (await act("land.add", { tasks: ids }, `${ids.length} queued to land.`)) clear();
  };
  return html`<div class="bulk" role="toolbar" aria-label="Selected tasks"><b>${ids.length} selected</b>
    ${may("assign") && html`<button onClick=${() => each("task.retry", "will run again")}>Retry</button>
      <button onClick=${() => each("task.pause", "paused: what runs finishes its run")}>Pause</button>
      <button onClick=${() => each("task.resume", "resumed")}>Resume</button>`}
    ${may("merge") && html`<button onClick=${land}>Land</button>`}
    ${may("assign") && html`<button onClick=${cancel}>Cancel</button>`}
    <button class="quiet" onClick=${clear} aria-label="Select none"><${Icon} name="x" /></button></div>`;
}
