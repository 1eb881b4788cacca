// The names of agents: those that tasks have, and those that fleet.yaml gives a model; and of the nodes.
import { call } from "../call.js";
import { tasks, version } from "../store.js";
import { useLoaded } from "./show.js";

/** @typedef {import("../api.d.ts").ModelRow} ModelRow */

/** @returns {Promise<ModelRow[]>} */
const modelsHere = () => call("model.list").catch(() => []);

/** @param {ModelRow[]} models */
const agentsIn = (models) =>
  [...new Set([...models.flatMap((model) => model.agents), ...[...tasks.values()].map((row) => row.agent || row.coder)].filter(Boolean))].sort();

/** @returns {Promise<string[]>} */
export const agentsHere = async () => agentsIn(await modelsHere());

/** Those of now: more of them may come, as the models and the tasks do. */
export function useAgents() {
  const { data: models = [] } = useLoaded(modelsHere, []);
  version.value;
  return { agents: agentsIn(models), nodes: [...new Set(models.flatMap((model) => model.servings.map((serving) => serving.node)))] };
}
