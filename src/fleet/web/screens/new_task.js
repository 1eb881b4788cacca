// Add a task. Whatever is left empty takes the value of the project's settings.
import { html, useEffect, useMemo, useState } from "../vendor/preact.js";
import { act, call } from "../call.js";
import { useAgents } from "../parts/agents.js";
import { Dialog, onSubmit } from "../parts/dialog.js";
import { go } from "../router.js";
import { put, tasks, version } from "../store.js";

/** @param {Record<string, string>} form */
function request(form) {
  const words = (/** @type {string} */ text) => text.split(/[\s,]+/).filter(Boolean);
  const cost = Math.round(Number(form.budget || 0) * 1e6);
  return {
    title: (form.title || "").trim(),
    prompt: form.prompt || "",
    ...(form.project && { project: form.project.trim() }),
    after: words(form.after || ""),
    spec: {
      ...(form.agent && { agent: form.agent.trim() }),
      ...(form.gate && { gate: form.gate.trim() }),
      ...(form.priority && { priority: Number(form.priority) }),
      labels: words(form.labels || ""),
      review: Boolean(form.review),
      ...(cost > 0 && { limits: { budget: { cost } } }),
    },
  };
}

/** Several solutions of it: the agents take turns. @param {Record<string, string>} form */
function raceOf(form) {
  const { title, prompt, project, spec } = request(form);
  const { agent = "", gate = "", ...rest } = /** @type {any} */ (spec);
  const agents = agent.split(/[\s,]+/).filter(Boolean);
  return { prompt: [title, prompt].filter(Boolean).join("\n\n"), count: Number(form.count), ...(project && { project }), spec: rest, agents, rules: { test: gate } };
}

/** Who would do it and what it would wait for, a moment after the form changed. @param {{ form: Record<string, string> }} props */
function Preview({ form }) {
  const [shown, setShown] = useState(/** @type {{ data?: import("../api.d.ts").Preview, error?: any }} */ ({}));
  const { project, after, spec, title, prompt } = request(form);
  const wish = JSON.stringify({ project, after, spec, title, prompt });
  useEffect(() => {
    let gone = false;
    const timer = setTimeout(() => {
      call("task.preview", JSON.parse(wish)).then((data) => gone || setShown({ data }), (error) => gone || setShown({ error }));
    }, 300);
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [wish]);
  if (shown.error) return html`<p class="preview bad" role="status">${shown.error.message} ${shown.error.fix}</p>`;
  if (!shown.data) return html`<p class="preview soft" role="status">…</p>`;
  const { agent, coder, model, node, waits, ahead, route } = shown.data;
  const who = [agent || coder, model && `with ${model}`, node && `on ${node}`, route && `(route ${route})`].filter(Boolean).join(" ");
  const why = waits.map((wait) => wait.why).join(" ");
  const before = `${ahead} ready ${ahead === 1 ? "task" : "tasks"}`;
  const when = ahead > 0 ? `would start after ${before}.` : "would start at once.";
  return html`<p class="preview" role="status"><b>${who}</b> ${waits.length ? `${why}${ahead > 0 ? ` ${before} ${ahead === 1 ? "is" : "are"} before it.` : ""}` : when}</p>`;
}

/** @param {{ close: () => void }} props */
export default function NewTask({ close }) {
  const [busy, setBusy] = useState(false);
  const [form, setForm] = useState(/** @type {Record<string, string>} */ ({ title: "" }));
  const projects = useMemo(() => [...new Set([...tasks.values()].map((row) => row.project).filter(Boolean))].sort(), [version.value]);
  const { agents } = useAgents();
  const submit = async (/** @type {HTMLFormElement} */ form) => {
    setBusy(true);
    const fields = /** @type {any} */ (Object.fromEntries(new FormData(form)));
    const several = Number(fields.count) > 1;
    const row = several ? undefined : await act("task.add", request(fields), "");
    const race = several ? await act("race.start", raceOf(fields), `${fields.count} solutions: the best of those that pass is picked.`) : undefined;
    setBusy(false);
    const id = row?.id || race?.batch;
    if (!id) return;
    if (row) put([row]);
    close();
    go(`/t/${id}`);
  };
  return html`<${Dialog} title="New task" close=${close} wide>
    <form class="new" onInput=${(/** @type {any} */ event) => setForm(/** @type {any} */ (Object.fromEntries(new FormData(event.currentTarget))))} onSubmit=${(/** @type {any} */ event) => { event.preventDefault(); submit(event.target); }}
        onKeyDown=${(/** @type {any} */ event) => onSubmit(() => event.currentTarget.requestSubmit())(event)}>
      <label class="field">Title<input name="title" required maxlength="500" autofocus autocomplete="off" /></label>
      <label class="field">Prompt<textarea name="prompt" rows="6" placeholder="The prompt of its agent. Empty: the title is the prompt."></textarea></label>
      <div class="pair">
        <label class="field">Project<input name="project" list="projects" value=${form.project ?? (projects.length === 1 ? projects[0] : "")} placeholder="The server's directory" autocomplete="off" /></label>
        <label class="field">Agent<input name="agent" list="agents" placeholder="As the settings say" autocomplete="off" /></label>
      </div>
      <datalist id="projects">${projects.map((name) => html`<option value=${name}></option>`)}</datalist>
      <datalist id="agents">${agents.map((name) => html`<option value=${name}></option>`)}</datalist>
      <details><summary>More</summary><div class="pair">
        <label class="field">After<input name="after" placeholder="t-12 t-14" autocomplete="off" /></label>
        <label class="field">Labels<input name="labels" placeholder="ui billing" autocomplete="off" /></label>
        <label class="field">Gate<input name="gate" placeholder="make test" autocomplete="off" /></label>
        <label class="field">Budget in dollars<input name="budget" type="number" min="0" step="0.01" /></label>
        <label class="field">Priority<select name="priority">${["", 0, 1, 2, 3, 4].map((each) =>
          html`<option value=${each}>${each === "" ? "Normal" : each === 0 ? "0, first" : each === 4 ? "4, last" : each}</option>`)}</select></label>
        <label class="field">Solutions<input name="count" type="number" min="1" max="20" placeholder="1. More: the gate chooses among them" /></label>
        <label class="check"><input type="checkbox" name="review" /> A person reviews it before it is done</label>
      </div></details>
      <${Preview} form=${form} />
      <footer><button type="button" onClick=${close}>Cancel</button><button class="primary" disabled=${busy}>Add task<kbd>Ctrl ⏎</kbd></button></footer>
    </form>
  <//>`;
}
