-- One statement per name; :name is a parameter, in both dialects.

-- name: task_insert
INSERT INTO task (seq, id, version, state, priority, created_at, not_before, held, blockers, needs, project, team, parent, attended, assignee, backwards, body)
VALUES (:seq, :id, 1, :state, :priority, :created_at, :not_before, :held, 0, :needs, :project, :team, :parent, :attended, :assignee, :backwards, :body)
ON CONFLICT DO NOTHING

-- The usual update: what it waits for stays, and it was not done, so it can free but not hold.
-- name: task_update
UPDATE task SET version = version + 1, state = :state, priority = :priority, not_before = :not_before,
  held = :held, team = :team, attended = :attended, assignee = :assignee, backwards = :backwards, body = :body
WHERE seq = :seq AND id = :id AND version = :version
  AND needs = :needs AND project = :project AND parent = :parent AND state <> 'done'

-- name: task_update_any
UPDATE task SET version = version + 1, state = :state, priority = :priority, not_before = :not_before,
  held = :held, needs = :needs, project = :project, team = :team, parent = :parent,
  attended = :attended, assignee = :assignee, backwards = :backwards, body = :body
WHERE seq = :seq AND id = :id AND version = :version

-- name: task_recount
UPDATE task SET blockers =
    (SELECT count(*) FROM dep LEFT JOIN task AS need ON need.seq = dep.needs
      WHERE dep.task = task.seq AND (need.state IS NULL OR need.state <> 'done'))
  + (SELECT count(*) FROM message
      WHERE message.task = task.seq AND message.kind = 'question' AND message.state = 'open')
WHERE seq = :seq

-- name: unsearched
SELECT task.seq, task.version, task.body FROM task_unsearched JOIN task ON task.seq = task_unsearched.seq
ORDER BY task_unsearched.seq LIMIT :limit

-- name: unsearched_insert
INSERT INTO task_unsearched (seq) VALUES (:seq) ON CONFLICT DO NOTHING

-- name: unsearched_delete
DELETE FROM task_unsearched WHERE seq = :seq

-- name: dep_of
SELECT needs FROM dep WHERE task = :seq

-- name: dep_insert
INSERT INTO dep (task, needs) VALUES (:task, :needs) ON CONFLICT DO NOTHING

-- name: dep_delete
DELETE FROM dep WHERE task = :task AND needs = :needs

-- name: waiting_for
SELECT task FROM dep WHERE needs = :seq

-- name: dependents
SELECT task.id FROM dep JOIN task ON task.seq = dep.task WHERE dep.needs = :seq ORDER BY task.seq

-- name: waiting
SELECT dep.needs, count(*) FROM dep JOIN task ON task.seq = dep.task
WHERE dep.needs IN ({ids}) AND task.state = 'open' GROUP BY dep.needs

-- name: run_insert
INSERT INTO run (seq, id, version, live, host, body)
VALUES (:seq, :id, 1, :live, :host, :body) ON CONFLICT DO NOTHING

-- name: run_update
UPDATE run SET version = version + 1, live = :live, host = :host, body = :body
WHERE seq = :seq AND id = :id AND version = :version

-- name: message_insert
INSERT INTO message (seq, id, version, task, kind, state, team, topic, type, body)
VALUES (:seq, :id, 1, :task, :kind, :state, :team, :topic, :type, :body) ON CONFLICT DO NOTHING

-- name: message_update
UPDATE message SET version = version + 1, state = :state, body = :body
WHERE seq = :seq AND id = :id AND version = :version

-- name: progress_insert
INSERT INTO progress (seq, id, version, body) VALUES (:seq, :id, 1, :body) ON CONFLICT DO NOTHING

-- name: progress_update
UPDATE progress SET version = version + 1, body = :body
WHERE seq = :seq AND id = :id AND version = :version

-- name: host_insert
INSERT INTO host (id, version, body) VALUES (:id, 1, :body) ON CONFLICT DO NOTHING

-- name: host_update
UPDATE host SET version = version + 1, body = :body WHERE id = :id AND version = :version

-- name: slots_insert
INSERT INTO slots (id, version, body) VALUES (:id, 1, :body) ON CONFLICT DO NOTHING

-- name: slots_update
UPDATE slots SET version = version + 1, body = :body WHERE id = :id AND version = :version

-- name: train_insert
INSERT INTO train (id, version, body) VALUES (:id, 1, :body) ON CONFLICT DO NOTHING

-- name: train_update
UPDATE train SET version = version + 1, body = :body WHERE id = :id AND version = :version

-- name: train_all
SELECT version, body FROM train

-- name: gate_result_insert
INSERT INTO gate_result (id, version, body) VALUES (:id, 1, :body) ON CONFLICT DO NOTHING

-- name: gate_result_update
UPDATE gate_result SET version = version + 1, body = :body WHERE id = :id AND version = :version

-- name: piece_insert
INSERT INTO piece (id, version, body) VALUES (:id, 1, :body) ON CONFLICT DO NOTHING

-- name: piece_update
UPDATE piece SET version = version + 1, body = :body WHERE id = :id AND version = :version

-- name: landing_insert
INSERT INTO landing (seq, id, version, train, task, team, pending, body)
VALUES (:seq, :id, 1, :train, :task, :team, :pending, :body) ON CONFLICT DO NOTHING

-- name: landing_update
UPDATE landing SET version = version + 1, pending = :pending, body = :body
WHERE seq = :seq AND id = :id AND version = :version

-- name: entry_insert
INSERT INTO entry (seq, id, version, kind, team, key, owner, until, words, body)
VALUES (:seq, :id, 1, :kind, :team, :key, :owner, :until, :words, :body) ON CONFLICT DO NOTHING

-- name: entry_update
UPDATE entry SET version = version + 1, owner = :owner, until = :until, words = :words, body = :body
WHERE seq = :seq AND id = :id AND version = :version AND kind = :kind AND team = :team AND key = :key

-- name: entry_of
SELECT version, body FROM entry WHERE kind = :kind AND team = :team AND key = :key

-- name: entry_prune
DELETE FROM entry WHERE until > 0 AND until <= :now AND seq IN (
  SELECT seq FROM entry WHERE kind = :kind AND team = :team ORDER BY seq LIMIT 1000)

-- name: event_insert
INSERT INTO event (type, version, task, run, actor, at, data)
VALUES (:type, :version, :task, :run, :actor, :at, :data)

-- name: new_id
INSERT INTO counter (kind, last) VALUES (:kind, 1)
ON CONFLICT (kind) DO UPDATE SET last = counter.last + 1 RETURNING last

-- name: set_id
UPDATE counter SET last = :last WHERE kind = :kind

-- The last column says whether there are any more, whose time has come.
-- name: candidates
SELECT version, body,
  EXISTS (SELECT 1 FROM task WHERE ready = 1 AND not_before > 0 AND not_before <= :now)
FROM task WHERE ready = 1 AND not_before = 0
ORDER BY priority, created_at, seq LIMIT :limit

-- name: ready
SELECT id, version FROM task WHERE ready = 1 AND seq IN ({ids})

-- name: candidates_due
SELECT version, body FROM task WHERE seq IN (
  SELECT seq FROM task WHERE ready = 1 AND not_before > 0 AND not_before <= :now
  ORDER BY priority, created_at, seq LIMIT :limit)

-- name: candidates_page
SELECT version, body FROM task WHERE seq IN (
  SELECT seq FROM task WHERE ready = 1 AND not_before = 0 AND (priority, created_at, seq) > (:priority, :at, :seq)
  ORDER BY priority, created_at, seq LIMIT :limit)

-- name: candidates_page_due
SELECT version, body FROM task WHERE seq IN (
  SELECT seq FROM task WHERE ready = 1 AND not_before > 0 AND not_before <= :now
    AND (priority, created_at, seq) > (:priority, :at, :seq)
  ORDER BY priority, created_at, seq LIMIT :limit)

-- Along the index of the team: it may have few among many.
-- name: candidates_of_team
SELECT version, body FROM task WHERE seq IN (
  SELECT seq FROM task WHERE team = :team AND state = 'open' AND ready = 1 AND not_before <= :now
    AND (priority, created_at, seq) > (:priority, :at, :seq)
  ORDER BY priority, created_at, seq LIMIT :limit)

-- name: counts
SELECT state, count(*) FROM task GROUP BY state

-- name: totals
SELECT (SELECT count(*) FROM entry WHERE kind = 'member'),
  (SELECT count(*) FROM entry WHERE kind = 'chat'),
  coalesce((SELECT last FROM counter WHERE kind = 'm'), 0),
  (SELECT count(*) FROM run WHERE live = 1),
  (SELECT count(*) FROM task WHERE ready = 1 AND not_before = 0)

-- name: runs
SELECT version, body FROM run WHERE seq >= :first AND seq <= :last ORDER BY seq

-- name: live_runs
SELECT version, body FROM run WHERE live = 1 ORDER BY seq

-- name: live_runs_of
SELECT version, body FROM run WHERE live = 1 AND host = :host ORDER BY seq

-- name: messages
SELECT version, body FROM message WHERE task = :task ORDER BY seq

-- name: messages_newest
SELECT version, body FROM message WHERE task = :task ORDER BY seq DESC LIMIT :limit

-- name: open_messages
SELECT version, body FROM message WHERE state = 'open' AND kind = :kind ORDER BY seq LIMIT :limit

-- name: any_question
SELECT 1 FROM message WHERE kind = 'question' AND state = 'open' LIMIT 1

-- name: questions
SELECT version, body FROM message WHERE asks IS NOT NULL AND seq > :after ORDER BY seq LIMIT :limit

-- name: questions_of_team
SELECT version, body FROM message WHERE asks IS NOT NULL AND asks = :team AND seq > :after
ORDER BY seq LIMIT :limit

-- name: host_all
SELECT version, body FROM host

-- name: slots_all
SELECT version, body FROM slots

-- name: events
SELECT number, type, version, task, run, actor, at, data FROM event
WHERE number > :after ORDER BY number LIMIT :limit

-- SQLite would read the whole table for both in one.
-- name: event_numbers
SELECT coalesce((SELECT min(number) FROM event), 1), coalesce((SELECT max(number) FROM event), 0)

-- name: event_from
SELECT number, at < :at FROM event WHERE number >= :number ORDER BY number LIMIT 1

-- name: events_newest
SELECT number, type, version, task, run, actor, at, data FROM event
WHERE number > :after ORDER BY number DESC LIMIT :limit

-- name: events_of
SELECT number, type, version, task, run, actor, at, data FROM event
WHERE task = :task AND number > :after ORDER BY number LIMIT :limit

-- name: events_of_newest
SELECT number, type, version, task, run, actor, at, data FROM event
WHERE task = :task AND number > :after ORDER BY number DESC LIMIT :limit
