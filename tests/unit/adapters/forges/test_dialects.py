"""Gitea and GitLab are asked, and our stand-in answers, as they document it."""

from __future__ import annotations

import pytest

from fleet.adapters.forges.addresses import parse
from fleet.adapters.forges.forges import HostForges
from fleet.domain.errors import Conflict, Refused
from fleet.domain.forges.pull import GateNote, PullDraft, PullState
from tests.contract.checkouts import commit, git, make_repo
from tests.forges.fake_forge import TOKEN, FakeForge, Issue
from tests.forges.shapes import SHAPES, check, name_of


@pytest.fixture(params=["gitea", "gitlab"])
def forge(request, tmp_path):
    made = FakeForge(request.param, tmp_path / "forge")
    repo = make_repo(tmp_path / "shop")
    made.adopt(repo)
    git(repo, "checkout", "-q", "-b", "fleet/t-1")
    made.work = commit(repo, "work", **{"a.txt": "x\n"})
    git(repo, "push", "-q", "origin", "fleet/t-1")
    made.issues.append(Issue(1, "Wrong prices", "All.", labels=("fleet",)))
    yield made
    made.close()


def test_every_request_and_reply_is_as_documented(forge):
    forges = HostForges({"FLEET_FORGE_TOKEN": TOKEN}, lambda: [f"{forge.host}={forge.kind}"])
    there = forges.at(parse(forge.url))
    draft = PullDraft("Prices", "All of them.", "fleet/t-1", "main")
    assert there.find("fleet/t-1", "main") is None
    number = there.open(draft).number
    with pytest.raises(Refused):
        there.open(draft)
    there.update(number, draft._replace(title="Prices!"))
    assert there.find("fleet/t-1", "main").title == "Prices!"
    there.report(forge.work, GateNote(passed=True, text="Passes."))
    there.comment(number, "Look.", "t-1 look")
    with pytest.raises(Conflict):
        there.merge(number, "0" * 40, "merge")
    forge.not_mergeable = "Not yet."
    with pytest.raises(Refused) as caught:
        there.merge(number, forge.work, "merge")
    assert caught.value.code == "not_mergeable"
    forge.not_mergeable = ""
    there.merge(number, forge.work, "squash")
    assert there.show(number).state is PullState.MERGED
    assert there.show(number).merged_as == forge.tip("main")
    (ticket,) = there.search("label:fleet prices", 5)
    assert there.ticket(1) == ticket
    forges.tickets.comment(ticket.url, "Done.", "t-1 done")
    there.close(number)
    assert {name_of(exchange) for exchange in forge.exchanges} == set(SHAPES[forge.kind])
    for exchange in forge.exchanges:
        check(forge.kind, exchange)
