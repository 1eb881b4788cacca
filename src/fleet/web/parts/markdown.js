// Markdown as elements. Nothing becomes HTML: tags in the text are text, and a link goes where it says.
import { html, useEffect, useState } from "../vendor/preact.js";

/** @type {any} */
let Lexer = null;
const LONGEST = 50_000; // characters: more is shown as it is

function useLexer() {
  const [ready, setReady] = useState(Lexer !== null);
  useEffect(() => {
    if (!Lexer) {
      import("../vendor/marked.js").then((module) => {
        Lexer = module.Lexer;
        setReady(true);
      }, () => {});
    }
  }, []);
  return ready;
}

/** @param {{ text: string }} props */
export function Markdown({ text }) {
  const ready = useLexer();
  if (!ready || text.length > LONGEST) return html`<pre class="prose"><bdi>${text}</bdi></pre>`;
  return html`<div class="markdown" dir="auto">${blocks(Lexer.lex(text, { gfm: true }))}</div>`;
}

/** What stands in one line. @param {{ text: string }} props */
export function Phrase({ text }) {
  const ready = useLexer();
  return html`<bdi>${ready ? inline(Lexer.lexInline(text, { gfm: true })) : text}</bdi>`;
}

const COMMENT = /^\s*<!--[^]*-->\s*$/; // nothing that an agent wrote is left out, but it is folded

/** @param {any[] | undefined} tokens @returns {any[]} */
const blocks = (tokens) => (tokens || []).map(block);

/** @param {any} token */
function block(token) {
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading":
      return html`<p class=${`h${token.depth}`}>${inline(token.tokens)}</p>`;
    case "paragraph":
      return html`<p>${inline(token.tokens)}</p>`;
    case "code":
      return html`<pre class="code" tabindex="0">${token.text}</pre>`;
    case "blockquote":
      return html`<blockquote>${blocks(token.tokens)}</blockquote>`;
    case "list":
      return list(token);
    case "hr":
      return html`<hr />`;
    case "table":
      return table(token);
    case "text":
      return token.tokens ? html`<span>${inline(token.tokens)}</span>` : token.text;
    case "html":
      return COMMENT.test(token.raw) ? html`<details class="comment"><summary>Comment</summary><pre class="prose">${token.raw.trim()}</pre></details>` : html`<p>${token.raw}</p>`;
    default:
      return html`<p>${token.raw}</p>`; // what we do not know
  }
}

/** @param {any} token */
function list(token) {
  const items = token.items.map((/** @type {any} */ item) =>
    html`<li>${item.task && html`<input type="checkbox" checked=${item.checked} disabled aria-label=${item.checked ? "done" : "to do"} /> `}${blocks(item.tokens)}</li>`
  );
  return token.ordered ? html`<ol start=${Number(token.start) || 1}>${items}</ol>` : html`<ul>${items}</ul>`;
}

/** @param {any} token */
const table = (token) =>
  html`<div class="scroll-x" tabindex="0" role="region" aria-label="Table"><table>
    <thead><tr>${token.header.map((/** @type {any} */ cell) => html`<th>${inline(cell.tokens)}</th>`)}</tr></thead>
    <tbody>${token.rows.map((/** @type {any} */ row) =>
      html`<tr>${row.map((/** @type {any} */ cell) => html`<td>${inline(cell.tokens)}</td>`)}</tr>`)}</tbody></table></div>`;

/** @param {any[] | undefined} tokens @returns {any[]} */
const inline = (tokens) => (tokens || []).map(span);

/** @param {any} token */
function span(token) {
  switch (token.type) {
    case "strong":
      return html`<strong>${inline(token.tokens)}</strong>`;
    case "em":
      return html`<em>${inline(token.tokens)}</em>`;
    case "del":
      return html`<del>${inline(token.tokens)}</del>`;
    case "codespan":
      return html`<code>${token.text}</code>`;
    case "br":
      return html`<br />`;
    case "link":
      return link(token);
    case "escape":
      return token.text;
    case "text":
      return token.tokens ? inline(token.tokens) : token.text;
    default:
      return token.raw; // images and HTML are not fetched or made
  }
}

/** Only to where a person may want to go, in a tab of its own. @param {any} token */
function link(token) {
  const inside = inline(token.tokens);
  if (!/^(https?:|mailto:)/i.test(token.href)) return html`<span>${inside}</span>`;
  return html`<a class="linked" href=${token.href} target="_blank" rel="noopener noreferrer">${inside}</a>`;
}
