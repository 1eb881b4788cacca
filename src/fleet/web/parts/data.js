// Parts for screens of figures: a table, a figure with its name, a bar, tabs, a switch.
import { html, useEffect, useRef } from "../vendor/preact.js";

/**
 * A column: its name, what a row has in it, and whether that is a number. `wide` columns take the room;
 * `extra` ones are left out on a phone; `doing`: buttons, whose name only a screen reader says.
 * @template Row
 * @typedef {{ name: string, of: (row: Row) => any, number?: boolean, wide?: boolean, extra?: boolean, doing?: boolean }} Column
 */

/**
 * A table of up to a few hundred rows; for more, see `virtual.js`. `empty` is shown in place of no rows.
 * @template Row
 * @param {{ label: string, columns: Column<Row>[], rows: Row[], id: (row: Row) => string, empty?: any, open?: (row: Row) => void }} props
 */
export function Table({ label, columns, rows, id, empty = null, open }) {
  if (!rows.length && empty) return empty;
  const kind = (/** @type {Column<Row>} */ column) =>
    [column.number && "number", column.wide && "wide", column.extra && "extra", column.doing && "doing"].filter(Boolean).join(" ");
  return html`<div class="scroll-x" tabindex="0" role="region" aria-label=${label}><table class=${open ? "opens" : ""}>
    <thead><tr>${columns.map((column) => html`<th scope="col" class=${kind(column)}>${column.doing ? html`<span class="unseen">${column.name}</span>` : column.name}</th>`)}</tr></thead>
    <tbody>${rows.map((row) =>
      html`<tr key=${id(row)} onClick=${open && ((/** @type {Event} */ event) => {
        if (!(/** @type {Element} */ (event.target)).closest("a, button, input, label")) open(row);
      })}>${columns.map((column) => html`<td class=${kind(column)}>${column.of(row)}</td>`)}</tr>`
    )}</tbody></table></div>`;
}

/** One figure. `tone`: good, warn, bad or busy. @param {{ name: string, value: any, note?: any, tone?: string }} props */
export const Stat = ({ name, value, note = null, tone = "" }) =>
  html`<div class=${`stat ${tone}`}><span>${name}</span><b>${value}</b>${note && html`<small>${note}</small>`}</div>`;

/** Figures side by side. @param {{ label: string, children?: any }} props */
export const Stats = ({ label, children }) => html`<div class="stats" role="group" aria-label=${label}>${children}</div>`;

/**
 * How much of something is used. From 80 % on it warns, at 100 % it is full.
 * @param {{ value: number, max: number, label: string, tone?: string }} props
 */
export function Meter({ value, max, label, tone }) {
  const part = max > 0 ? value / max : 0;
  const shown = tone || (part >= 1 ? "bad" : part >= 0.8 ? "warn" : "busy");
  return html`<progress class=${`bar ${shown}`} max=${max || 1} value=${Math.min(value, max || 1)} aria-label=${label}></progress>`;
}

/** @param {{ tone?: string, children?: any }} props */
export const Badge = ({ tone = "plain", children }) => html`<span class=${`tag ${tone}`}>${children}</span>`;

/**
 * Links to the parts of a screen. @param {{ label: string, at: string, tabs: { to: string, name: string, count?: number | string }[] }} props
 */
export function Tabs({ label, at, tabs }) {
  const nav = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => { // on a phone not all of them are in sight; the page itself stays where it is
    const [box, link] = [nav.current, nav.current?.querySelector("[aria-current]")];
    if (!box || !link) return;
    const [outer, inner] = [box.getBoundingClientRect(), link.getBoundingClientRect()];
    box.scrollLeft += inner.left + inner.width / 2 - outer.left - outer.width / 2;
  }, [at]);
  return html`<nav class="tabs" ref=${nav} aria-label=${label}>${tabs.map((tab) =>
    html`<a key=${tab.to} href=${tab.to} aria-current=${tab.to === at ? "page" : undefined}>${tab.name}${
      tab.count !== undefined && tab.count !== "" && html`<span>${tab.count}</span>`
    }</a>`
  )}</nav>`;
}

/** One of a few. @param {{ label: string, value: string, options: [string, string][], choose: (value: string) => void }} props */
export const Switch = ({ label, value, options, choose }) =>
  html`<div class="switch" role="group" aria-label=${label}>${options.map(([name, text]) =>
    html`<button key=${name} aria-pressed=${value === name} onClick=${() => choose(name)}>${text}</button>`
  )}</div>`;

/** A box with a heading, and what may be done with it. @param {{ title: any, actions?: any, children?: any, label?: string }} props */
export const Panel = ({ title, actions = null, children, label }) =>
  html`<section class="panel" aria-label=${label || (typeof title === "string" ? title : undefined)}>
    <header><h2>${title}</h2><span class="grow"></span>${actions}</header>${children}</section>`;

/** Names and values. @param {{ facts: [string, any][] }} props */
export const Facts = ({ facts }) =>
  html`<dl class="facts-list">${facts.filter(([, value]) => value || value === 0).map(([name, value]) =>
    html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`
  )}</dl>`;
