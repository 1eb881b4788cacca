"""Branches that all conflict with one another, each mended by its own agent in its conversation."""

from __future__ import annotations

import re

import pytest

from fleet.testing.model_server import say
from tests.contract.checkouts import git
from tests.real.model_scratch import COMMIT, ModelScratch, shell
from tests.wait import until

pytestmark = pytest.mark.real
# Both sides of each conflict stay.
MERGE = (
    "git -c user.name=A -c user.email=a@example.invalid merge -q {commit};"
    f" sed -i '/^<<<<<<<\\|^=======\\|^>>>>>>>/d' list.txt && git add list.txt && {COMMIT}"
)


def reply(asked):
    """One command for the task, and one for each time that its work comes back."""
    words = "\n".join(asked.said)
    merges = re.findall(r"\(git merge ([0-9a-f]{12})\)", words)
    if len(asked.results) > len(merges):
        return say("Done.")
    if merges:
        return shell("claude", MERGE.format(commit=merges[-1]))
    line = re.search(r"line-\d+", words)
    return shell("claude", f"echo {line[0]} >> list.txt && git add list.txt && {COMMIT}")


def so_many(scratch, count: int, status: str) -> None:
    """Wait until so many tasks have this status: as long as one more of them comes, they go on."""
    for number in range(1, count + 1):
        until(
            lambda least=number: len(scratch.data("tasks", "--status", status)) >= least,
            why=lambda: scratch("land", "list", "--all") + scratch.story(),
        )


@pytest.mark.timeout(1800)  # one after the other, twenty agents mend a conflict
@pytest.mark.parametrize("count", [4, pytest.param(20, marks=pytest.mark.slow)])
def test_each_conflict_goes_back_to_its_agent_and_all_land(tmp_path, count):
    with ModelScratch("claude", tmp_path, reply) as scratch:
        (scratch.repo / "list.txt").write_text("first\n")
        git(scratch.repo, "add", "-A")
        git(scratch.repo, "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qm", "List")
        for n in range(count):
            scratch.add(f"Add line-{n}")
        scratch.start()
        so_many(scratch, count, "done")
        scratch("land", "--all")
        so_many(scratch, count, "landed")
        lines = git(scratch.repo, "show", "HEAD:list.txt").splitlines()
        assert sorted(lines) == sorted(["first", *(f"line-{n}" for n in range(count))])
        rows = scratch.data("land", "list", "--all")
        assert [row["returns"] for row in rows].count(0) == 1
        assert max(row["returns"] for row in rows) == 1, "nobody mends the same conflict twice"
        assert len({asked.conversation for asked in scratch.server.turns}) == count
