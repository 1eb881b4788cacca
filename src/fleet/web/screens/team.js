// The team: members, how they sign in, and what they say to each other.
import { html, useEffect, useState } from "../vendor/preact.js";
import { act, call } from "../call.js";
import { Badge, Panel, Table, Tabs } from "../parts/data.js";
import { confirm, Dialog } from "../parts/dialog.js";
import { usePolled } from "../parts/poll.js";
import { Ago, Command, Empty, Icon, Loading, Trouble, useLoaded } from "../parts/show.js";
import { query } from "../router.js";
import { may, me, now } from "../store.js";

/** @typedef {import("../api.d.ts").TokenRow} Token */
/** @typedef {import("../api.d.ts").EnrolmentRow} Enrolment */
/** @typedef {import("../api.d.ts").MemberRow} Member */
/** @typedef {import("../api.d.ts").MailRow} Mail */

const EVERY = 5000;
/** What each role may do, in a line. @type {[string, string][]} */
const ROLES = [
  ["worker", "adds tasks, which a lead lets run; posts and mails"],
  ["team-lead", "also answers, starts and stops agents, lands work"],
  ["merger", "commits, merges and pushes"],
  ["monitor", "reads, and raises alerts"],
  ["notifier", "reads, and sends notices"],
  ["coordinator", "everything, in every team; may run commands on the server"],
];
const LIVES = /** @type {[number, string][]} */ ([[3600, "1 hour"], [86400, "1 day"], [604800, "7 days"], [2592000, "30 days"]]);

export default function Team() {
  const part = new URLSearchParams(query.value).get("part") || "";
  const parts = [["", "Members"], ...(may("admin") ? [["access", "Access"]] : []), ["talk", "Boards and mail"], ["roles", "Roles"]];
  const tabs = parts.map(([name, text]) => ({ to: name ? `/team?part=${name}` : "/team", name: text }));
  const at = part ? `/team?part=${part}` : "/team";
  const [inviting, setInviting] = useState(false);
  const shown = part === "access" && may("admin") ? html`<${Access} invited=${inviting} />` : part === "talk" ? html`<${Talk} />` : part === "roles" ? html`<${Roles} />` : html`<${Members} />`;
  return html`<section class="team" aria-labelledby="team-title">
    <div class="head"><h1 id="team-title">Team</h1><span class="soft">${me.value?.team}</span><span class="grow"></span>
      ${may("admin") && html`<button class="primary" onClick=${() => setInviting(true)}><${Icon} name="plus" />Give access</button>`}</div>
    <${Tabs} label="Of the team" at=${at} tabs=${tabs} />
    ${shown}
    ${inviting && html`<${Invite} close=${() => setInviting(false)} />`}
  </section>`;
}

function Members() {
  const { data, error, again } = usePolled(() => call("member.list", { limit: 200 }), EVERY);
  if (error && !data) return html`<${Trouble} error=${error} again=${again} />`;
  if (!data) return html`<${Loading} rows=${3} />`;
  const isHere = (/** @type {Member} */ row) => now.value - Date.parse(row.seen_at) < 120_000;
  return html`<${Panel} title="Members"><${Table} label="Members" rows=${data} id=${(/** @type {Member} */ row) => row.id} columns=${[
    { name: "Name", wide: true, of: (/** @type {Member} */ row) => html`<b><bdi>${row.name}</bdi></b>` },
    { name: "Role", of: (/** @type {Member} */ row) => html`<${Badge}>${row.role}<//>` },
    { name: "Team", extra: true, of: (/** @type {Member} */ row) => row.team },
    { name: "Seen", of: (/** @type {Member} */ row) => html`<span class=${`status ${isHere(row) ? "good" : "off"}`}><i></i>${isHere(row) ? "here" : html`<${Ago} at=${row.seen_at} />`}</span>` },
  ]} empty=${html`<${Empty} icon="team" title="Nobody has joined yet"><p>Everyone who signs in, or uses the server, is listed here.</p><//>`} /><//>`;
}

/** Tokens and enrolments. @param {{ invited: boolean }} props */
function Access({ invited }) {
  const tokens = usePolled(() => call("token.list", { limit: 200 }), EVERY, [invited]);
  const enrolments = usePolled(() => call("enrolment.list", { limit: 200 }), EVERY, [invited]);
  const revoke = async (/** @type {any} */ operation, /** @type {any} */ fields, /** @type {string} */ what) => {
    if (!(await confirm({ title: `Revoke ${what}?`, text: "Everyone who uses it is signed out at once.", yes: "Revoke", danger: true }))) return;
    if (await act(operation, fields, `Revoked ${what}.`)) [tokens, enrolments].forEach((each) => each.again());
  };
  const error = tokens.error || enrolments.error;
  if (error && !tokens.data) return html`<${Trouble} error=${error} />`;
  if (!tokens.data || !enrolments.data) return html`<${Loading} rows=${3} />`;
  return html`
    <${Panel} title="Enrolments"><${Table} label="Enrolments" rows=${enrolments.data} id=${(/** @type {Enrolment} */ row) => row.id} columns=${[
      { name: "For", wide: true, of: (/** @type {Enrolment} */ row) => html`<b><bdi>${row.name || "anybody"}</bdi></b> <small>${row.id}</small>` },
      { name: "Role", of: (/** @type {Enrolment} */ row) => html`<${Badge}>${row.role}<//>` },
      { name: "Team", extra: true, of: (/** @type {Enrolment} */ row) => row.team },
      { name: "Used", number: true, extra: true, of: (/** @type {Enrolment} */ row) => `${row.uses} of ${row.most_uses}` },
      { name: "Ends", of: (/** @type {Enrolment} */ row) => html`<${Until} at=${row.until} />` },
      { name: "Do", doing: true, of: (/** @type {Enrolment} */ row) => html`<button class="quiet" onClick=${() => revoke("enrolment.revoke", { enrolment: row.id }, `the enrolment of ${row.name || "anybody"}`)}>Revoke</button>` },
    ]} empty=${html`<p class="inside soft">None is open. “Give access” makes one.</p>`} /><//>
    <${Panel} title="Tokens"><${Table} label="Tokens" rows=${tokens.data} id=${(/** @type {Token} */ row) => row.id} columns=${[
      { name: "Name", wide: true, of: (/** @type {Token} */ row) => html`<b><bdi>${row.name}</bdi></b> <small>${row.id}</small>` },
      { name: "Role", of: (/** @type {Token} */ row) => html`<${Badge}>${row.role}<//>` },
      { name: "Team", extra: true, of: (/** @type {Token} */ row) => row.team },
      { name: "Made", extra: true, of: (/** @type {Token} */ row) => html`<${Ago} at=${row.at} />` },
      { name: "Ends", of: (/** @type {Token} */ row) => html`<${Until} at=${row.until} />` },
      { name: "Do", doing: true, of: (/** @type {Token} */ row) => html`<button class="quiet" aria-label=${`Revoke the token ${row.id} of ${row.name}`} onClick=${() => revoke("token.revoke", { token: row.id }, `the token of ${row.name}`)}>Revoke</button>` },
    ]} empty=${html`<p class="inside soft">No tokens.</p>`} /><//>`;
}

/** @param {{ at: string }} props */
function Until({ at }) {
  const left = (Date.parse(at) - now.value) / 1000;
  const words = left > 86400 ? `${Math.round(left / 86400)} days` : left > 3600 ? `${Math.round(left / 3600)} h` : `${Math.max(0, Math.round(left / 60))} min`;
  return html`<time datetime=${at} title=${new Date(at).toLocaleString()}>in ${words}</time>`;
}

/** A link, and its QR code, that signs one person in. @param {{ close: () => void }} props */
function Invite({ close }) {
  const [made, setMade] = useState(/** @type {Enrolment | null} */ (null));
  const [role, setRole] = useState("worker");
  const [team, setTeam] = useState(me.value?.team || "");
  const [busy, setBusy] = useState(false);
  const submit = async (/** @type {any} */ event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    setBusy(true);
    const row = await act("enrolment.create", {
      name: String(form.get("name")), role: /** @type {any} */ (role), team: String(form.get("team")), seconds: Number(form.get("life")), uses: 1,
    });
    setBusy(false);
    if (row) setMade(row);
  };
  if (made) return html`<${Invitation} row=${made} close=${close} />`;
  return html`<${Dialog} title="Give access" close=${close}><form class="new" onSubmit=${submit}>
    <div class="pair"><label class="field">Name<input name="name" required pattern="[A-Za-z0-9_\\-]{1,50}" autofocus autocomplete="off" title="Letters, digits, - and _" /></label>
      <label class="field">Team<input name="team" value=${team} onInput=${(/** @type {any} */ event) => setTeam(event.target.value)} required autocomplete="off" /></label></div>
    <div class="pair"><label class="field">Role<select value=${role} onChange=${(/** @type {any} */ event) => setRole(event.target.value)}>${ROLES.map(([name]) => html`<option key=${name} value=${name}>${name}</option>`)}</select></label>
      <label class="field">The link works for<select name="life">${LIVES.map(([value, text]) => html`<option key=${value} value=${value} selected=${value === 86400}>${text}</option>`)}</select></label></div>
    <p class="soft">A ${role} ${ROLES.find(([name]) => name === role)?.[1]}.</p>
    <footer><button type="button" onClick=${close}>Cancel</button><button class="primary" disabled=${busy}>Make the link</button></footer></form><//>`;
}

/** @param {{ row: Enrolment, close: () => void }} props */
function Invitation({ row, close }) {
  const link = `${location.origin}/#c=${row.secret}`;
  const near = ["127.0.0.1", "localhost", "[::1]"].includes(location.hostname);
  return html`<${Dialog} title=${`Access for ${row.name}`} close=${close}>
    <${Code} text=${link} /><p>It signs ${row.name} in as ${row.role}, once. It cannot be shown again.</p>
    ${near && html`<p class="warn-text">The address is this machine's own. Others need one that reaches it: open this page by that address, or use <code>fleet ui --phone --url</code>.</p>`}
    <${Command} command=${link} /><footer><button class="primary" onClick=${close}>Done</button></footer><//>`;
}

/** @param {{ text: string }} props */
function Code({ text }) {
  const [shape, setShape] = useState({ size: 0, path: "" });
  useEffect(() => {
    import("../vendor/qr.js").then((/** @type {any} */ { encode }) => {
      const { size, data } = encode(text, { ecc: "L", border: 2 });
      const path = data.flatMap((/** @type {boolean[]} */ row, /** @type {number} */ y) => row.map((dark, x) => (dark ? `M${x} ${y}h1v1h-1z` : ""))).join("");
      setShape({ size, path });
    });
  }, [text]);
  return html`<svg class="qr" viewBox=${`0 0 ${shape.size || 1} ${shape.size || 1}`} role="img" aria-label="QR code of the link"><path d=${shape.path} /></svg>`;
}

/** Boards of swarms, mail and chats. */
function Talk() {
  const [writing, setWriting] = useState(/** @type {"" | "mail" | "chat" | Mail} */ ("")); // a mail: an answer to it
  const [open, setOpen] = useState("");
  const speaks = may("mail");
  const mail = usePolled(() => (speaks ? call("mail.list", { limit: 50 }) : Promise.resolve([])), EVERY, [speaks]);
  const chats = usePolled(() => (speaks ? call("chat.list", { limit: 50 }) : Promise.resolve([])), EVERY, [speaks]);
  const swarms = usePolled(() => call("swarm.list", { limit: 50 }), EVERY);
  if (mail.error && !mail.data) return html`<${Trouble} error=${mail.error} />`;
  if (!mail.data || !chats.data || !swarms.data) return html`<${Loading} rows=${3} />`;
  const none = !mail.data.length && !chats.data.length && !swarms.data.length;
  const again = () => [mail, chats].forEach((each) => each.again());
  const read = async (/** @type {string} */ id) => (await act("mail.read", { mail: id }, "Marked as read.")) && again();
  return html`
    ${may("mail") && html`<div class="acts talk-acts"><button onClick=${() => setWriting("mail")}>Write mail</button><button onClick=${() => setWriting("chat")}>Start a chat</button></div>`}
    ${writing && html`<${Letter} kind=${writing === "chat" ? "chat" : "mail"} answered=${typeof writing === "object" ? writing : null} close=${() => setWriting("")} done=${again} open=${setOpen} />`}
    ${open && html`<${Chat} id=${open} close=${() => { setOpen(""); again(); }} />`}
    ${none && html`<${Empty} icon="team" title="Nobody has said anything yet"><p>Boards of swarms, chats and mail between members and agents appear here.</p><//>`}
    ${swarms.data.map((swarm) => html`<${Board} key=${swarm.id} swarm=${swarm} />`)}
    ${chats.data.length > 0 && html`<${Panel} title="Chats"><ul class="talk">${chats.data.map((chat) => html`<li key=${chat.id}><div class="by"><button class="quiet id" aria-label=${`Open the chat with ${whoIn(chat)}`} onClick=${() => setOpen(chat.id)}>${whoIn(chat)}</button> <${Ago} at=${chat.last?.at || chat.at} />${chat.unread > 0 && html` <${Badge} tone="accent">${chat.unread} new<//>`}</div>
      <p><bdi>${chat.last ? `${chat.last.author}: ${chat.last.text}` : ""}</bdi></p></li>`)}</ul><//>`}
    ${mail.data.length > 0 && html`<${Panel} title="Mail"><ul class="talk">${mail.data.map((letter) => html`<li key=${letter.id}><div class="by"><b>${letter.sender}</b> to ${letter.to} <${Ago} at=${letter.at} />${!letter.read_at && html` <${Badge} tone="accent">unread<//>`}</div>
      ${letter.subject && html`<b><bdi>${letter.subject}</bdi></b>`}<p><bdi>${letter.text}</bdi></p>
      ${letter.to === me.value?.name && html`<div class="letter-acts"><button class="quiet" aria-label=${`Reply to ${letter.sender}`} onClick=${() => setWriting(letter)}>Reply</button>
        ${!letter.read_at && html`<button class="quiet" aria-label=${`Mark the mail of ${letter.sender} as read`} onClick=${() => read(letter.id)}>Mark as read</button>`}</div>`}</li>`)}</ul><//>`}`;
}

/** Who is in it, without oneself. @param {import("../api.d.ts").ChatRow} chat */
const whoIn = (chat) => chat.participants.filter((name) => name !== me.value?.name).join(", ") || "the whole team";

/** A new mail, an answer to one, or the first line of a chat. @param {{ kind: string, answered: Mail | null, close: () => void, done: () => void, open: (chat: string) => void }} props */
function Letter({ kind, answered, close, done, open }) {
  const { data } = useLoaded(() => call("member.list", { limit: 200 }), []);
  const submit = async (/** @type {any} */ event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    const [to, text] = [String(form.get("to")).trim(), String(form.get("text")).trim()];
    if (kind === "mail") {
      if (!(await act("mail.send", { to, text, subject: String(form.get("subject")).trim() }, `Sent to ${to}.`))) return;
      if (answered && !answered.read_at) await act("mail.read", { mail: answered.id });
    } else {
      const chat = await act("chat.open", { members: to ? to.split(/[\s,]+/) : [] });
      if (!chat || !(await act("chat.say", { chat: chat.id, text }))) return;
      open(chat.id);
    }
    done();
    close();
  };
  return html`<${Dialog} title=${kind === "mail" ? "Write mail" : "Start a chat"} close=${close}><form class="new" onSubmit=${submit}>
    <label class="field">To<input name="to" list="members" value=${answered?.sender} required=${kind === "mail"} autofocus=${!answered} autocomplete="off" placeholder=${kind === "mail" ? "a member, or an agent's task" : "members; empty: the whole team"} /></label>
    <datalist id="members">${(data || []).map((row) => html`<option key=${row.id} value=${row.name}></option>`)}</datalist>
    ${kind === "mail" && html`<label class="field">Subject<input name="subject" maxlength="200" value=${answered?.subject && `Re: ${answered.subject.replace(/^Re: /, "")}`} autocomplete="off" /></label>`}
    <label class="field">${kind === "mail" ? "Text" : "First line"}<textarea name="text" rows="4" required autofocus=${Boolean(answered)}></textarea></label>
    <footer><button type="button" onClick=${close}>Cancel</button><button class="primary">Send</button></footer></form><//>`;
}

/** What was said in a chat, the newest last, and a field for more. @param {{ id: string, close: () => void }} props */
function Chat({ id, close }) {
  const { data, error, again } = usePolled(() => call("chat.read", { chat: id, limit: 100 }), 2000, [id]);
  const [text, setText] = useState("");
  useEffect(() => {
    if (data) call("chat.mark_read", { chat: id }).catch(() => {});
  }, [data?.[0]?.id]);
  const say = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (text.trim() && (await act("chat.say", { chat: id, text: text.trim() }))) {
      setText("");
      again();
    }
  };
  return html`<${Dialog} title="Chat" close=${close} wide>
    ${error && !data ? html`<${Trouble} error=${error} />` : !data ? html`<${Loading} rows=${2} />` : html`<ul class="talk chat" tabindex="0" aria-label="What was said">${[...data].reverse().map((line) =>
      html`<li key=${line.id}><div class="by"><b>${line.author}</b> <${Ago} at=${line.at} /></div><p><bdi>${line.text}</bdi></p></li>`)}</ul>`}
    ${may("mail") && html`<form class="write" onSubmit=${say}><input aria-label="Say something" placeholder="Say something" value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)} /><button disabled=${!text.trim()}>Send</button></form>`}<//>`;
}

/** What a post says: its text, or all of it. @param {any} payload */
const wordsOf = (payload) => (typeof payload.text === "string" ? payload.text : typeof payload.message === "string" ? payload.message : JSON.stringify(payload));

/** @param {{ swarm: import("../api.d.ts").SwarmRow }} props */
function Board({ swarm }) {
  const { data, again } = usePolled(() => call("board.read", { task: swarm.id, limit: 20 }), EVERY, [swarm.id]);
  const [text, setText] = useState("");
  const post = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (text.trim() && (await act("board.post", { task: swarm.id, payload: { text: text.trim() } }, "Posted."))) {
      setText("");
      again();
    }
  };
  return html`<${Panel} title=${`Board of ${swarm.name}`} actions=${html`<small>${swarm.agents} of ${swarm.max_agents} at work</small>`}>
    ${data?.length ? html`<ul class="talk">${data.map((post) => html`<li key=${post.id}><div class="by"><b>${post.author}</b> ${post.type} <${Ago} at=${post.at} /></div><p><bdi>${wordsOf(post.payload)}</bdi></p></li>`)}</ul>` : html`<p class="inside soft">Nothing is posted.</p>`}
    ${may("board") && html`<form class="write inside" onSubmit=${post}><input aria-label=${`Post on the board of ${swarm.name}`} placeholder="Post something" value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)} /><button disabled=${!text.trim()}>Post</button></form>`}<//>`;
}

const Roles = () => html`<${Panel} title="Roles"><${Table} label="Roles" rows=${ROLES} id=${(/** @type {string[]} */ row) => row[0]} columns=${[
  { name: "Role", of: (/** @type {string[]} */ row) => html`<${Badge}>${row[0]}<//>` },
  { name: "What it may do", wide: true, of: (/** @type {string[]} */ row) => row[1] },
]} /><//>`;
