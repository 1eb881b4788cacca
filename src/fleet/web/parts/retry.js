// Another try, by another agent.
import { act } from "../call.js";
import { ask } from "./dialog.js";

/** Ask for the agent, and let it run again. @param {string} task @param {() => void} done */
export async function retryWith(task, done) {
  const agent = await ask({ title: `Retry ${task} with another agent`, field: "Agent", yes: "Retry", needed: true });
  if (!agent || !(await act("task.edit", { task, agent: agent.trim() }))) return;
  if (await act("task.retry", { task }, `${task} runs again, with ${agent.trim()}.`)) done();
}
