-- What the server does in one call, so that no client can stop in the middle of it: no writer waits
-- for a client, and a commit is one round trip. {s} is the schema. {v} is the mark of this very text:
-- hosts of different releases each call their own functions.
--
-- There is no lock that all writers share. What a writer relies on it locks: rows of tasks first, in
-- the order of their numbers, then the other rows in the order in which the client sorted them.

-- The events of a commit get their numbers here, last of all. A reader must not see a number while a
-- lower one may still come, so until its end each writer shows, as an advisory lock, the number below
-- which none of its own will be. Unlike the oldest transaction of the snapshot, that is not held up
-- by other programs on the same server.
CREATE FUNCTION {s}.announce_{v}() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(
    hashtext('{s}.event') & 2147483647,
    (SELECT (last_value + is_called::int) & 2147483647 FROM {s}.event_number)::int);
END $$;
CREATE FUNCTION {s}.draw_{v}(p_events jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM {s}.announce_{v}();
  INSERT INTO {s}.event (number, type, version, task, run, actor, at, data)
  SELECT nextval('{s}.event_number'), e.type, e.version, e.task, e.run, e.actor, e.at, e.data
  FROM jsonb_to_recordset(p_events) AS e(
    type text, version bigint, task text, run text, actor text, at bigint, data text);
END $$;

-- All events below this number can be seen, or never will be. It must be known before the snapshot
-- in which they are read: so not in one statement with that.
CREATE FUNCTION {s}.horizon_{v}() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  upcoming bigint;
  behind bigint;
BEGIN
  SELECT last_value + is_called::int INTO upcoming FROM {s}.event_number;
  SELECT max((upcoming - objid::bigint) & 2147483647) INTO behind FROM pg_locks
  WHERE locktype = 'advisory' AND objsubid = 2 AND pid <> pg_backend_pid()
    AND classid = (hashtext('{s}.event') & 2147483647)::oid
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
  RETURN upcoming - coalesce(behind, 0);
END $$;

CREATE FUNCTION {s}.events_{v}(
  p_after bigint, p_before bigint, p_task text, p_kinds text[], p_newest boolean, p_limit bigint)
RETURNS SETOF {s}.event LANGUAGE plpgsql AS $$
DECLARE
  beyond bigint := {s}.horizon_{v}();
BEGIN
  IF p_before > 0 THEN beyond := least(beyond, p_before); END IF;
  IF p_task <> '' AND p_newest THEN
    RETURN QUERY SELECT * FROM {s}.event WHERE task = p_task AND number > p_after AND number < beyond
      ORDER BY number DESC LIMIT p_limit;
  ELSIF p_task <> '' THEN
    RETURN QUERY SELECT * FROM {s}.event WHERE task = p_task AND number > p_after AND number < beyond
      ORDER BY number LIMIT p_limit;
  ELSIF p_newest THEN
    RETURN QUERY SELECT * FROM {s}.event WHERE number > p_after AND number < beyond
      ORDER BY number DESC LIMIT p_limit;
  ELSIF p_kinds IS NOT NULL THEN
    RETURN QUERY SELECT * FROM {s}.event WHERE number > p_after AND number < beyond
      AND type = ANY(p_kinds) ORDER BY number LIMIT p_limit;
  ELSE
    RETURN QUERY SELECT * FROM {s}.event WHERE number > p_after AND number < beyond
      ORDER BY number LIMIT p_limit;
  END IF;
END $$;

-- `writes`: each with the name of its statement and its values. `tasks`: what each written task waits
-- for, and whether it is done. `locks`: tasks that the commit relies on. `recount`: tasks of questions.
-- `words`: tasks whose words are to be indexed. The error FL001 has the number of the stale write.
-- `quiet`: nobody waits for what it writes. Returns whether this writer is to wake those who wait.
CREATE FUNCTION {s}.commit_{v}(p jsonb) RETURNS boolean
LANGUAGE plpgsql SET lock_timeout = '10s' SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  locks bigint[] := ARRAY(SELECT value::bigint FROM jsonb_array_elements_text(p -> 'locks'));
  stale bigint[] := ARRAY(SELECT value::bigint FROM jsonb_array_elements_text(p -> 'recount'));
  freed bigint[] := '{}';
  held bigint[] := '{}';
  moved jsonb := '[]';
  t record;
  w jsonb;
  n bigint := 0;
  changed bigint;
BEGIN
  FOR t IN
    SELECT x.seq, x.done, x.needs, x.after, old.needs AS had, coalesce(old.state = 'done', false) AS was_done
    FROM jsonb_to_recordset(p -> 'tasks') AS x(seq bigint, done boolean, needs text, after bigint[])
    LEFT JOIN {s}.task AS old ON old.seq = x.seq
  LOOP
    IF t.done AND NOT t.was_done THEN freed := freed || t.seq; END IF;
    IF t.was_done AND NOT t.done THEN held := held || t.seq; END IF;
    IF t.needs <> coalesce(t.had, '') THEN
      stale := stale || t.seq;
      locks := locks || t.after;
      moved := moved || jsonb_build_object('seq', t.seq, 'after', t.after);
    END IF;
  END LOOP;
  IF cardinality(freed) + cardinality(held) > 0 THEN
    locks := locks || ARRAY(SELECT dep.task FROM {s}.dep WHERE dep.needs = ANY(freed || held));
  END IF;
  IF cardinality(locks) > 1 THEN
    PERFORM 1 FROM {s}.task WHERE seq = ANY(locks) ORDER BY seq FOR NO KEY UPDATE;
  END IF;
  FOR w IN SELECT value FROM jsonb_array_elements(p -> 'writes') LOOP
    {writes}
    GET DIAGNOSTICS changed = ROW_COUNT;
    IF changed <> (NOT w ? 'absent')::int THEN
      RAISE EXCEPTION 'stale %', n USING ERRCODE = 'FL001';
    END IF;
    n := n + 1;
  END LOOP;
  IF p ? 'words' THEN
    INSERT INTO {s}.task_unsearched (seq)
    SELECT value::bigint FROM jsonb_array_elements_text(p -> 'words') ON CONFLICT DO NOTHING;
  END IF;
  IF cardinality(freed) + cardinality(held) > 0 THEN
    UPDATE {s}.task SET blockers = blockers + d.n FROM (
      SELECT dep.task, sum(CASE WHEN dep.needs = ANY(freed) THEN -1 ELSE 1 END) AS n
      FROM {s}.dep WHERE dep.needs = ANY(freed || held) GROUP BY dep.task) AS d
    WHERE task.seq = d.task;
  END IF;
  FOR t IN SELECT * FROM jsonb_to_recordset(moved) AS x(seq bigint, after bigint[]) LOOP
    DELETE FROM {s}.dep WHERE task = t.seq AND needs <> ALL(t.after);
    INSERT INTO {s}.dep (task, needs) SELECT t.seq, unnest(t.after) ON CONFLICT DO NOTHING;
  END LOOP;
  IF cardinality(stale) > 0 THEN
    UPDATE {s}.task SET blockers =
        (SELECT count(*) FROM {s}.dep LEFT JOIN {s}.task AS need ON need.seq = dep.needs
          WHERE dep.task = task.seq AND (need.state IS NULL OR need.state <> 'done'))
      + (SELECT count(*) FROM {s}.message
          WHERE message.task = task.seq AND message.kind = 'question' AND message.state = 'open')
    WHERE seq = ANY(stale);
  END IF;
  IF p ? 'events' THEN PERFORM {s}.draw_{v}(p -> 'events'); END IF;
  IF p ? 'quiet' THEN RETURN false; END IF;
  RETURN {s}.is_wake_due_{v}();
END $$;

-- Which tasks each host is deciding about at this moment. Only a hint, so that hosts that look at once
-- look at different tasks: it is lost in a crash, and nobody waits for what stands in it. A row for
-- each host, written in place: rows for each task would leave an index full of dead entries.
CREATE UNLOGGED TABLE IF NOT EXISTS {s}.offered
  (host text PRIMARY KEY, tasks bigint[] NOT NULL, until bigint NOT NULL) WITH (fillfactor = 30);

-- The first tasks that could start now, and that no other host is deciding about; if those are fewer
-- than `limit`, the others too. And the slots of these `names`.
--
-- Before the first of them its index has a dead entry for each task that was claimed since the last
-- vacuum: tens of thousands, where a long queue is worked off. So whoever had to read many of its
-- pages notes, in the row of no host, where the first one is, and all begin there for a moment: 100
-- times as long as the reading took. What is added before that place meanwhile is seen after it.
CREATE FUNCTION {s}.offer_{v}(p jsonb) RETURNS TABLE (is_task boolean, version bigint, body text)
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  most int := (p -> 'limit')::int;
  me text := p ->> 'host';
  began timestamptz := clock_timestamp();
  now bigint := (extract(epoch FROM began) * 1000000)::bigint;
  front bigint[] := (SELECT tasks FROM {s}.offered WHERE host = '' AND until > now);
  names text[] := ARRAY(SELECT jsonb_array_elements_text(p -> 'names'));
  seqs bigint[] := '{}';
  pages bigint;
  t record;
BEGIN
  IF front IS NULL THEN
    pages := pg_stat_get_xact_blocks_fetched('{s}.task_ready'::regclass);
    SELECT ARRAY[priority, created_at, seq] INTO front FROM {s}.task WHERE ready = 1 AND not_before = 0
    ORDER BY priority, created_at, seq LIMIT 1;
    IF pg_stat_get_xact_blocks_fetched('{s}.task_ready'::regclass) - pages > 16 THEN
      PERFORM {s}.note_front_{v}(front, began);
    END IF;
  END IF;
  IF front IS NOT NULL THEN
    FOR t IN
      SELECT seq, version, body FROM (
        SELECT seq, version, body, priority, created_at FROM {s}.task WHERE ready = 1 AND not_before = 0
          AND (priority, created_at, seq) >= (front[1], front[2], front[3])
        ORDER BY priority, created_at, seq LIMIT 2000) AS first
      WHERE seq NOT IN (
        SELECT unnest(tasks) FROM {s}.offered WHERE until > now AND host <> me AND host <> '')
      ORDER BY priority, created_at, seq LIMIT most
    LOOP
      is_task := true;
      version := t.version;
      body := t.body;
      seqs := seqs || t.seq;
      RETURN NEXT;
    END LOOP;
  END IF;
  IF cardinality(seqs) > 0 THEN
    PERFORM set_config('synchronous_commit', 'off', true);
    INSERT INTO {s}.offered (host, tasks, until) VALUES (me, seqs, now + 2000000)
    ON CONFLICT (host) DO UPDATE SET tasks = excluded.tasks, until = excluded.until;
  END IF;
  IF cardinality(seqs) < most THEN
    RETURN QUERY SELECT true, version, body FROM {s}.task WHERE ready = 1 AND not_before = 0
      ORDER BY priority, created_at, seq LIMIT most;
  END IF;
  IF EXISTS (SELECT 1 FROM {s}.task
      WHERE ready = 1 AND not_before > 0 AND not_before <= (p -> 'now')::bigint) THEN
    RETURN QUERY SELECT true, version, body FROM {s}.task
      WHERE ready = 1 AND not_before > 0 AND not_before <= (p -> 'now')::bigint
      ORDER BY priority, created_at, seq LIMIT most;
  END IF;
  RETURN QUERY SELECT false, version, body FROM {s}.slots WHERE id = ANY(names);
END $$;
CREATE FUNCTION {s}.note_front_{v}(front bigint[], began timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  now timestamptz := clock_timestamp();
  expires bigint := (extract(epoch FROM now + least(100 * (now - began), interval '0.5 s')) * 1000000)::bigint;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  IF EXISTS (SELECT 1 FROM {s}.offered WHERE host = '') THEN
    UPDATE {s}.offered SET tasks = front, until = expires WHERE host IN (  -- nobody waits for another
      SELECT host FROM {s}.offered WHERE host = '' FOR NO KEY UPDATE SKIP LOCKED);
  ELSE
    INSERT INTO {s}.offered (host, tasks, until) VALUES ('', front, expires) ON CONFLICT DO NOTHING;
  END IF;
END $$;

-- Of these claims, in their order, those whose task is as it was read, that no other host is just
-- taking, and in whose slots there is room. Each has its number `n`, what is written of its task, its
-- run and its event, and of each slot that it takes the place in `names` and how many may hold it.
-- Returns which, and -1 when this writer is to wake those who wait.
CREATE FUNCTION {s}.claim_{v}(p jsonb) RETURNS SETOF int
LANGUAGE plpgsql SET lock_timeout = '10s' SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
  names text[] := ARRAY(SELECT jsonb_array_elements_text(p -> 'names'));
  held int[];
  tasks bigint[] := '{}';
  taken int[] := '{}';
  is_full boolean;
  c record;
BEGIN
  IF p ? 'left' THEN UPDATE {s}.offered SET until = 0 WHERE host = p ->> 'left'; END IF;
  IF p ? 'old' THEN DELETE FROM {s}.offered WHERE until < (p -> 'old')::bigint; END IF;
  LOOP  -- they are in their order, so two claims lock them in one
    held := ARRAY(
      SELECT jsonb_array_length(coalesce(body::jsonb -> 'holders', '[]')) FROM {s}.slots
      WHERE id = ANY(names) ORDER BY id COLLATE "C" FOR NO KEY UPDATE);
    EXIT WHEN cardinality(held) = cardinality(names);
    INSERT INTO {s}.slots (id, version, body)
    SELECT wanted, 1, jsonb_build_object('id', wanted)::text FROM unnest(names) AS wanted
    ON CONFLICT DO NOTHING;
  END LOOP;
  FOR c IN
    SELECT x.n, x.task_seq, x.places, x.most FROM jsonb_to_recordset(p -> 'claims') AS x(
      n int, places int[], most int[], task_seq bigint, task_id text, task_version bigint, run_seq bigint)
    JOIN {s}.task ON task.seq = x.task_seq AND task.id = x.task_id AND task.version = x.task_version
      AND task.ready = 1
    WHERE NOT EXISTS (SELECT 1 FROM {s}.run WHERE run.seq = x.run_seq)
    ORDER BY x.n FOR UPDATE OF task SKIP LOCKED
  LOOP
    is_full := false;
    FOR i IN 1 .. cardinality(c.places) LOOP
      is_full := is_full OR held[c.places[i]] >= c.most[i];
    END LOOP;
    CONTINUE WHEN is_full OR c.task_seq = ANY(tasks);
    FOR i IN 1 .. cardinality(c.places) LOOP
      held[c.places[i]] := held[c.places[i]] + 1;
    END LOOP;
    tasks := tasks || c.task_seq;
    taken := taken || c.n;
    RETURN NEXT c.n;
  END LOOP;
  IF taken = '{}' THEN RETURN; END IF;
  PERFORM pg_advisory_xact_lock_shared(  -- as `announce` does: each call of a function costs
    hashtext('{s}.event') & 2147483647,
    (SELECT (last_value + is_called::int) & 2147483647 FROM {s}.event_number)::int);
  WITH x AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(p -> 'claims') AS x({given}) WHERE n = ANY(taken)),
  running AS ({task_updates}),
  started AS ({run_inserts}),
  filled AS (
    UPDATE {s}.slots SET version = version + 1, body = (body::jsonb || jsonb_build_object('holders',
      coalesce(body::jsonb -> 'holders', '[]') || added.runs))::text
    FROM (SELECT names[place] AS name, jsonb_agg(run_id ORDER BY n) AS runs
      FROM x, unnest(places) AS place GROUP BY place) AS added
    WHERE slots.id = added.name)
  INSERT INTO {s}.event (number, type, version, task, run, actor, at, data)
  SELECT nextval('{s}.event_number'), event_type, event_version, task_id, run_id, event_actor, event_at,
    event_data
  FROM (SELECT * FROM x ORDER BY n) AS in_turn;
  IF {s}.is_wake_due_{v}() THEN RETURN NEXT -1; END IF;
END $$;

-- Those who wait learn that there is something new. For itself: a NOTIFY within a commit would make
-- all commits wait for each other's disk. And rarely: all listeners are told, and all writers who tell
-- wait for each other. The sequence has the time of the last one, in milliseconds. Of all writers of
-- a moment one is told that it should wake them: it has taken the time, and calls `wake`.
CREATE SEQUENCE IF NOT EXISTS {s}.woke_at;
CREATE FUNCTION {s}.is_wake_due_{v}() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  now bigint := (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
BEGIN
  IF abs(now - (SELECT last_value FROM {s}.woke_at)) < {apart} THEN RETURN false; END IF;
  PERFORM setval('{s}.woke_at', now);
  RETURN true;
END $$;
CREATE FUNCTION {s}.wake_{v}(p_channel text, p_is_due boolean) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF NOT p_is_due AND NOT {s}.is_wake_due_{v}() THEN RETURN false; END IF;
  PERFORM set_config('synchronous_commit', 'off', true);
  PERFORM pg_notify(p_channel, '');
  RETURN true;
END $$;

-- `p`: of each task its number, its version when it was read, and its words.
CREATE FUNCTION {s}.index_words_{v}(p jsonb) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  done bigint;
BEGIN
  WITH fresh AS (
    SELECT x.seq, x.words FROM jsonb_to_recordset(p) AS x(seq bigint, version bigint, words text[])
    JOIN {s}.task ON task.seq = x.seq AND task.version = x.version ORDER BY x.seq FOR SHARE OF task),
  added AS (
    INSERT INTO {s}.task_words (seq, words) SELECT seq, array_to_tsvector(words) FROM fresh ORDER BY seq
    ON CONFLICT (seq) DO UPDATE SET words = excluded.words)
  DELETE FROM {s}.task_unsearched WHERE seq IN (SELECT seq FROM fresh);
  GET DIAGNOSTICS done = ROW_COUNT;
  RETURN done;
END $$;
