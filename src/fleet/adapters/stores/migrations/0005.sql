-- A task that an actor who may cause no run asked for has 2 in `held`, and is found by that.
-- Others that an actor holds have another number there.
CREATE INDEX IF NOT EXISTS task_stands ON task (held, seq) WHERE held > 0;
UPDATE task SET held = 0 WHERE state <> 'open';
-- An expression, or a planner would read every open task by the index of states.
CREATE INDEX IF NOT EXISTS task_waiting ON task (seq) WHERE needs <> '' AND state || '' = 'open';
UPDATE task SET held = 2 WHERE state = 'open' AND held = 1 AND assignee = ''
  AND body NOT LIKE '%"join":"%' AND (
    body LIKE '%"caused_by":"worker"%' OR body LIKE '%"caused_by":"monitor"%'
    OR body LIKE '%"caused_by":"notifier"%' OR body LIKE '%"caused_by":"merger"%');
UPDATE task SET held = 3 WHERE held = 1 AND assignee <> '' AND body NOT LIKE '%"paused":true%';
UPDATE task SET held = 4 WHERE held = 1 AND assignee = '' AND body LIKE '%"join":"%' AND body NOT LIKE '%"paused":true%';
-- Names that differ only by the case of their letters.
CREATE INDEX IF NOT EXISTS entry_namesake ON entry (lower(owner), kind)
  WHERE kind IN ('enrolment', 'member', 'token');
-- A landing is a task's wish to be on a branch. `pending`: it has not landed and was not dropped.
CREATE TABLE landing (
  seq     {key},
  id      TEXT NOT NULL,
  version BIGINT NOT NULL,
  train   TEXT NOT NULL,
  task    TEXT NOT NULL,
  team    TEXT NOT NULL,
  pending BIGINT NOT NULL,
  body    TEXT NOT NULL
);
CREATE INDEX landing_pending ON landing (train, seq) WHERE pending = 1;
CREATE INDEX landing_task ON landing (task, seq);
CREATE INDEX landing_team ON landing (team, seq);
CREATE TABLE train (
  id      TEXT PRIMARY KEY,
  version BIGINT NOT NULL,
  body    TEXT NOT NULL
);
CREATE TABLE gate_result (
  id      TEXT PRIMARY KEY,
  version BIGINT NOT NULL,
  body    TEXT NOT NULL
);
-- The words of each task's title and prompt, by which it is searched; and the tasks whose words are
-- not there yet, which a search or the supervisor adds.
{words};
CREATE TABLE task_unsearched (seq {key});
INSERT INTO task_unsearched SELECT seq FROM task;
