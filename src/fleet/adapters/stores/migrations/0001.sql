-- What the dialects call differently: {key} is a primary key that is a whole number,
-- {serial} one that counts the rows in the order they are inserted.

CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
);

CREATE TABLE counter (
  kind TEXT PRIMARY KEY,
  last BIGINT NOT NULL
);

-- The present. `body` is the whole record; the other columns are what it is found by.
-- `seq` is the number in the id (t-31: 31), so that finding it costs no index of its own.
-- `held` is paused, done by hand or made of children; `blockers` counts what it waits for and its open questions.
-- `ready` is one column so that a planner without statistics sees only one index for candidates.
CREATE TABLE task (
  seq        {key},
  id         TEXT NOT NULL,
  version    BIGINT NOT NULL,
  state      TEXT NOT NULL,
  priority   BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  not_before BIGINT NOT NULL,
  held       BIGINT NOT NULL,
  blockers   BIGINT NOT NULL,
  ready      BIGINT GENERATED ALWAYS AS
    (CASE WHEN state = 'open' AND held = 0 AND blockers = 0 THEN 1 ELSE 0 END) STORED,
  needs      TEXT NOT NULL,
  project    TEXT NOT NULL,
  team       TEXT NOT NULL,
  parent     TEXT NOT NULL,
  body       TEXT NOT NULL
);
CREATE INDEX task_ready ON task (priority, created_at, seq) WHERE ready = 1 AND not_before = 0;
CREATE INDEX task_postponed ON task (not_before, priority, created_at, seq)
  WHERE ready = 1 AND not_before > 0;
-- Lists are read along `seq`. The state is last, so that a change of it touches one page and not two.
CREATE INDEX task_list ON task (seq, project, state);
CREATE INDEX task_parent ON task (parent, seq) WHERE parent <> '';

CREATE TABLE dep (
  task  BIGINT NOT NULL,
  needs BIGINT NOT NULL,
  PRIMARY KEY (task, needs)
);
CREATE INDEX dep_needs ON dep (needs, task);

-- t-31.2: 31 * 2^20 + 2
CREATE TABLE run (
  seq     {key},
  id      TEXT NOT NULL,
  version BIGINT NOT NULL,
  live    BIGINT NOT NULL,
  host    TEXT NOT NULL,
  body    TEXT NOT NULL
);
CREATE INDEX run_live ON run (seq) WHERE live = 1;

CREATE TABLE message (
  seq     {key},
  id      TEXT NOT NULL,
  version BIGINT NOT NULL,
  task    BIGINT NOT NULL,
  kind    TEXT NOT NULL,
  state   TEXT NOT NULL,
  body    TEXT NOT NULL
);
CREATE INDEX message_task ON message (task, seq);
CREATE INDEX message_open ON message (seq) WHERE state = 'open';

CREATE TABLE progress (
  seq     {key},
  id      TEXT NOT NULL,
  version BIGINT NOT NULL,
  body    TEXT NOT NULL
);

CREATE TABLE host (
  id      TEXT PRIMARY KEY,
  version BIGINT NOT NULL,
  body    TEXT NOT NULL
);

CREATE TABLE slots (
  id      TEXT PRIMARY KEY,
  version BIGINT NOT NULL,
  body    TEXT NOT NULL
);

-- The past. It is pruned from the front and never down to the last, so no number comes twice.
CREATE TABLE event (
  number  {serial},
  type    TEXT NOT NULL,
  version BIGINT NOT NULL,
  task    TEXT NOT NULL,
  run     TEXT NOT NULL,
  actor   TEXT NOT NULL,
  at      BIGINT NOT NULL,
  data    TEXT NOT NULL
);
CREATE INDEX event_task ON event (task, number);
