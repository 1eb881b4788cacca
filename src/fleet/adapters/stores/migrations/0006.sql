-- Commits that go from host to host, as git bundles: found by the commit that they end with.
CREATE TABLE piece (
  id      TEXT PRIMARY KEY,
  version BIGINT NOT NULL,
  body    TEXT NOT NULL
);
