// An agent's terminal, to type in. Leaving ends only what this page opened.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { complain, token } from "../call.js";
import { FitAddon, Terminal } from "../vendor/xterm.js";

/** What a phone's keyboard lacks. @type {[string, string][]} */
const KEYS = [["Esc", "\x1b"], ["Tab", "\t"], ["Ctrl-C", "\x03"], ["↑", "\x1b[A"], ["↓", "\x1b[B"], ["←", "\x1b[D"], ["→", "\x1b[C"], ["⏎", "\r"]];

/** xterm writes style elements: each gets the nonce of this page, without which they do not count. @param {() => void} act */
function withNonce(act) {
  const nonce = document.querySelector("meta[name=csp-nonce]")?.getAttribute("content") || "";
  const plain = document.createElement;
  document.createElement = /** @type {any} */ (function (/** @type {string} */ name, /** @type {any} */ options) {
    const made = plain.call(document, name, options);
    if (name.toLowerCase() === "style") made.nonce = nonce;
    return made;
  });
  try {
    act();
  } finally {
    document.createElement = plain;
  }
}

/** Once, for all seats. */
function loadStyle() {
  const href = new URL("../vendor/xterm.css", import.meta.url).pathname;
  if (document.querySelector(`link[href="${href}"]`)) return;
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = href;
  document.head.append(link);
}

/** @param {{ run: string, leave: () => void }} props */
export default function Seat({ run, leave }) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const send = useRef(/** @type {(text: string) => void} */ (() => {}));
  const [state, setState] = useState("connecting");
  useEffect(() => {
    if (!place.current) return;
    loadStyle();
    const terminal = new Terminal({ fontFamily: "ui-monospace, Menlo, Consolas, monospace", fontSize: 13, scrollback: 5000, screenReaderMode: true, theme: { background: "#101216", foreground: "#d6dae2" } });
    const fit = new FitAddon();
    terminal.loadAddon(fit);
    withNonce(() => terminal.open(/** @type {HTMLElement} */ (place.current)));
    fit.fit();
    const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws/terminal`);
    socket.binaryType = "arraybuffer";
    const bytes = new TextEncoder();
    send.current = (text) => socket.readyState === WebSocket.OPEN && socket.send(bytes.encode(text));
    socket.onopen = () => socket.send(JSON.stringify({ type: "auth", token: token.value, run, columns: terminal.cols, rows: terminal.rows }));
    socket.onmessage = (event) => {
      if (typeof event.data !== "string") return withNonce(() => terminal.write(new Uint8Array(event.data)));
      const frame = JSON.parse(event.data);
      if (frame.type === "seated") setState("seated");
      else if (frame.type === "error") complain(new Error(frame.message));
    };
    socket.onclose = leave;
    terminal.onData((/** @type {string} */ text) => send.current(text));
    terminal.onResize((/** @type {{ cols: number, rows: number }} */ size) =>
      socket.readyState === WebSocket.OPEN && socket.send(JSON.stringify({ type: "size", columns: size.cols, rows: size.rows })));
    const observer = new ResizeObserver(() => withNonce(() => fit.fit()));
    observer.observe(place.current);
    terminal.focus();
    return () => {
      observer.disconnect();
      socket.onclose = null;
      socket.close();
      terminal.dispose();
    };
  }, [run]);
  return html`<div class="terminal seat">
    <div class="said-bar"><span class="tag busy">${state}</span><span class="soft">You type to its agent.</span><span class="grow"></span>
      <div class="key-bar" role="toolbar" aria-label="Keys">${KEYS.map(([name, keys]) => html`<button key=${name} onClick=${() => send.current(keys)}>${name}</button>`)}</div>
      <button class="primary" onClick=${leave}>Leave</button></div>
    <div class="xterm-place" ref=${place}></div></div>`;
}
