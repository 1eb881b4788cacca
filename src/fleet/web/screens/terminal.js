// What an agent's terminal shows now, in its colours.
import { html, useEffect, useState } from "../vendor/preact.js";
import { act, call, complain } from "../call.js";
import { useKeys } from "../keys.js";
import { watch } from "../live.js";
import { look, pieces } from "../parts/ansi.js";
import { Badge } from "../parts/data.js";
import { Command, Empty, Loading } from "../parts/show.js";
import { may } from "../store.js";

/** @typedef {import("../api.d.ts").ScreenText} ScreenText */

/** @param {{ detail: import("../api.d.ts").TaskDetail, row: import("../api.d.ts").TaskRow }} props */
export default function Terminal({ detail, row }) {
  const run = detail.runs.at(-1)?.id || "";
  const [seated, setSeated] = useState(/** @type {any} */ (null));
  const [shown, setShown] = useState(/** @type {{ screen?: ScreenText, why?: string, fix?: string }} */ ({}));
  useEffect(() => {
    if (!run) return;
    let gone = false;
    call("run.screen", { name: run, colours: true }).then(
      (screen) => gone || setShown({ screen }),
      (error) => gone || setShown({ why: error.message, fix: error.fix }),
    );
    const leave = watch({ kind: "screen", name: run, after: () => 0, hear: (frame) => setShown(frame.screen ? { screen: frame.screen } : { why: frame.why }) });
    return () => {
      gone = true;
      leave();
    };
  }, [run]);
  const sit = () => import("./seat.js").then((module) => setSeated(() => module.default), complain);
  if (seated) return html`<${seated} run=${run} leave=${() => setSeated(null)} />`;
  if (!run) return html`<${Empty} icon="terminal" title="No terminal yet"><p>Its agent has not run.</p><//>`;
  if (!shown.screen && !shown.why) return html`<${Loading} rows=${4} />`;
  if (!shown.screen) {
    return html`<${Empty} icon="terminal" title="No terminal"><p>${shown.why}</p>${shown.fix && html`<p>${shown.fix}</p>`}<//>`;
  }
  const screen = shown.screen;
  return html`<div class="terminal">
    <div class="said-bar"><${Badge} tone=${STATES[screen.state] || "plain"}>${screen.state || "unknown"}<//>
      ${screen.rule && html`<small title="The rule that says so">${screen.rule}</small>`}
      ${screen.watchers > 0 && html`<small>${screen.watchers} attached</small>`}
      <span class="grow"></span>
      ${may("assign") && screen.alive && html`<button onClick=${() => act("run.interrupt", { name: run }, "Interrupted: its agent waits for a message.")}>Interrupt</button>`}
      ${may("attach") && screen.alive && html`<button class="primary" onClick=${sit}>Type here</button>`}
</div>
    ${screen.asks && html`<${Permission} row=${row} asks=${screen.asks} always=${screen.always} />`}
    <pre class="screen" tabindex="0" aria-label="Screen">${screen.lines.map((line) => html`<${ScreenLine} line=${line} />`)}</pre>
    ${!may("attach") && html`<p class="soft">To type here, attach at the machine: <${Command} command=${`fleet attach ${row.id}`} /></p>`}
  </div>`;
}

/** @type {Record<string, string>} */
const STATES = { working: "busy", waiting: "good", wants: "warn", permission: "warn", stuck: "bad" };

/** @param {{ line: string }} props */
const ScreenLine = ({ line }) =>
  html`${pieces(line).map((piece) => {
    const { class: name, style } = look(piece);
    return name || Object.keys(style).length ? html`<span class=${name} style=${style}>${piece.text}</span>` : piece.text;
  })}${"\n"}`;

/** What an agent asks leave for, with its answers. `always`: that of its program for good. @param {{ row: { id: string }, asks: string, always?: string }} props */
export function Permission({ row, asks, always }) {
  const answer = (/** @type {boolean} */ allow, forGood = false) =>
    act("run.permit", { task: row.id, allow, asks, always: forGood }, forGood ? "Allowed from now on." : allow ? "Allowed." : "Denied.");
  useKeys([
    ...(may("answer") && may("admin") ? [{ key: "a", what: "Allow what it asks", run: () => answer(true), first: true }] : []),
    ...(may("admin") && always ? [{ key: "A", what: "Allow it from now on", run: () => answer(true, true), first: true }] : []),
    ...(may("answer") ? [{ key: "d", what: "Deny what it asks", run: () => answer(false), first: true }] : []),
  ], [row.id, asks, always]);
  return html`<div class="why warn"><b>It asks for permission</b><p><bdi>${asks}</bdi></p>
    ${may("answer") && !may("admin") && html`<p class="soft">Only a coordinator may allow this. You may deny it.</p>`}
    ${may("admin") && always && html`<p class="soft"><b>Always</b> answers: <bdi>${always}</bdi></p>`}
    ${may("answer") && html`<div class="acts">${may("admin") && html`<button class="primary" onClick=${() => answer(true)}>Allow<kbd>a</kbd></button>
      ${always && html`<button title=${always} onClick=${() => answer(true, true)}>Always<kbd>A</kbd></button>`}`}
      <button onClick=${() => answer(false)}>Deny<kbd>d</kbd></button></div>`}</div>`;
}
