// The files about a task: its logs, what its agents left in artifacts, and what they wrote to stderr.
import { html, useState } from "../vendor/preact.js";
import { call } from "../call.js";
import { plain } from "../parts/ansi.js";
import { Markdown } from "../parts/markdown.js";
import { Ago, Empty, Loading, short, Trouble, useLoaded } from "../parts/show.js";

/** @typedef {import("../api.d.ts").TaskFileRow} FileRow */

/** What agents left first, then logs; empty ones are of no use. @param {FileRow[]} rows */
function inOrder(rows) {
  const rank = (/** @type {FileRow} */ row) => (row.name.startsWith("artifacts/") ? 0 : row.name.includes("/") ? 1 : 2);
  return rows.filter((row) => row.size).sort((one, other) => rank(one) - rank(other) || one.name.localeCompare(other.name));
}

/** @param {{ row: import("../api.d.ts").TaskRow, detail: import("../api.d.ts").TaskDetail }} props */
export default function Files({ row, detail }) {
  const { data, error, again } = useLoaded(() => call("task.files", { task: row.id }), [row.id, row.status, detail.runs.length]);
  const [chosen, setChosen] = useState("");
  if (error && !data) return html`<${Trouble} error=${error} again=${again} />`;
  if (!data) return html`<${Loading} rows=${4} />`;
  const rows = inOrder(data);
  const at = rows.find((each) => each.name === chosen) || rows[0];
  if (!at) return html`<${Empty} icon="tasks" title="No files yet"><p>What its agents leave in <code>artifacts</code>, and its logs, appear here. Those of another machine are there.</p><//>`;
  return html`<div class="files-panes">
    <nav class="file-tree" aria-label="Files"><ul>${rows.map((each) =>
      html`<li key=${each.name}><button class="quiet" aria-current=${each === at ? "true" : undefined} onClick=${() => setChosen(each.name)}>
        <bdi>${each.name}</bdi><small>${short(each.size)}B</small></button></li>`)}</ul></nav>
    <${Content} key=${at.name} task=${row.id} file=${at} />
  </div>`;
}

/** @param {{ task: string, file: FileRow }} props */
function Content({ task, file }) {
  const { data, error, again } = useLoaded(() => call("task.files", { task, name: file.name }), [file.name, file.size, file.at]);
  const found = data?.[0];
  const cut = found ? file.size - new TextEncoder().encode(found.text).length : 0;
  return html`<article class="file-text" aria-label=${file.name}>
    <header><code><bdi>${file.name}</bdi></code><span class="grow"></span><small>${short(file.size)}B, <${Ago} at=${file.at} /></small></header>
    ${error ? html`<${Trouble} error=${error} again=${again} />`
      : !found ? html`<${Loading} rows=${3} />`
      : html`${cut > 64 && html`<p class="soft inside">The last ${short(file.size - cut)}B of it.</p>`}
        ${file.name.endsWith(".md") ? html`<div class="inside"><${Markdown} text=${found.text} /></div>` : html`<pre tabindex="0"><bdi>${plain(found.text)}</bdi></pre>`}`}
  </article>`;
}
