// Dialogs and toasts. A dialog is the browser's own: focus stays in it, Escape closes it.
import { html, signal, useEffect, useRef } from "../vendor/preact.js";
import { dismiss, toasts } from "../call.js";
import { Icon } from "./show.js";

/** @param {{ title: string, close: () => void, children?: any, wide?: boolean }} props */
export function Dialog({ title, close, children, wide }) {
  const ref = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    ref.current?.showModal();
  }, []);
  return html`<dialog ref=${ref} class=${wide ? "wide" : ""} aria-label=${title}
      onClose=${close} onClick=${(/** @type {Event} */ event) => event.target === ref.current && close()}>
    <header><h2>${title}</h2><button class="quiet" onClick=${close} aria-label="Close"><${Icon} name="x" /></button></header>
    <div class="inside">${children}</div>
  </dialog>`;
}

/** `choices`: what the field suggests, which is one line then. @typedef {{ title: string, text?: string, yes: string, danger?: boolean, field?: string, choices?: string[], needed?: boolean, done: (answer: string | null) => void }} Question */
const question = signal(/** @type {Question | null} */ (null));

/** Whether the person agrees. @param {Omit<Question, "done">} asked @returns {Promise<boolean>} */
export const confirm = (asked) => ask(asked).then((answer) => answer !== null);

/** What the person writes; null when it was closed. @param {Omit<Question, "done">} asked @returns {Promise<string | null>} */
export const ask = (asked) =>
  new Promise((done) => {
    question.value = { ...asked, done };
  });

export function Asking() {
  const asked = question.value;
  const field = useRef(/** @type {HTMLTextAreaElement | HTMLInputElement | null} */ (null));
  useEffect(() => {
    field.current?.focus();
  }, [asked]);
  if (!asked) return null;
  const end = (/** @type {string | null} */ answer) => {
    question.value = null;
    asked.done(answer);
  };
  const submit = () => {
    const text = field.current?.value.trim() || "";
    if (!asked.needed || text) end(text);
  };
  return html`<${Dialog} title=${asked.title} close=${() => end(null)}>
    ${asked.text && html`<p>${asked.text}</p>`}
    ${asked.field &&
    html`<label class="field">${asked.field}${asked.choices
        ? html`<input ref=${field} list=${asked.choices.length ? "choices-of-field" : undefined} autocomplete="off" onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === "Enter" && submit()} />
          ${asked.choices.length > 0 && html`<datalist id="choices-of-field">${asked.choices.map((each) => html`<option value=${each}></option>`)}</datalist>`}`
        : html`<textarea ref=${field} rows="4" onKeyDown=${onSubmit(submit)}></textarea>`}</label>`}
    <footer><button onClick=${() => end(null)}>Cancel</button>
      <button class=${asked.danger ? "danger" : "primary"} onClick=${submit}>${asked.yes}</button></footer>
  <//>`;
}

/** Ctrl-Enter sends. @param {() => void} submit */
export const onSubmit = (submit) => (/** @type {KeyboardEvent} */ event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    event.stopPropagation();
    submit();
  }
};

export const Toasts = () =>
  html`<div class="toasts" role="status" aria-live="polite">
    ${toasts.value.map((each) =>
      html`<div key=${each.id} class=${each.bad ? "toast bad" : "toast"}>
        <div><b>${each.text}</b>${each.fix && html`<p>${each.fix}</p>`}</div>
        ${each.undo && html`<button class="undo" onClick=${() => { each.undo?.(); dismiss(each.id); }}>Undo</button>`}
        <button class="quiet" onClick=${() => dismiss(each.id)} aria-label="Dismiss"><${Icon} name="x" /></button>
      </div>`
    )}
  </div>`;
