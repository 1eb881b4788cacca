-- Tasks are found by what people and servers ask for, however many there are; `found_by.py` fills
-- the columns. `attended`: it was asked for now or in a terminal, so it is listed as an agent.
-- `backwards` is the branch that it asks for, from its end: `fix/login` is also found by `login`.
ALTER TABLE task ADD COLUMN attended BIGINT;
ALTER TABLE task ADD COLUMN assignee TEXT;
ALTER TABLE task ADD COLUMN backwards TEXT{bytewise};
ALTER TABLE task ADD COLUMN at_work BIGINT GENERATED ALWAYS AS
  (CASE WHEN state = 'running' OR (attended = 1 AND state NOT IN ('done', 'cancelled')) THEN 1 ELSE 0 END) {generated};
CREATE INDEX task_at_work ON task (at_work, seq) WHERE at_work = 1;
CREATE INDEX task_assignee ON task (assignee, seq) WHERE assignee <> '';
CREATE INDEX task_backwards ON task (backwards) WHERE backwards <> '';
-- A list reads each of its states along `seq`.
DROP INDEX task_list;
CREATE INDEX task_state ON task (state, seq);
CREATE INDEX task_team ON task (team, state, seq);
CREATE INDEX task_project ON task (project, state, seq);
-- `type` is that of a post.
ALTER TABLE message ADD COLUMN type TEXT;
CREATE INDEX message_type ON message (task, type, seq) WHERE type IS NOT NULL;
CREATE INDEX message_question ON message (kind, task) WHERE kind = 'question' AND state = 'open';
-- A member is found by the id that other programs know.
CREATE INDEX entry_member ON entry (words) WHERE kind = 'member';
-- Lists of one kind in all teams, for a coordinator.
CREATE INDEX entry_kind ON entry (kind, seq);
CREATE INDEX message_handoff ON message (seq) WHERE kind = 'handoff';
CREATE INDEX message_unread ON message (kind, topic, team, seq) WHERE state = 'open' AND topic IS NOT NULL;
