// What a run's coder said and did: one form for all coders, any length, live, and searchable.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { call, complain } from "../call.js";
import { useKeys } from "../keys.js";
import { watch } from "../live.js";
import { plain } from "../parts/ansi.js";
import { Markdown } from "../parts/markdown.js";
import { useRows } from "../parts/rows.js";
import { Empty, Icon, Loading, money, short, Trouble } from "../parts/show.js";

/** @typedef {import("../api.d.ts").SaidRow} SaidRow */
/** @typedef {import("../api.d.ts").SaidPage} SaidPage */
/** @typedef {{ rows: SaidRow[], first: number, last: number, total: number, live: boolean, coder: string }} Window */

const PAGE = 300; // lines
const MOST = 4000; // rows that are kept; those far from where one reads are let go
const NEAR = 600; // pixels from an edge at which more is loaded
const FOLDED = 12; // lines of a result that are shown
/** What one jumps to: a turn begins or ends, a person said something, or must. @type {import("../api.d.ts").ReadSaid["kinds"]} */
const TURNS = ["turn", "result", "heard", "wants", "limit", "full", "error"];
const MOST_TURNS = 200;
const QUIET = new Set(["session", "usage"]);

/** @param {{ detail: import("../api.d.ts").TaskDetail }} props */
export default function Transcript({ detail }) {
  const runs = detail.runs;
  const [chosen, setChosen] = useState("");
  const run = chosen || runs.at(-1)?.id || "";
  if (!run) return html`<${Empty} icon="clock" title="Nothing said yet"><p>What its agent says and does appears here once it runs.</p><//>`;
  return html`<${Reading} key=${run} run=${run} runs=${runs.map((each) => each.id)} choose=${setChosen} />`;
}

/** The lines around one place, and what loads more. @param {string} run */
function useWindow(run) {
  const [state, setState] = useState(/** @type {{ data?: Window, error?: any }} */ ({}));
  const now = useRef(state);
  now.current = state;
  const busy = useRef(false);
  const set = (/** @type {SaidPage} */ page, /** @type {SaidRow[]} */ rows, /** @type {number} */ first, /** @type {number} */ last) =>
    setState({ data: { rows, first, last, total: page.total, live: page.live, coder: page.coder } });
  const load = async (/** @type {any} */ where, /** @type {(page: SaidPage) => void} */ take) => {
    if (busy.current) return;
    busy.current = true;
    try {
      take(await call("run.said", { run, limit: PAGE, ...where }));
    } catch (error) {
      setState((before) => ({ ...before, error }));
    } finally {
      busy.current = false;
    }
  };
  const replace = (/** @type {any} */ where) => load(where, (page) => set(page, shown(page.rows), page.first, page.last));
  const earlier = () =>
    now.current.data && now.current.data.first > 1 && load({ before: now.current.data.first }, (page) => {
      const data = /** @type {Window} */ (now.current.data);
      const rows = [...shown(page.rows), ...data.rows];
      set(page, rows.slice(0, MOST), page.first, rows.length > MOST ? rows[MOST - 1].line : data.last);
    });
  const add = (/** @type {SaidPage} */ page) => {
    const data = now.current.data;
    if (!data || page.last <= data.last && page.live === data.live) return;
    const rows = [...data.rows, ...shown(page.rows).filter((row) => row.line > data.last)];
    set(page, rows.slice(-MOST), rows.length > MOST ? rows[rows.length - MOST].line : data.first, Math.max(page.last, data.last));
  };
  const later = () => now.current.data && now.current.data.last < now.current.data.total && load({ after: now.current.data.last }, add);
  useEffect(() => {
    replace({});
  }, [run]);
  const live = state.data?.live && state.data.last >= state.data.total;
  useEffect(() => {
    if (!live) return;
    return watch({ kind: "said", name: run, after: () => now.current.data?.last || 0, hear: (frame) => add(frame.page) });
  }, [run, live]);
  return { ...state, earlier, later, replace };
}

/** @param {SaidRow[]} rows */
const shown = (rows) => rows.filter((row) => row.text || row.failed || SPEAKS[row.kind]?.(row));

/** Those that say something without a text. @type {Record<string, (row: SaidRow) => unknown>} */
const SPEAKS = { turn: () => true, result: () => true, tool: (row) => row.name, wants: (row) => row.name, usage: (row) => row.usage };

/** @param {{ run: string, runs: string[], choose: (run: string) => void }} props */
function Reading({ run, runs, choose }) {
  const { data, error, earlier, later, replace } = useWindow(run);
  const [found, setFound] = useState(/** @type {{ text: string, page: SaidPage } | null} */ (null));
  const [target, setTarget] = useState(0);
  const [follow, setFollow] = useState(true);
  const open = async (/** @type {number} */ line) => {
    setFound(null);
    setFollow(false);
    await replace({ after: Math.max(0, line - 60) });
    setTarget(line);
  };
  const turns = async () => {
    if (found) return setFound(null);
    const page = await call("run.said", { run, kinds: TURNS, limit: MOST_TURNS }).catch(complain);
    if (page) setFound({ text: "", page });
  };
  useKeys([{ key: "t", what: "List the turns, to jump to one", run: turns }], [run, found]);
  const bar = html`<div class="said-bar">
    ${runs.length > 1 && html`<select aria-label="Run" value=${run} onChange=${(/** @type {any} */ event) => choose(event.target.value)}>
      ${runs.map((id) => html`<option value=${id}>${id}</option>`)}</select>`}
    <${Find} run=${run} setFound=${setFound} />
    <span class="grow"></span>
    ${data && html`<span class="soft number">${data.total} lines</span>`}
    <button class="quiet" aria-pressed=${found?.text === ""} onClick=${turns}>Turns</button>
    <button class="quiet" onClick=${() => { setFollow(false); setTarget(1); replace({ after: 0 }); }} disabled=${!data || data.first <= 1}>First</button>
    <button class="quiet" onClick=${() => { setFollow(true); setTarget(0); replace({}); }} disabled=${!data}>Last</button>
  </div>`;
  if (error && !data) return html`<${Trouble} error=${error} />`;
  return html`<div class="said-page">${bar}
    ${found ? html`<${Hits} found=${found} open=${open} />`
      : !data ? html`<${Loading} rows=${6} />`
      : !data.rows.length ? html`<${Empty} icon="clock" title="Nothing said yet"><p>${data.live ? "Its agent is at work." : "This run ended without a word."}</p><//>`
      : html`<${Lines} data=${data} earlier=${earlier} later=${later} target=${target} follow=${follow} setFollow=${setFollow} />`}
  </div>`;
}

/** @param {{ run: string, setFound: (found: any) => void }} props */
function Find({ run, setFound }) {
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const [text, setText] = useState("");
  useKeys([{ key: "f", what: "Search the transcript", run: () => field.current?.focus() }], []);
  useEffect(() => {
    if (text.trim().length < 2) {
      setFound(null);
      return;
    }
    let gone = false;
    const timer = setTimeout(() => {
      call("run.said", { run, text: text.trim(), limit: 200 }).then((page) => gone || setFound({ text: text.trim(), page }), complain);
    }, 250);
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [text, run]);
  return html`<input ref=${field} type="search" class="filter" aria-label="Search the transcript" placeholder="Search the transcript" value=${text}
    onInput=${(/** @type {any} */ event) => setText(event.target.value)} />`;
}

/** @param {{ found: { text: string, page: SaidPage }, open: (line: number) => void }} props */
function Hits({ found, open }) {
  const rows = shown(found.page.rows);
  if (!rows.length) {
    const all = found.page.first <= 1;
    if (!found.text) return html`<${Empty} icon="clock" title="No turns"><p>Its program does not say where a turn begins.</p><//>`;
    return html`<${Empty} icon="search" title="Not found"><p>${all ? "Nothing in this run says that." : `Nothing in the last ${found.page.total - found.page.first + 1} lines says that.`}</p><//>`;
  }
  return html`<ul class="hits">${rows.map((row, at) =>
    html`<li key=${at}><button class="quiet" onClick=${() => open(row.line)}><span class="number soft">${row.line}</span>
      <span class="tag">${row.kind.replace("_", " ")}</span><bdi><${Marked} text=${around(plain(`${row.name} ${row.text}`), found.text)} word=${found.text} /></bdi></button></li>`)}</ul>`;
}

/** @param {string} text @param {string} word */
function around(text, word) {
  const at = text.toLowerCase().indexOf(word.toLowerCase());
  return text.slice(Math.max(0, at - 60), at + 140).replace(/\s+/g, " ");
}

/** @param {{ text: string, word: string }} props */
function Marked({ text, word }) {
  const at = word ? text.toLowerCase().indexOf(word.toLowerCase()) : -1;
  if (at < 0) return text;
  return html`${text.slice(0, at)}<mark>${text.slice(at, at + word.length)}</mark>${text.slice(at + word.length)}`;
}

/** @param {{ data: Window, earlier: () => unknown, later: () => unknown, target: number, follow: boolean, setFollow: (follow: boolean) => void }} props */
function Lines({ data, earlier, later, target, follow, setFollow }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const [open, setOpen] = useState(/** @type {Set<string>} */ (new Set()));
  const ids = keysOf(data.rows);
  const sheet = useRows({ count: data.rows.length, box, key: (at) => ids[at], estimate: (at) => guess(data.rows[at]), padding: 16 });
  const anchor = useRef({ key: "", by: 0 });
  useLayoutEffect(() => { // rows were added above: what one reads stays where it is
    const { key, by } = anchor.current;
    const at = key ? ids.indexOf(key) : -1;
    if (at > 0 && !follow) sheet.scrollToOffset(sheet.getOffsetForIndex(at, "start")[0] + by);
  }, [data.first]);
  useLayoutEffect(() => {
    if (follow) sheet.scrollToIndex(data.rows.length - 1, { align: "end" });
  }, [data.rows.length, data.last, follow]);
  useLayoutEffect(() => {
    if (!target) return;
    const at = data.rows.findIndex((row) => row.line >= target);
    if (at >= 0) sheet.scrollToIndex(at, { align: "center" });
  }, [target]);
  const scrolled = () => {
    const element = box.current;
    if (!element) return;
    const left = element.scrollHeight - element.scrollTop - element.clientHeight;
    if (left < 4 && data.last >= data.total) setFollow(true);
    else if (left > 80 && follow && !sheet.isScrolling) setFollow(false);
    const [top] = sheet.getVirtualItems();
    if (top) anchor.current = { key: String(top.key), by: element.scrollTop - top.start };
    if (element.scrollTop < NEAR) earlier();
    if (left < NEAR) later();
  };
  const toggle = (/** @type {string} */ key) => {
    const next = new Set(open);
    next.delete(key) || next.add(key);
    setOpen(next);
  };
  const wheel = () => setFollow(false);
  return html`<div class="said list" role="log" aria-label="Transcript" aria-live="off" tabindex="0" ref=${box} onScroll=${scrolled}
      onWheel=${(/** @type {WheelEvent} */ event) => event.deltaY < 0 && wheel()} onTouchMove=${wheel}>
    <div class="sheet" style=${{ height: `${sheet.getTotalSize()}px` }}>
      ${sheet.getVirtualItems().map((/** @type {any} */ item) =>
        html`<div key=${item.key} data-index=${item.index} ref=${sheet.measureElement} style=${{ transform: `translateY(${item.start}px)` }}>
          <${Line} row=${data.rows[item.index]} open=${open.has(item.key)} toggle=${() => toggle(item.key)} marked=${data.rows[item.index].line === target} /></div>`)}
    </div>
    ${!follow && data.live && html`<button class="more down" onClick=${() => setFollow(true)}>Follow</button>`}
  </div>`;
}

/** A key for each row: its line, and its place among those of the line. @param {SaidRow[]} rows */
function keysOf(rows) {
  let line = 0;
  let place = 0;
  return rows.map((row) => {
    place = row.line === line ? place + 1 : 0;
    line = row.line;
    return `${line}.${place}`;
  });
}

/** @param {SaidRow} row */
function guess(row) {
  if (row.kind === "text") return 20 + 22 * Math.min(40, Math.ceil(row.text.length / 110) + row.text.split("\n", 40).length - 1);
  return QUIET.has(row.kind) || row.kind === "turn" ? 30 : 40;
}

/** @type {Record<string, string>} */
const ALERTS = { limit: "Rate limit", spent: "Budget spent", full: "Context full", error: "Error", wants: "Asks for permission" };

/** @param {{ row: SaidRow, open: boolean, toggle: () => void, marked: boolean }} props */
function Line({ row, open, toggle, marked }) {
  const inside = lineOf(row, open, toggle);
  return html`<article class=${`line-said ${row.kind} ${row.failed ? "failed" : ""} ${marked ? "marked" : ""}`}>
    <span class="no" aria-hidden="true">${row.line}</span><div class="what">${inside}</div></article>`;
}

/** @param {SaidRow} row @param {boolean} open @param {() => void} toggle */
function lineOf(row, open, toggle) {
  const text = plain(row.text) + (row.cut ? " …" : "");
  switch (row.kind) {
    case "text":
      return html`<${Markdown} text=${text} />`;
    case "session":
      return html`<p class="tick">Session <code>${text}</code></p>`;
    case "turn":
      return html`<div class="rule"><span>Turn${row.name ? ` ${row.name}` : ""}</span></div>`;
    case "result":
      return html`<div class="rule"><span>${row.failed ? "The turn failed" : "The turn ended"}</span></div>${row.failed && text && html`<pre class="prose bad"><bdi>${text}</bdi></pre>`}`;
    case "thinking":
      return html`<${Fold} label="Thinking" text=${text} open=${open} toggle=${toggle} />`;
    case "tool":
      return html`<${Fold} label=${row.name || "Tool"} text=${text} open=${open} toggle=${toggle} code />`;
    case "tool_result":
      return html`<${Result} text=${text} failed=${row.failed} open=${open} toggle=${toggle} />`;
    case "heard":
      return html`<div class="heard"><span class="soft">To the agent</span><pre class="prose"><bdi>${text || row.name}</bdi></pre></div>`;
    case "answered":
      return html`<p class="soft">Answered: <bdi>${text || row.name}</bdi></p>`;
    case "usage":
      return html`<p class="tick">${usage(row)}</p>`;
    default:
      return html`<div class=${`say ${row.kind === "wants" || row.kind === "limit" ? "warn" : "bad"}`}><b>${ALERTS[row.kind] || row.kind}</b> <bdi>${row.name} ${text}</bdi></div>`;
  }
}

/** @param {SaidRow} row */
function usage(row) {
  const use = row.usage || {};
  return [`${short(use.input)} in`, `${short(use.output)} out`, use.context && `${short(use.context)} context`, money(use.cost || 0, use.estimated)]
    .filter(Boolean).join(" · ");
}

/** @param {{ label: string, text: string, open: boolean, toggle: () => void, code?: boolean }} props */
const Fold = ({ label, text, open, toggle, code }) =>
  html`<div class="fold"><button class="quiet" aria-expanded=${open} onClick=${toggle}><${Icon} name="chevron" /><b>${label}</b>
    ${!open && html`<span><bdi>${text.slice(0, 240).replace(/\s+/g, " ")}</bdi></span>`}</button>
    ${open && html`<pre class=${code ? "code" : "prose soft"}><bdi>${text}</bdi></pre>`}</div>`;

/** @param {{ text: string, failed: boolean, open: boolean, toggle: () => void }} props */
function Result({ text, failed, open, toggle }) {
  const lines = text.split("\n");
  const more = lines.length - FOLDED;
  const seen = open || more <= 0 ? text : lines.slice(0, FOLDED).join("\n");
  return html`<div class=${`result-said ${failed ? "failed" : ""}`}><pre><bdi>${seen.length > 4000 && !open ? `${seen.slice(0, 4000)} …` : seen}</bdi></pre>
    ${more > 0 && html`<button class="quiet" aria-expanded=${open} onClick=${toggle}>${open ? "Fold" : `${more} more lines`}</button>`}</div>`;
}
