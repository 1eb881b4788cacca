"""Triggers that keep `message.asks`: the team of the task that an open question holds, or NULL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_ENDED = "('done', 'failed', 'cancelled')"
_TEAM = f"SELECT team FROM task WHERE seq = new.task AND state NOT IN {_ENDED}"  # noqa: S608  # nosec B608  # constants
_OF_TASK = f"""
UPDATE message SET asks = CASE WHEN new.state NOT IN {_ENDED} THEN new.team END
WHERE task = new.seq AND kind = 'question' AND state = 'open'"""  # noqa: S608  # nosec B608  # as above
_MOVED = f"new.team <> old.team OR (new.state IN {_ENDED}) <> (old.state IN {_ENDED})"
_SQLITE_ONE = f"""BEGIN
  UPDATE message SET asks = CASE WHEN new.state = 'open' THEN ({_TEAM}) END WHERE seq = new.seq;
END"""  # noqa: S608  # nosec B608  # as above
TRIGGERS = {
    "sqlite": (
        f"CREATE TRIGGER question_asked AFTER INSERT ON message WHEN new.kind = 'question' {_SQLITE_ONE}",
        (
            "CREATE TRIGGER question_changed AFTER UPDATE OF state ON message"
            f" WHEN new.kind = 'question' {_SQLITE_ONE}"
        ),
        # one commit may put the question before its task; in PostgreSQL tasks come first
        f"CREATE TRIGGER asking_task_added AFTER INSERT ON task BEGIN {_OF_TASK}; END",
        (
            f"CREATE TRIGGER asking_task_moved AFTER UPDATE OF state, team ON task WHEN {_MOVED}"
            f" BEGIN {_OF_TASK}; END"
        ),
    ),
    # The row of the task is locked, or it could end between our look at it and our commit.
    "postgres": (
        f"""
CREATE FUNCTION question_asks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  new.asks = NULL;
  IF new.state = 'open' THEN
    {_TEAM.replace("team", "team INTO new.asks", 1)} FOR NO KEY UPDATE;
  END IF;
  RETURN new;
END $$""",
        """
CREATE TRIGGER question_asks BEFORE INSERT OR UPDATE OF state ON message FOR EACH ROW
WHEN (new.kind = 'question') EXECUTE FUNCTION question_asks()""",
        f"""
CREATE FUNCTION asking_task_moved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  {_OF_TASK};
  RETURN NULL;
END $$""",
        f"""
CREATE TRIGGER asking_task_moved AFTER UPDATE OF state, team ON task FOR EACH ROW
WHEN ({_MOVED}) EXECUTE FUNCTION asking_task_moved()""",
    ),
}


def keep(execute: Callable[..., Any], dialect: str) -> None:
    for statement in TRIGGERS[dialect]:
        execute(statement)
