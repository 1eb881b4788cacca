"""A stand-in for bd (beads), for tests: not the real program.

It has the subcommands, exit statuses and JSON shapes that Fleet relies on, and bd's rule for
--claim. Its issues are in $BEADS_DIR/issues.json. A file there called `broken` makes every command
fail as a locked database does, `slow` makes them hang, `refused` holds ids it will not change.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import sys
import time
from pathlib import Path

HERE = Path(os.environ.get("BEADS_DIR") or Path.cwd() / ".beads")
ACTOR = os.environ.get("BEADS_ACTOR", "somebody")


def fail(why: str) -> None:
    sys.exit(f"Error: {why}")


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="bd")
    sub = top.add_subparsers(dest="command", required=True)
    create = sub.add_parser("create")
    create.add_argument("title")
    create.add_argument("--description", default="")
    create.add_argument("--priority", type=int, default=2)
    create.add_argument("--assignee", default="")
    ready = sub.add_parser("ready")
    ready.add_argument("--unassigned", action="store_true")
    listing = sub.add_parser("list")
    listing.add_argument("--status", default="")
    listing.add_argument("--assignee", default="")
    for command in (ready, listing):
        command.add_argument("--limit", type=int, default=100)
    update = sub.add_parser("update")
    update.add_argument("--claim", action="store_true")
    update.add_argument("--status")
    update.add_argument("--assignee")
    update.add_argument("--notes")
    close = sub.add_parser("close")
    close.add_argument("--reason", default="Closed")
    comment = sub.add_parser("comment")
    show = sub.add_parser("show")
    for command in (update, close, comment, show):
        command.add_argument("id")
    comment.add_argument("text")
    for command in sub.choices.values():
        command.add_argument("--json", action="store_true")
    return top


def claim(issue: dict) -> None:
    mine = issue["assignee"] in {"", ACTOR}
    if not mine or issue["status"] not in {"open", "in_progress"}:
        fail(f"issue already claimed by {issue['assignee']}")
    issue |= {"status": "in_progress", "assignee": ACTOR}


def change(issue: dict, typed: argparse.Namespace) -> None:
    refused = HERE / "refused"
    if refused.exists() and issue["id"] in refused.read_text().split():
        fail(f"{issue['id']} will not be changed")
    if typed.command == "comment":
        issue["comments"].append({"author": ACTOR, "text": typed.text})
    elif typed.command == "close":
        issue |= {"status": "closed", "close_reason": typed.reason}
    elif typed.claim:
        claim(issue)
    else:
        given = {n: getattr(typed, n) for n in ("status", "assignee", "notes")}
        issue |= {name: value for name, value in given.items() if value is not None}


def run(issues: list[dict], typed: argparse.Namespace) -> object:
    match typed.command:
        case "create":
            issue = {
                "id": f"bd-{len(issues) + 1}", "title": typed.title, "status": "open",
                "description": typed.description, "priority": typed.priority, "notes": "",
                "assignee": typed.assignee, "comments": [], "close_reason": "",
            }  # fmt: skip
            issues.append(issue)
            return issue
        case "ready":
            found = [i for i in issues if i["status"] == "open"]
            found = [i for i in found if not typed.unassigned or not i["assignee"]]
            return sorted(found, key=lambda i: i["priority"])[: typed.limit or None]
        case "list":
            found = [i for i in issues if typed.status in {"", i["status"]}]
            return [i for i in found if typed.assignee in {"", i["assignee"]}]
    found = [i for i in issues if i["id"] == typed.id]
    if not found:
        fail(f"issue {typed.id} not found")
    if typed.command != "show":
        change(found[0], typed)
    return found


def main() -> None:
    if not HERE.is_dir():
        fail("no beads database found")
    with (HERE / "calls").open("a") as calls:
        calls.write(json.dumps([ACTOR, *sys.argv[1:]]) + "\n")
    if (HERE / "slow").exists():
        time.sleep(60)
    if (HERE / "broken").exists():
        fail("database is locked")
    typed = parser().parse_args()
    with (HERE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        file = HERE / "issues.json"
        issues = json.loads(file.read_text()) if file.exists() else []
        reply = run(issues, typed)
        (HERE / "issues.new").write_text(json.dumps(issues))
        (HERE / "issues.new").replace(file)
    if typed.json:
        whole = os.environ.get("BD_JSON_ENVELOPE") == "1"
        print(json.dumps({"schema_version": 1, "data": reply} if whole else reply))


main()
