// What a person makes of work that ended: it is queued to land, goes back to its agent, or to another.
import { act, call } from "../call.js";
import { tasks } from "../store.js";
import { agentsHere } from "./agents.js";
import { ask } from "./dialog.js";

/** Without a branch there is nothing to land: then it is done. @param {string} task */
export function accept(task) {
  const run = tasks.get(task)?.run;
  return run && !run.branch
    ? act("task.close", { task }, `${task} is done.`)
    : act("review.submit", { task, verdict: "accept" }, `${task} is queued to land.`);
}

/** `about`: what is said above the field, which may stay empty unless `needed`. @param {string} task @param {{ about?: string, needed?: boolean }} [more] */
export async function sendBack(task, { about = "", needed = true } = {}) {
  const text = await ask({ title: `Send ${task} back`, text: about, field: "What should its agent change?", yes: "Send back", needed });
  return text === null ? undefined : act("task.send_back", { task, text }, `${task} is with its agent again.`);
}

/** Another try, by another agent. @param {string} task */
export async function retryWith(task) {
  const choices = await agentsHere();
  const agent = await ask({ title: `Retry ${task} with another agent`, field: "Agent", yes: "Retry", needed: true, choices });
  if (!agent || !(await act("task.edit", { task, agent: agent.trim() }))) return undefined;
  return act("task.retry", { task }, `${task} runs again, with ${agent.trim()}.`);
}

/** Who looks after a landing that is held; an empty answer: anybody. @param {string} landing */
export async function give(landing) {
  const choices = (await call("member.list", {})).map((each) => each.name);
  const to = await ask({ title: `Give ${landing} to`, field: "Member", yes: "Give", choices });
  return to === null ? undefined : act("land.give", { landing, to }, to ? `${landing} is with ${to}.` : `${landing} is with nobody.`);
}
