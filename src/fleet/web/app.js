// The page: who is signed in, the rail, the top bar, and the screen of the address.
import { html, render, useEffect, useState } from "./vendor/preact.js";
import { act, call, complain, exchange, quiet, Refusal, signedOut, signIn, signOut, toast, token } from "./call.js";
import { listed, useKeys } from "./keys.js";
import { begin, begun, loadMore } from "./live.js";
import { Asking, confirm, Dialog, Toasts } from "./parts/dialog.js";
import { useNotices } from "./parts/notify.js";
import { harmless, Icon, last, Loading, money, readTheme, showHidden, Trouble, turnTheme, usePart } from "./parts/show.js";
import { go, path, rail, screenAt } from "./router.js";
import { connection, counted, counts, inbox, inboxGoesOn, isMine, loaded, may, me, overlay, stoodAt, tasks, version } from "./store.js";

function Screen() {
  const found = screenAt(path.value);
  const { View, error } = usePart(found?.screen.load);
  if (!found) return html`<div class="empty"><h1>Not found</h1><p><a href="/">Go to the inbox</a></p></div>`;
  if (error) return html`<${Trouble} error=${error} again=${() => location.reload()} />`;
  return View ? html`<${View} words=${found.words} />` : html`<${Loading} />`;
}

/** What is shown over the page. @type {Record<string, () => Promise<any>>} */
const OVERLAYS = { new: () => import("./screens/new_task.js"), palette: () => import("./parts/palette.js") };

function Shell() {
  const open = overlay.value;
  const { View: Over, error } = usePart(open !== "new" || may("add") ? OVERLAYS[open] : null); // for who may add, once that is known
  useEffect(() => {
    if (error) complain(error);
  }, [error]);
  useKeys([
    { key: "?", what: "Show the keys", run: () => (overlay.value = "keys") },
    { key: "Ctrl-k", what: "Search and do", run: () => (overlay.value = "palette") },
    { key: "/", what: "Search and do", run: () => (overlay.value = "palette") },
    { key: "n", what: "New task", run: () => (overlay.value = "new") },
  ], []);
  useGo();
  const close = () => {
    overlay.value = "";
  };
  return html`<div class="shell">
    <a class="skip" href="#main">Skip to the content</a>
    <nav class="rail" aria-label="Screens">
      <a class="brand" href="/" aria-label="Fleet"><span class="mark"></span><b>Fleet</b></a>
      ${rail().map(({ to, name, icon }) =>
        html`<a class="to" href=${to} aria-current=${isAt(to) ? "page" : undefined}>
          <${Icon} name=${icon} /><span>${name}</span>${to === "/" && html`<${Badge} />`}</a>`
      )}
      <div class="foot"><${Person} /></div>
    </nav>
    <${Top} />
    <${Lost} />
    <main class="main" id="main" tabindex="-1"><${Screen} /></main>
    ${open === "keys" && html`<${Keys} close=${close} />`}
    ${Over && html`<${Over} close=${close} />`}
  </div>`;
}

/** `g` and then a letter goes to a screen. */
function useGo() {
  useEffect(() => {
    let begun = 0;
    /** @param {KeyboardEvent} event */
    const hear = (event) => {
      const writing = event.target instanceof Element && event.target.closest("input, textarea, select");
      if (writing || event.ctrlKey || event.metaKey) return;
      const to = rail().find(({ letter }) => letter === event.key)?.to;
      if (to && Date.now() - begun < 1500) {
        event.stopImmediatePropagation();
        event.preventDefault();
        go(to);
      }
      begun = event.key === "g" ? Date.now() : 0;
    };
    addEventListener("keydown", hear, true);
    return () => removeEventListener("keydown", hear, true);
  }, []);
}

/** @param {string} to */
const isAt = (to) => path.value === to || (to === "/tasks" && path.value.startsWith("/t/"));

/** What a tab of the browser is called at this address: the screen, or the task. @param {string} at */
function nameOf(at) {
  const found = screenAt(at);
  if (!found || found.screen.name) return found?.screen.name || "";
  version.value;
  const [task] = found.words;
  return `${task} ${harmless(tasks.get(task)?.title || "")}`.trim();
}

function Badge() {
  const count = inbox.value?.filter((item) => item.kind !== "finished" && isMine(item)).length || 0; // that needs nobody
  const shown = `${count}${inboxGoesOn.value ? "+" : ""}`;
  useNotices();
  const name = nameOf(path.value);
  useEffect(() => {
    document.title = `${count ? `(${shown}) ` : ""}${name ? `${name} · ` : ""}Fleet`;
  }, [count, shown, name]);
  useEffect(() => {
    const icon = document.querySelector("link[rel=icon]");
    icon?.setAttribute("href", (icon.getAttribute("href") || "").replace(/icon(-waiting)?\.svg$/, count ? "icon-waiting.svg" : "icon.svg"));
  }, [count]);
  return count ? html`<span class="badge" aria-label=${`${shown} need you`}>${shown}</span>` : null;
}

const PATIENCE = 1500; // milliseconds: a server that is started again is back by then

/** What a person has to know while the server does not answer. */
function Lost() {
  const [shown, setShown] = useState(false);
  const lost = connection.value === "lost";
  useEffect(() => {
    const timer = lost ? setTimeout(() => setShown(true), PATIENCE) : 0;
    if (!lost) setShown(false);
    return () => clearTimeout(timer);
  }, [lost]);
  const since = stoodAt.value ? `You see how things stood at ${new Date(stoodAt.value).toLocaleTimeString([], { hour12: false })}; the` : "The";
  return shown && html`<p class="lost-note" role="status">The server does not answer. ${since} page connects again by itself.</p>`;
}

const STATES = /** @type {Record<string, string>} */ ({ live: "Live", connecting: "Connecting", lost: "Reconnecting" });

const LATER = 1200; // milliseconds in which nothing was asked for: the first screen is there
const EVERY = 60_000;

/** What today has cost, and whether runs are started: after all that the first screen asks for. */
function useToday() {
  const [today, setToday] = useState(/** @type {{ cost?: number, hosts?: import("./api.d.ts").HostRow[] }} */ ({}));
  const [round, setRound] = useState(0);
  const ready = loaded.value && connection.value === "live";
  useEffect(() => {
    const look = () => {
      if (document.hidden || !ready) return;
      const since = new Date(new Date().setHours(0, 0, 0, 0)).toISOString();
      call("usage.report", { by: "day", since, east: -new Date().getTimezoneOffset() })
        .then((report) => setToday((before) => ({ ...before, cost: report.total.cost })), () => {});
      if (may("admin")) call("host.list", {}).then((hosts) => setToday((before) => ({ ...before, hosts })), () => {});
    };
    let gone = false;
    quiet(round ? 0 : LATER).then(() => {
      if (gone || !ready) return;
      look();
      if (!begun("active")) loadMore(["active"]); // whose projects and agents are suggested
    });
    const timer = setInterval(look, EVERY);
    return () => {
      gone = true;
      clearInterval(timer);
    };
  }, [round, ready]);
  return { ...today, again: () => setRound((before) => before + 1) };
}

/** Whether any host starts runs; one click stops that everywhere, and what runs goes on. @param {{ hosts: import("./api.d.ts").HostRow[], again: () => void }} props */
function Drain({ hosts, again }) {
  const awake = hosts.filter((host) => host.awake);
  if (!awake.length) return null;
  const draining = awake.every((host) => host.state === "draining");
  const turn = async () => {
    const text = "What runs goes on to its end. Nothing new starts until you resume.";
    if (!draining && !await confirm({ title: "Start nothing new?", text, yes: "Start nothing new" })) return;
    for (const host of awake) await act(draining ? "host.resume" : "host.drain", { host: host.id });
    toast(draining ? "Ready tasks start again." : "Nothing new starts.");
    again();
  };
  return html`<button class=${draining ? "warn-text" : "quiet"} aria-pressed=${draining} title="Whether ready tasks are started" aria-label=${draining ? "Resume: nothing new starts now" : "Start nothing new"} onClick=${turn}>
    <${Icon} name=${draining ? "play" : "pause"} />${draining && html`<span>Paused</span>`}</button>`;
}

/** The projects of the tasks that are here; one is named. */
function Project() {
  version.value;
  const names = [...new Set([...tasks.values()].map((row) => row.project).filter(Boolean))];
  if (!names.length) return null;
  return html`<a class="where" href="/tasks" title=${names.slice(0, 20).join("\n")}>${names.length === 1 ? last(names[0]) : `${names.length} projects`}</a>`;
}

const MOST_COUNTED = 1000; // tasks of one team with one status

function Top() {
  const { cost, hosts, again } = useToday();
  const { running, ready } = counts.value;
  const room = counted.value?.room || 0;
  return html`<header class="top">
    <button class="find" aria-label="Search" onClick=${() => (overlay.value = "palette")}>
      <${Icon} name="search" /><span>Search</span><kbd>Ctrl K</kbd></button>
    <${Project} />
    <div class="grow"></div>
    ${cost !== undefined && html`<a class="figures today" href="/costs" title="What today has cost"><b>${money(cost) || "$0"}</b> today</a>`}
    <span class="figures"><b>${running}</b>${room > 0 && ` of ${room}`} running${ready > 0 && html`<span> · <b>${ready === MOST_COUNTED ? `${ready}+` : ready}</b> ready</span>`}</span>
    <span class=${`link ${connection.value}`} role="status"><i></i><span>${STATES[connection.value]}</span></span>
    ${hosts ? html`<${Drain} hosts=${hosts} again=${again} />` : may("admin") && html`<span class="drain-place"></span>`}
    ${may("add") && html`<button class="primary" aria-label="New task" onClick=${() => (overlay.value = "new")}><${Icon} name="plus" /><span>New task</span></button>`}
  </header>`;
}

function Person() {
  const who = me.value;
  return html`<div class="person">
    <button class="quiet" onClick=${turnTheme} title="Light or dark" aria-label="Light or dark"><${Icon} name="theme" /></button>
    <button class="quiet" onClick=${() => signOut()} title="Sign out" aria-label="Sign out"><${Icon} name="out" /></button>
    ${who && html`<span class="who"><b>${who.name}</b><small>${who.role}</small></span>`}
  </div>`;
}

/** How keys are written. @type {Record<string, string>} */
const SIGNS = { ArrowDown: "↓", ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→", "Ctrl-k": "Ctrl K", Escape: "Esc", Enter: "⏎" };

/** Keys that do the same stand together. @param {import("./keys.js").Key[]} keys */
function inFew(keys) {
  const by = Map.groupBy(keys, (key) => key.what.replace(/ \d$/, ""));
  return [...by].map(([what, some]) => ({ what, names: some.length > 3 ? [some[0].key, "…", some[some.length - 1].key] : some.map((key) => key.key) }));
}

/** @param {{ close: () => void }} props */
function Keys({ close }) {
  return html`<${Dialog} title="Keys" close=${close}>
    <dl class="keys">
      ${inFew(listed()).map((key) => html`<div><dt>${key.names.map((name) => html`<kbd>${SIGNS[name] || name}</kbd> `)}</dt><dd>${key.what}</dd></div>`)}
      ${rail().map(({ name, letter }) => html`<div><dt><kbd>g</kbd> <kbd>${letter}</kbd></dt><dd>Go to ${name}</dd></div>`)}
    </dl>
  <//>`;
}

function SignIn() {
  const [text, setText] = useState("");
  const [stay, setStay] = useState(false);
  const [error, setError] = useState(/** @type {any} */ (null));
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    signIn(text.trim(), stay);
    try {
      await call("task.list", { limit: 1 });
    } catch (refusal) {
      setError(refusal);
      signOut(/** @type {Error} */ (refusal).message);
    }
  };
  const why = error?.message || signedOut.value;
  return html`<main class="sign-in">
    <form onSubmit=${submit}>
      <div class="brand"><span class="mark"></span><b>Fleet</b></div>
      <h1>Sign in</h1>
      <p>On the server's machine, <code>fleet ui</code> opens this page signed in. Elsewhere, paste a token
        that <code>fleet token create NAME</code> made.</p>
      <label class="field">Token
        <input type="password" autocomplete="off" spellcheck=${false} value=${text} autofocus
          onInput=${(/** @type {any} */ event) => setText(event.target.value)} /></label>
      <label class="check"><input type="checkbox" checked=${stay} onChange=${() => setStay(!stay)} /> Stay signed in on this device</label>
      ${why && html`<p class="bad" role="alert">${why}</p>`}
      <button class="primary" disabled=${!text.trim()}>Sign in</button>
    </form>
  </main>`;
}

function App() {
  if (!token.value) return html`<${SignIn} /><${Toasts} />`;
  return html`<${Shell} /><${Asking} /><${Toasts} />`;
}

/** The code in the address is used once, and removed before anything else happens. */
async function start() {
  showHidden();
  readTheme();
  const code = /^#c=([\w.~-]+)$/.exec(location.hash)?.[1];
  if (location.hash) history.replaceState(null, "", location.pathname + location.search);
  if (code) {
    await exchange(code).catch((error) => {
      signedOut.value = error instanceof Refusal ? `${error.message} ${error.fix}` : String(error);
    });
  }
  const place = /** @type {Element} */ (document.getElementById("app"));
  place.replaceChildren();
  render(html`<${App} />`, place);
  begin();
}

start();
