-- A question waits as long as it is open and its task has not ended. `asks` is the team of that task
-- then, else NULL: questions that ended tasks left open are in nobody's way. The database keeps it,
-- by the triggers in `asks.py`, so that a fleet of before may go on writing.
ALTER TABLE message ADD COLUMN asks TEXT;
CREATE INDEX message_asks ON message (seq) WHERE asks IS NOT NULL;
CREATE INDEX message_asks_team ON message (asks, seq) WHERE asks IS NOT NULL;
UPDATE message SET asks = (SELECT team FROM task
  WHERE task.seq = message.task AND task.state NOT IN ('done', 'failed', 'cancelled'))
WHERE kind = 'question' AND state = 'open';
-- A board is read past any number of its archived posts.
CREATE INDEX message_board ON message (task, state, seq) WHERE kind = 'post';
CREATE INDEX message_board_type ON message (task, state, type, seq) WHERE kind = 'post';
DROP INDEX message_type
