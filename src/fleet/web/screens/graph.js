// What waits for what: the tasks in view, in layers, at most 200 of them.
import { html, useEffect, useMemo } from "../vendor/preact.js";
import { call } from "../call.js";
import { Empty, Loading, Trouble, useLoaded } from "../parts/show.js";
import { go } from "../router.js";
import { counts, further, loaded, numberOf } from "../store.js";
import { graphlib, layout } from "../vendor/dagre.js";

/** @typedef {import("../api.d.ts").TaskRow} TaskRow */
/** @typedef {import("../api.d.ts").TaskNode} TaskNode */

const MOST = 200; // nodes: more is no picture any more
const WIDTH = 210;
const HEIGHT = 54;

/**
 * The newest tasks, and again when a newer one comes; with a filter those that match it, once all have come.
 * @param {TaskRow[]} rows @param {boolean} filtered
 */
function useNodes(rows, filtered) {
  const ids = rows.slice(0, MOST).map((row) => row.id);
  const coming = filtered && (!loaded.value || further.value === "loading");
  const wanted = filtered ? { tasks: ids } : { all: true };
  const none = coming || (filtered && !ids.length);
  const known = useLoaded(() => (none ? Promise.resolve(coming ? undefined : []) : call("task.graph", { ...wanted, limit: MOST })), [
    filtered ? ids.join() : "", coming,
  ]);
  const newest = numberOf(ids[0] || "");
  useEffect(() => {
    if (!filtered && known.data && newest > numberOf(known.data[0]?.id || "")) known.again();
  }, [filtered, newest, Boolean(known.data)]);
  return known;
}

/** @param {{ rows: TaskRow[], filtered: boolean }} props */
export default function Graph({ rows, filtered }) {
  const { data, error, again } = useNodes(rows, filtered);
  const picture = useMemo(() => data && placed(data), [data]);
  if (error && !data) return html`<${Trouble} error=${error} again=${again} />`;
  if (!data || !picture) return html`<${Loading} />`;
  if (!picture.edges.length) {
    return html`<${Empty} icon="graph" title="Nothing waits for anything"><p>Tasks with <code>--after</code> appear here. Filter to see those of one label or project.</p><//>`;
  }
  const by = counts.value;
  const total = filtered ? rows.length : by.open + by.running + by.review + by.failed + by.done + by.cancelled;
  const byId = new Map(rows.map((row) => [row.id, row]));
  return html`<div class="list graph" tabindex="0" role="region" aria-label="Graph">
    ${total > MOST && html`<p class="soft note">The newest ${MOST} of ${total} tasks. Filter for fewer.</p>`}
    <svg width=${picture.width} height=${picture.height} viewBox=${`0 0 ${picture.width} ${picture.height}`} role="group" aria-label="What waits for what">
      <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" /></marker></defs>
      ${picture.edges.map((/** @type {any} */ edge) => html`<path key=${edge.key} class="edge" d=${edge.path} marker-end="url(#arrow)" />`)}
      ${picture.nodes.map((node) => html`<${Node} key=${node.id} node=${node} row=${byId.get(node.id) || node.row} />`)}
    </svg></div>`;
}

/** @param {TaskNode[]} tasks */
export function placed(tasks) {
  const known = new Set(tasks.map((task) => task.id));
  const linked = new Set(tasks.flatMap((task) => task.after.some((id) => known.has(id)) ? [task.id, ...task.after] : []));
  const graph = new (/** @type {any} */ (graphlib)).Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 14, ranksep: 60, marginx: 16, marginy: 16 });
  graph.setDefaultEdgeLabel(() => ({}));
  const shown = tasks.filter((task) => linked.has(task.id));
  for (const task of shown) graph.setNode(task.id, { width: WIDTH, height: HEIGHT });
  for (const task of shown) for (const id of task.after) if (known.has(id)) graph.setEdge(id, task.id);
  layout(graph);
  const nodes = shown.map((task) => ({ id: task.id, row: task.task, x: graph.node(task.id).x - WIDTH / 2, y: graph.node(task.id).y - HEIGHT / 2 }));
  const edges = graph.edges().map((/** @type {any} */ edge) => ({ key: `${edge.v} ${edge.w}`, path: curve(wayOf(graph, edge)) }));
  const { width = 0, height = 0 } = graph.graph();
  return { nodes, edges, width: Math.ceil(width || 1), height: Math.ceil(height || 1) };
}

/** Out of the right side of one node into the left side of the other, round the nodes between. @param {{ x: number, y: number }[]} points */
function curve(points) {
  const [first, ...rest] = points;
  let { x, y } = first;
  return `M${x} ${y}` + rest.map((point) => {
    const half = (x + point.x) / 2;
    const step = `C${half} ${y} ${half} ${point.y} ${point.x} ${point.y}`;
    ({ x, y } = point);
    return step;
  }).join("");
}

/** From the middle of a side to the middle of a side. @param {any} graph @param {{ v: string, w: string }} edge */
function wayOf(graph, edge) {
  const [from, to] = [graph.node(edge.v), graph.node(edge.w)];
  const between = graph.edge(edge).points.slice(1, -1).filter((/** @type {{ x: number }} */ { x }) => x > from.x + WIDTH && x < to.x - WIDTH);
  return [{ x: from.x + WIDTH / 2, y: from.y }, ...between, { x: to.x - WIDTH / 2, y: to.y }];
}

/** @param {{ node: { x: number, y: number, id: string }, row: TaskRow }} props */
function Node({ node, row }) {
  return html`<a class=${`node ${row.status}`} href=${`/t/${row.id}`} transform=${`translate(${node.x} ${node.y})`} aria-label=${`${row.id} ${row.title}: ${row.status}`}
      onClick=${(/** @type {Event} */ event) => { event.preventDefault(); go(`/t/${row.id}`); }}>
    <rect width=${WIDTH} height=${HEIGHT} rx="8" /><circle cx="20" cy="18" r="4" />
    <text x="31" y="22" class="small">${row.id} · ${row.status}</text><text x="16" y="42">${row.title.length > 27 ? `${row.title.slice(0, 26)}…` : row.title}</text></a>`;
}
