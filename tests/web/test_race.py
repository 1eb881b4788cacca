"""Several solutions of the same work: what was measured of each, and the rule that decided."""

from __future__ import annotations

import pytest

from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.wait import until

RIGHT = "echo 'echo 5' > sum.sh"
WORKS = {"t-2": f"{RIGHT}; echo '# long' >> sum.sh", "t-3": "echo 'echo 7' > sum.sh", "t-4": RIGHT}
COMMIT = "git add -A; git -c user.name=a -c user.email=a@b commit -qm Work"


@pytest.fixture
def served(tmp_path):
    scratch = Scratch(tmp_path / "x")
    for task, work in WORKS.items():
        (scratch.root / f"{task}.sh").write_text(f"set -e\n{work}\n{COMMIT}\n")
    prompt = f'run sh -c "sh {scratch.root}/$FLEET_TASK_ID.sh"'
    words = ("--agents", "scripted", "--test", 'test "$(sh sum.sh)" = 5', "--attempts", "1")
    scratch("best", "3", prompt, *words)
    made = Served(scratch)
    yield made
    made.close()


def test_the_race_is_seen_with_the_winner_and_why_each_other_lost(served, tab):
    scratch = served.scratch
    until(lambda: scratch.data("pick", "t-1")["state"] == "picked", "the race to be decided")
    race = scratch.data("pick", "t-1")
    shown = tab(served, served.token())
    page = shown.open("/land")
    table = page.get_by_role("region").filter(has=page.get_by_role("link", name="t-4")).first
    table.get_by_text("winner").wait_for()
    page.get_by_text(race["why"]).first.wait_for()
    for contender in race["contenders"]:
        link = page.get_by_role("link", name=contender["task"], exact=True)
        row = table.get_by_role("row").filter(has=link)
        assert contender["own"] in row.inner_text()
        if contender["task"] != race["winner"]:
            assert contender["why"][:40] in row.inner_text()
    assert shown.faults() == []
    for width in (360, 768):
        page.set_viewport_size({"width": width, "height": 800})
        assert shown.overflow() <= 0
