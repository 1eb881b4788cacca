// What a task changed: a tree of files, lines in colours, and remarks on them for its agent.
import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { act, call, complain } from "../call.js";
import { useKeys } from "../keys.js";
import { onSubmit } from "../parts/dialog.js";
import { coloured, languageOf, withMark } from "../parts/colour.js";
import { Switch } from "../parts/data.js";
import { inOrder, pairs, rowsOf, treeOf } from "../parts/diff_rows.js";
import { useRows } from "../parts/rows.js";
import { Ago, Empty, Icon, Loading, Trouble, useLoaded } from "../parts/show.js";
import { accept, sendBack } from "../parts/verdict.js";
import { go, query } from "../router.js";
import { may } from "../store.js";

/** @typedef {import("../api.d.ts").FileDiff} FileDiff */
/** @typedef {import("../api.d.ts").MessageRow} MessageRow */
/** @typedef {import("../parts/diff_rows.js").DiffRow} DiffRow */
/** @typedef {{ key: string, size: number, view: () => any, file: string, path?: string }} Item */

const WIDE = "(min-width: 1250px)"; // side by side fits
const AGENT = new Set(["review", "done", "landing"]); // its agent can get the work back

/** @type {any} */
let hljs = null;

/** Colours come with the next rendering after the lines are there. @param {boolean} wanted */
function useColours(wanted) {
  const [, setReady] = useState(hljs !== null);
  useEffect(() => {
    if (wanted && !hljs) {
      import("../vendor/hljs.js").then((module) => {
        hljs = module.default;
        setReady(true);
      }, () => {});
    }
  }, [wanted]);
}

/** @param {{ detail: import("../api.d.ts").TaskDetail, row: import("../api.d.ts").TaskRow, again: () => void }} props */
export default function Diff({ detail, row, again }) {
  const [against, setAgainst] = useState(new URLSearchParams(query.value).get("since") || "");
  const wish = { task: row.id, ...(against.startsWith("run ") ? { run: Number(against.slice(4)) } : { against }) };
  const loaded = useLoaded(() => call("task.diff", wish), [row.id, against, detail.runs.length, row.state]);
  const { data, error } = loaded;
  const runs = detail.runs.map((run) => Number(run.id.split(".").pop()));
  const checkpoints = detail.runs.slice(0, -1).filter((run) => run.commit);
  const choice = html`<select aria-label="Compare with" value=${against} onChange=${(/** @type {any} */ event) => setAgainst(event.target.value)}>
    <option value="">Since it began</option><option value="main">Against main now</option>
    ${runs.length > 1 && runs.map((number) => html`<option value=${`run ${number}`}>Only run ${number}</option>`)}
    ${checkpoints.map((run) => html`<option value=${run.commit}>Since the checkpoint of ${run.id} (${run.commit?.slice(0, 8)})</option>`)}</select>`;
  if (error && !data) return html`<div class="diff-bar">${choice}</div><${Trouble} error=${error} again=${loaded.again} />`;
  if (!data) return html`<${Loading} rows=${5} />`;
  if (!data.total) return html`<div class="diff-bar">${choice}</div><${Empty} icon="tasks" title="No changes"><p>Its branch has nothing that the other side has not.</p><//>`;
  return html`<${Files} key=${`${data.start} ${data.end}`} data=${data} wish=${wish} choice=${choice} detail=${detail} row=${row} again=${again} />`;
}

/** Which files one has looked at, of these very changes. @param {string} of */
function useViewed(of) {
  const name = `fleet.viewed.${of}`;
  const [viewed, setViewed] = useState(() => new Set(JSON.parse(localStorage.getItem(name) || "[]")));
  const toggle = (/** @type {string} */ path) => {
    const next = new Set(viewed);
    next.delete(path) || next.add(path);
    setViewed(next);
    try {
      localStorage.setItem(name, JSON.stringify([...next]));
    } catch { /* no room: it is known until the page is loaded again */ }
  };
  return /** @type {[Set<string>, (path: string) => void]} */ ([viewed, toggle]);
}

const AT_ONCE = 300; // lines that are made before the first of them is painted

/** As many files as are seen at first. @param {FileDiff[]} files */
function firstOf(files) {
  let lines = 0;
  const end = files.findIndex((file) => (lines += (file.hunks || []).reduce((sum, hunk) => sum + (hunk.lines || []).length, 1)) > AT_ONCE);
  return end < 0 ? files : files.slice(0, end + 1);
}

/** @param {any} props */
function Files({ data, wish, choice, detail, row, again }) {
  const painted = usePainted();
  useColours(painted);
  const tree = useMemo(() => treeOf(data.files), [data]);
  const [extra, setExtra] = useState(/** @type {Record<string, FileDiff>} */ ({}));
  const [shut, setShut] = useState(/** @type {Record<string, boolean>} */ ({}));
  const [split, setSplit] = useState(matchMedia(WIDE).matches && localStorage.getItem("fleet.diff") === "split");
  const [writing, setWriting] = useState("");
  const [viewed, view] = useViewed(`${row.id}.${data.end.slice(0, 12)}`);
  const files = useMemo(() => inOrder(tree).map((file) => extra[file.path] || file), [tree, extra]);
  const remarks = detail.messages.filter((/** @type {MessageRow} */ message) => message.path);
  const load = (/** @type {string} */ path) =>
    call("task.diff", { ...wish, path }).then(({ files: [file] }) => file && setExtra((before) => ({ ...before, [path]: file })), complain);
  const isShut = (/** @type {FileDiff} */ file) => shut[file.path] ?? (Boolean(file.folded) || viewed.has(file.path));
  const state = { extra, load, isShut, writing, setWriting, remarks, split, task: row.id, again, viewed };
  const toggle = (/** @type {FileDiff} */ file) => {
    setShut({ ...shut, [file.path]: !isShut(file) });
    if (isShut(file) && !file.hunks?.length && !file.binary) load(file.path);
  };
  const items = useMemo(() => (painted ? files : firstOf(files)).flatMap((file) => itemsOf(file, { ...state, toggle, view })),
    [files, painted, shut, viewed, writing, split, detail.messages]);
  const choose = (/** @type {boolean} */ wide) => {
    setSplit(wide);
    localStorage.setItem("fleet.diff", wide ? "split" : "one");
  };
  return html`<div class="diff">
    <div class="diff-bar">${choice}<span class="soft"><b>${data.total}</b> ${data.total === 1 ? "file" : "files"} <span class="plus">+${data.added}</span> <span class="minus">−${data.removed}</span></span>
      <span class="grow"></span>
      ${matchMedia(WIDE).matches && html`<${Switch} label="Show as" value=${split ? "split" : "one"} options=${[["one", "Unified"], ["split", "Split"]]} choose=${(/** @type {string} */ value) => choose(value === "split")} />`}
      <${Judge} row=${row} remarks=${remarks} again=${again} /></div>
    <${Sheet} items=${items} painted=${painted} files=${files} tree=${tree} viewed=${viewed} load=${load} total=${data.total} />
  </div>`;
}

/** What comes of the work, with the remarks that its agent was not told yet. @param {any} props */
function Judge({ row, remarks, again }) {
  const open = remarks.filter((/** @type {MessageRow} */ remark) => remark.state === "open");
  const send = async () => {
    const about = open.length ? `${open.length} ${open.length === 1 ? "remark goes" : "remarks go"} with it.` : "";
    if (await sendBack(row.id, { about, needed: !open.length })) again();
  };
  const tell = async () => {
    const text = open.map((/** @type {MessageRow} */ remark) => `${remark.path}:${remark.line}: ${remark.text}`).join("\n\n");
    if (await act("message.send", { task: row.id, text }, "Its agent reads the remarks.")) again();
  };
  const land = async () => {
    if (await accept(row.id)) go(`/t/${row.id}`);
  };
  const judged = may("merge") && AGENT.has(row.status);
  const busy = may("send") && ["running", "asking"].includes(row.status);
  useKeys([
    ...(judged ? [{ key: "b", what: "Send back, with the remarks", run: send }] : []),
    ...(judged && row.status !== "landing" ? [{ key: "l", what: "Accept: queue it to land", run: land }] : []),
  ], [row.id, row.status, open.length]);
  return html`${judged && html`<button onClick=${send}>Send back${open.length > 0 && html`<span class="badge">${open.length}</span>`}</button>
    ${row.status !== "landing" && html`<button class="primary" onClick=${land}>Accept</button>`}`}
    ${busy && open.length > 0 && html`<button class="primary" onClick=${tell}>Tell its agent <span class="badge">${open.length}</span></button>`}`;
}

/** @param {FileDiff} file @param {any} state @returns {Item[]} */
function itemsOf(file, state) {
  const { path } = file;
  const shut = state.isShut(file);
  const head = { key: `head ${path}`, size: 45, file: path, view: () => html`<${Head} file=${file} shut=${shut} viewed=${state.viewed.has(path)} toggle=${() => state.toggle(file)} view=${() => state.view(path)} />` };
  if (shut) return [head];
  if (file.binary) return [head, note(path, "A binary file.")];
  if (!file.hunks?.length) {
    if (!file.cut) return [head, note(path, file.old_path ? "Only its name changed." : "No lines changed.")];
    return [head, { ...note(path, "Loading …"), path }];
  }
  const tokens = tokensOf(file);
  const lines = file.hunks.flatMap((_, at) => linesOf(file, at, tokens, state));
  return file.cut ? [head, ...lines, note(path, `${file.cut} more lines were left out: open the branch to see them.`)] : [head, ...lines];
}

/** @param {string} file @param {string} text @returns {Item} */
const note = (file, text) => ({ key: `note ${file}`, size: 44, file, view: () => html`<p class="diff-note">${text}</p>` });

/** The tokens of each line, when they are asked for. @param {FileDiff} file */
function tokensOf(file) {
  const language = languageOf(file.path);
  const known = new Map();
  return (/** @type {DiffRow} */ row) => {
    if (!language || !hljs) return null;
    let sides = known.get(row.hunk);
    if (!sides) known.set(row.hunk, sides = sidesOf(row.hunk, language));
    return sides[row.kind === "del" ? "-" : "+"]?.[row.at] || null;
  };
}

/** @param {import("../api.d.ts").Hunk} hunk @param {string} language */
function sidesOf(hunk, language) {
  const lines = hunk.lines || [];
  /** @type {Record<string, any>} */
  const sides = {};
  for (const side of ["+", "-"]) {
    const mine = lines.map((line, at) => ({ at, sign: line[0], text: line.slice(1) })).filter((line) => line.sign === " " || line.sign === side);
    const made = coloured(hljs, language, mine.map((line) => line.text));
    sides[side] = made && Object.fromEntries(mine.map((line, at) => [line.at, made[at]]));
  }
  return sides;
}

/** @param {FileDiff} file @param {number} at @param {any} tokens @param {any} state @returns {Item[]} */
function linesOf(file, at, tokens, state) {
  const hunk = (file.hunks || [])[at];
  const fromTop = hunk.old_start <= 1 && hunk.new_start <= 1 && !hunk.heading; // nothing is left out above it
  const rows = rowsOf(hunk).slice(fromTop ? 1 : 0);
  const { path } = file;
  /** @type {Item[]} */
  const items = [];
  const add = (/** @type {string} */ key, /** @type {() => any} */ view, /** @type {number} */ line) => {
    items.push({ key: `${path} ${key}`, size: 24, file: path, view });
    const mine = state.remarks.filter((/** @type {MessageRow} */ remark) => remark.path === path && line && remark.line === line);
    mine.forEach((/** @type {MessageRow} */ remark) => items.push({ key: remark.id, size: 64, file: path, view: () => html`<${Remark} remark=${remark} />` }));
    if (line && state.writing === `${path}:${line}`) {
      items.push({ key: "write", size: 130, file: path, view: () => html`<${Write} path=${path} line=${line} state=${state} />` });
    }
  };
  const comment = (/** @type {number} */ line) => (line && may("send") ? () => state.setWriting(`${path}:${line}`) : undefined);
  if (state.split) {
    pairs(rows).forEach(([left, right], index) => {
      const line = right && right.kind !== "hunk" ? right.now : 0;
      add(`${at}.${index}`, () => html`<${Both} left=${left} right=${right} tokens=${tokens} comment=${comment(line)} />`, line);
    });
  } else {
    rows.forEach((row, index) => add(`${at}.${index}`, () => html`<${One} row=${row} tokens=${tokens} comment=${comment(row.now)} />`, row.kind === "hunk" ? 0 : row.now));
  }
  return items;
}

/** @type {Record<string, string>} */
const CHANGES = { added: "good", deleted: "bad", renamed: "accent", copied: "accent", modified: "plain" };

/** @param {any} props */
const Head = ({ file, shut, viewed, toggle, view }) =>
  html`<header class="file-head"><button class="quiet" aria-expanded=${!shut} aria-label=${`${shut ? "Open" : "Fold"} ${file.path}`} onClick=${toggle}><${Icon} name="chevron" /></button>
    <span class="path" title=${file.path}><bdi>${file.old_path && file.old_path !== file.path ? `${file.old_path} → ${file.path}` : file.path}</bdi></span>
    ${file.change !== "modified" && html`<span class=${`tag ${CHANGES[file.change] || "plain"}`}>${file.change}</span>`}
    ${file.folded && html`<span class="tag">${file.folded}</span>`}<span class="grow"></span>
    <span class="plus">+${file.added}</span><span class="minus">−${file.removed}</span>
    <label class="check"><input type="checkbox" checked=${viewed} onChange=${view} />Viewed</label></header>`;

/** @param {{ row: DiffRow, tokens: any }} props */
function Code({ row, tokens }) {
  let some = tokens(row) || [{ text: row.text, kind: "" }];
  if (row.mark) some = withMark(some, row.mark);
  return some.map((/** @type {any} */ token) =>
    token.kind || token.mark ? html`<span class=${`${token.kind && `t-${token.kind}`} ${token.mark ? "differs" : ""}`}>${token.text}</span>` : token.text);
}

/** @type {Record<string, string>} */
const SIGNS = { add: "+", del: "−" };

/** @param {{ row: DiffRow, tokens: any, comment?: () => void }} props */
function One({ row, tokens, comment }) {
  if (row.kind === "hunk") return html`<div class="code-line hunk"><span></span><span></span><span class="text"><bdi>${row.text || "⋯"}</bdi></span></div>`;
  if (row.kind === "note") return html`<div class="code-line note"><span></span><span></span><span class="text">${row.text}</span></div>`;
  return html`<div class=${`code-line ${row.kind}`}><span class="no">${row.old || ""}</span><${Number_} line=${row.now} comment=${comment} />
    <span class="text"><i aria-hidden="true">${SIGNS[row.kind] || " "}</i><bdi><${Code} row=${row} tokens=${tokens} /></bdi></span></div>`;
}

/** The number of a line; with it, a remark is written. @param {{ line: number, comment?: () => void }} props */
const Number_ = ({ line, comment }) =>
  comment ? html`<button class="no" onClick=${comment} aria-label=${`Comment on line ${line}`}>${line}</button>` : html`<span class="no">${line || ""}</span>`;

/** @param {{ left: DiffRow | null, right: DiffRow | null, tokens: any, comment?: () => void }} props */
function Both({ left, right, tokens, comment }) {
  if (left && (left.kind === "hunk" || left.kind === "note")) return html`<${One} row=${left} tokens=${tokens} />`;
  const half = (/** @type {DiffRow | null} */ row, /** @type {any} */ number) =>
    html`${number}<span class=${`text ${row ? row.kind : "none"}`}>${row && html`<bdi><${Code} row=${row} tokens=${tokens} /></bdi>`}</span>`;
  return html`<div class="code-line both">${half(left, html`<span class="no">${left?.old || ""}</span>`)}${half(right, html`<${Number_} line=${right?.now || 0} comment=${comment} />`)}</div>`;
}

/** @param {{ remark: MessageRow }} props */
const Remark = ({ remark }) =>
  html`<div class="remark"><div class="by"><b>${remark.author}</b> <${Ago} at=${remark.at} />
    <span class=${`tag ${remark.state === "open" ? "warn" : "good"}`}>${remark.state === "open" ? "not sent yet" : "sent to the agent"}</span></div>
    <pre class="prose"><bdi>${remark.text}</bdi></pre></div>`;

/** @param {{ path: string, line: number, state: any }} props */
function Write({ path, line, state }) {
  const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  useEffect(() => {
    field.current?.focus();
  }, []);
  const close = () => state.setWriting("");
  const send = async () => {
    const text = field.current?.value.trim();
    if (text && (await act("message.comment", { task: state.task, path, line, text }, "Noted. Its agent gets it when you send the work back."))) {
      close();
      state.again();
    }
  };
  return html`<form class="remark" onSubmit=${(/** @type {Event} */ event) => { event.preventDefault(); send(); }}>
    <textarea ref=${field} rows="2" aria-label=${`Comment on ${path}:${line}`} placeholder="What should its agent change here?"
      onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === "Escape" ? close() : onSubmit(send)(event)}></textarea>
    <div class="acts"><button class="primary">Comment<kbd>Ctrl ⏎</kbd></button><button type="button" class="quiet" onClick=${close}>Cancel</button></div></form>`;
}

/** Whether what is here now has been painted: the lines come before the list of all files. */
function usePainted() {
  const [painted, setPainted] = useState(false);
  useEffect(() => {
    const asked = requestAnimationFrame(() => setTimeout(() => setPainted(true)));
    return () => cancelAnimationFrame(asked);
  }, []);
  return painted;
}

/** @param {{ items: Item[], files: FileDiff[], tree: any, viewed: Set<string>, load: (path: string) => void, total: number, painted: boolean }} props */
function Sheet({ items, files, tree, viewed, load, total, painted }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const sheet = useRows({ count: items.length, box, key: (at) => items[at].key, estimate: (at) => items[at].size, padding: 80 });
  const seen = sheet.getVirtualItems();
  const wanted = seen.map((/** @type {any} */ item) => items[item.index]?.path).filter(Boolean).join("\n");
  const asked = useRef(new Set());
  useEffect(() => {
    for (const path of wanted.split("\n")) {
      if (path && !asked.current.has(path)) {
        asked.current.add(path);
        load(path);
      }
    }
  }, [wanted]);
  const top = seen.find((/** @type {any} */ item) => item.end > (sheet.scrollOffset || 0));
  const current = top ? items[top.index]?.file : "";
  const jump = (/** @type {string} */ path) => sheet.scrollToIndex(items.findIndex((item) => item.key === `head ${path}`), { align: "start" });
  const next = (/** @type {number} */ by) => {
    const at = files.findIndex((file) => file.path === current) + by;
    if (files[at]) jump(files[at].path);
  };
  useKeys([
    { key: "j", what: "Next file", run: () => next(1) },
    { key: "k", what: "Previous file", run: () => next(-1) },
  ], [current, items.length]);
  return html`<div class="diff-panes">
    <nav class="file-tree" aria-label="Files">${painted && html`<${Folder} tree=${tree} depth=${0} current=${current} viewed=${viewed} jump=${jump} />`}
      ${files.length < total && html`<p class="soft">and ${total - files.length} more</p>`}</nav>
    <div class="list code" ref=${box} tabindex="0" role="region" aria-label="Changes">
      <div class="sheet" style=${{ height: `${sheet.getTotalSize()}px` }}>
        ${seen.map((/** @type {any} */ item) => items[item.index] &&
          html`<div key=${item.key} data-index=${item.index} ref=${sheet.measureElement} style=${{ transform: `translateY(${item.start}px)` }}>${items[item.index].view()}</div>`)}
      </div></div></div>`;
}

/** @param {{ tree: import("../parts/diff_rows.js").Tree, depth: number, current: string, viewed: Set<string>, jump: (path: string) => void }} props */
const Folder = ({ tree, depth, current, viewed, jump }) =>
  html`<ul>${tree.folders.map((folder) =>
    html`<li key=${folder.path}><span class="folder" style=${{ paddingLeft: `${8 + depth * 12}px` }}><bdi>${folder.name}</bdi></span>
      <${Folder} tree=${folder} depth=${depth + 1} current=${current} viewed=${viewed} jump=${jump} /></li>`)}
    ${tree.files.map((file) =>
      html`<li key=${file.path}><button class="quiet" aria-current=${file.path === current ? "true" : undefined} title=${file.path} style=${{ paddingLeft: `${8 + depth * 12}px` }}
        onClick=${() => jump(file.path)}><bdi class=${viewed.has(file.path) ? "seen" : ""}>${file.path.split("/").pop()}</bdi><span class="plus">+${file.added}</span><span class="minus">−${file.removed}</span></button></li>`)}</ul>`;
