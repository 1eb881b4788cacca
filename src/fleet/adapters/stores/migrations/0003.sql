-- Mail, chats and hand-offs become messages; their rows are carried over by `speech.py`.
-- They are said in a team: `topic` is the chat, or the name that it is said to. NULL: about a task.
ALTER TABLE message ADD COLUMN team TEXT;
ALTER TABLE message ADD COLUMN topic TEXT;
CREATE INDEX message_topic ON message (kind, topic, team, seq) WHERE topic IS NOT NULL;
CREATE INDEX message_team ON message (kind, team, seq) WHERE team IS NOT NULL;
-- Mail that nobody reads stays open, and must not be in the way of words and questions.
DROP INDEX message_open;
CREATE INDEX message_waiting ON message (kind, seq) WHERE state = 'open';
