-- Small things that a team keeps. `words` is the text as it is searched.
CREATE TABLE entry (
  seq     {key},
  id      TEXT NOT NULL,
  version BIGINT NOT NULL,
  kind    TEXT NOT NULL,
  team    TEXT NOT NULL,
  key     TEXT NOT NULL,
  owner   TEXT NOT NULL,
  until   BIGINT NOT NULL,
  words   TEXT NOT NULL,
  body    TEXT NOT NULL
);
CREATE UNIQUE INDEX entry_key ON entry (kind, team, key);
CREATE INDEX entry_owner ON entry (kind, owner, seq);
CREATE INDEX entry_team ON entry (kind, team, seq);
