// Loaded by OpenCode with its screen: what it does, one JSON line each, in the run's transcript.
// A part of a message comes again, whole, with every word that it grows by: only what is new counts.
import { appendFileSync } from "node:fs"
import { join } from "node:path"

const WHOLE = new Set([
  "session.created", "session.status", "session.error", "permission.asked", "permission.replied",
  "question.asked", "question.replied", "question.rejected",
])

export const Fleet = async (_input, options) => {
  const folder = process.env.FLEET_RUN_DIR
  if (!folder) return {}
  const seen = new Set()
  const isNew = (name) => !seen.has(name) && Boolean(seen.add(name))

  const tells = (event) => {
    if (WHOLE.has(event.type)) return true
    if (event.type === "message.updated") return isNew(event.properties.info.id)
    if (event.type !== "message.part.updated") return false
    const part = event.properties.part
    if (part.type === "tool") return isNew(`${part.id} ${part.state.status}`)
    if (part.type === "step-finish") return isNew(part.id)
    if (part.type !== "text" && part.type !== "reasoning") return false
    return (!part.time || "end" in part.time) && isNew(part.id)
  }

  return {
    event: async ({ event }) => {
      try {
        if (!tells(event)) return
        const line = JSON.stringify({ at: Date.now(), event }) + "\n"
        appendFileSync(join(folder, "transcript"), line, { mode: 0o600 })
      } catch {} // whatever is wrong with our files is not its user's trouble
    },
    "experimental.chat.system.transform": async (_asked, output) => {
      if (options?.instructions) output.system.push(options.instructions)
    },
  }
}
