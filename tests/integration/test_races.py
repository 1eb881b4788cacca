"""`fleet best` and `fleet pick`: the right solution wins, whatever the others do."""

from __future__ import annotations

import json
import re
import signal
from typing import TYPE_CHECKING

import pytest

from fleet.domain.task import Spec
from fleet.operations.tasks.change import AddTask
from tests.contract.checkouts import git
from tests.integration.test_landing import landed
from tests.wait import until

if TYPE_CHECKING:
    from pathlib import Path

SUM = "echo $(($1 + $2))\n"  # what is asked for
TESTS = """\
for test in tests/test_*.sh; do
    sh "$test" || { echo "$test failed"; exit 1; }
done
"""
OLD = 'test "$(sh sum.sh 0 0)" = 0\n'
NEW = 'test "$(sh sum.sh 2 3)" = 5\n'
TEST = "sh run-tests.sh"
COMMIT = "git add -A; git -c user.name=a -c user.email=a@b commit -qm Work"


@pytest.fixture
def shop(supervised):
    """A repository whose sum is wrong, and whose tests do not see it."""
    (supervised.repo / "tests").mkdir()
    (supervised.repo / "sum.sh").write_text("echo 0\n")
    (supervised.repo / "run-tests.sh").write_text(TESTS)
    (supervised.repo / "tests/test_old.sh").write_text(OLD)
    git(supervised.repo, "add", "-A")
    git(supervised.repo, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "Shop")
    return supervised


def race(shop, folder: Path, *works: str, words: str = "", test: str = TEST) -> dict:
    """The first contender is t-2. Each carries out its own shell script."""
    for number, work in enumerate(works, 2):
        (folder / f"t-{number}.sh").write_text(f"set -e\n{work}\n")
    prompt = f'run sh -c "sh {folder}/$FLEET_TASK_ID.sh"'
    command = ("best", str(len(works)), prompt, "--test", test, "--attempts", "1")
    ended = shop.type(*command, *words.split(), "--json")
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)["data"]


def shown(shop, batch: str = "t-1") -> dict:
    return json.loads(shop.type("pick", batch, "--json").stdout)["data"]


def decided(shop, batch: str = "t-1") -> dict:
    until(lambda: shown(shop, batch)["state"] != "running", why=lambda: str(shown(shop, batch)))
    return shown(shop, batch)


def why(row: dict) -> dict[str, str]:
    return {contender["task"]: contender["why"] for contender in row["contenders"]}


RIGHT = f"printf '{SUM}' > sum.sh"
LARGE = f"printf '# The sum of two numbers.\\n# And more words.\\n{SUM}' > sum.sh"
WRONG = f"echo 'echo 7' > sum.sh; {COMMIT}"
TESTED = f"{LARGE}; printf '%s' '{NEW}' > tests/test_new.sh; {COMMIT}"
DELETES = (
    f"{RIGHT}; git rm -q tests/test_old.sh; mkdir -p tests; echo true > tests/test_x.sh; {COMMIT}"
)


def test_the_right_one_wins_of_those_that_pass_fail_hang_delete_tests_or_do_not_commit(
    shop, tmp_path
):
    works = (f"{LARGE}; {COMMIT}", WRONG, "sleep 600", DELETES, RIGHT)
    race(shop, tmp_path, *works, words="--time-limit 3")
    shop.start()
    row = decided(shop)
    assert (row["state"], row["winner"]) == ("picked", "t-6")
    reasons = why(row)
    assert "lines; t-6 changes" in reasons["t-2"]
    assert "does not pass the test" in reasons["t-3"]
    assert "test_old.sh failed" in reasons["t-3"]
    assert reasons["t-4"].startswith("It failed")
    assert "deletes tests: tests/test_old.sh" in reasons["t-5"]
    assert shop.state("t-2") == "done"
    assert shop.state("t-3") == "done"
    assert shop.state("t-4") == "cancelled"
    assert "t-6 is the best" in shop.type("pick", "t-1").stderr
    assert "test_old.sh failed" in shop.type("pick", "t-1", "--verdicts").stdout
    assert {r["status"] for r in json.loads(shop.type("tasks", "--all", "--json").stdout)["data"]
            if r["id"] in {"t-2", "t-3", "t-5"}} == {"beaten"}  # fmt: skip
    refused = shop.type("land", "t-2")
    assert refused.returncode == 1
    assert "To choose this one: fleet pick t-1 t-2" in refused.stderr
    queued = json.loads(shop.type("land", "--all", "--json").stdout)["data"]
    assert [row["task"] for row in queued] == ["t-6"]
    landed(shop, "t-6")


def test_tests_that_others_wrote_decide_if_they_fail_on_the_base(shop, tmp_path):
    race(shop, tmp_path, TESTED, f"echo 'echo 0 # ' > sum.sh; {COMMIT}")
    shop.start()
    row = decided(shop)
    assert row["winner"] == "t-2", row
    assert "fails 1 of the others' tests" in why(row)["t-3"]
    (cross,) = [v for c in row["contenders"] for v in c["verdicts"] if v["of"] == "t-2"]
    assert not cross["passed"]
    assert "test_new.sh failed" in cross["output"], row


def test_the_winner_lands_and_what_fails_on_todays_branch_does_not_win(shop, tmp_path):
    clash = f"echo x > clash.txt; {RIGHT}; {COMMIT}"
    race(shop, tmp_path, clash, f"{LARGE}; {COMMIT}", words="--land")
    shop.start()
    (shop.repo / "clash.txt").write_text("mine\n")
    until(lambda: shop.task("t-2").tally.runs, why=lambda: shop.story("t-2"))
    git(shop.repo, "add", "-A")
    git(shop.repo, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "Clash")
    row = decided(shop)
    assert row["winner"] == "t-3"
    assert "it conflicts in clash.txt" in why(row)["t-2"]
    landed(shop, "t-3")
    assert "And more words" in git(shop.repo, "show", "HEAD:sum.sh")
    assert shop.task("t-2").tally.landed == ""


def test_with_first_the_others_are_stopped(shop, tmp_path):
    race(shop, tmp_path, "sleep 600", f"{RIGHT}; {COMMIT}", words="--first")
    shop.start()
    row = decided(shop)
    assert row["winner"] == "t-3"
    shop.wait("t-2", state="cancelled")


def test_equals_are_a_tie_until_a_person_picks_one(shop, tmp_path):
    race(shop, tmp_path, f"{RIGHT}; {COMMIT}", f"{RIGHT}; {COMMIT}")
    shop.start()
    row = decided(shop)
    assert (row["state"], row["winner"]) == ("asks", "")
    assert "equal in all that was measured" in row["why"]
    ended = shop.type("pick", "t-1", "t-3", "--land")
    assert ended.returncode == 0, ended.stderr
    assert (row := shown(shop))["winner"] == "t-3"
    assert row["by"] == "ada"
    landed(shop, "t-3")


def test_nobody_wins_when_none_passes(shop, tmp_path):
    race(shop, tmp_path, WRONG, WRONG)
    shop.start()
    row = decided(shop)
    assert (row["state"], row["winner"]) == ("nobody", "")
    assert shop.state("t-2") == "done"


@pytest.mark.parametrize("passed_before", [False, True], ids=["first", "again"])
def test_junit_says_which_tests_no_longer_run(shop, tmp_path, passed_before):
    """A contender that takes a test out of the runner deletes it, though its file is there.

    Its own gate may have been the same command, from which nobody wanted a report.
    """
    suite = "<testsuite>{}</testsuite>"
    case = '<testcase classname="c" name="{}"/>'
    (shop.repo / "report.txt").write_text(suite.format(case.format("one") + case.format("two")))
    git(shop.repo, "add", "-A")
    git(shop.repo, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "Report")
    fewer = f"printf '%s' '{suite.format(case.format('one'))}' > report.txt; {COMMIT}"
    test = "cp report.txt ${FLEET_JUNIT_XML:-/dev/null}"
    race(shop, tmp_path, fewer, f"{LARGE}; {COMMIT}", test=test)
    shop.start(**({"FLEET_RUN_GATE": test} if passed_before else {}))
    row = decided(shop)
    assert row["winner"] == "t-3"
    assert "deletes tests: c::two" in why(row)["t-2"]


def test_a_batch_that_exists_is_judged_without_a_supervisor(shop, tmp_path):
    call, where = shop.client.call, str(shop.repo)
    batch = call(AddTask("Two", "", where, Spec(cwd=where), join="all")).id
    tasks = []
    for number, work in enumerate((LARGE, RIGHT)):
        (tmp_path / f"{number}.sh").write_text(f"{work}\n{COMMIT}\n")
        script = f"run sh {tmp_path}/{number}.sh"
        tasks.append(call(AddTask("x", script, where, Spec(cwd=where), parent=batch)).id)
    shop.start()
    shop.wait(*tasks)
    shop.end(signal.SIGTERM)
    ended = shop.type("pick", batch, "--test", "sh run-tests.sh", "--now")
    assert ended.returncode == 0, ended.stderr
    assert f"{tasks[1]} is the best" in ended.stdout + ended.stderr


def test_a_race_goes_on_after_the_supervisor_was_killed_and_tests_nothing_twice(shop, tmp_path):
    log = tmp_path / "log"
    test = f"echo x >> {log}; sleep 0.5; sh run-tests.sh"
    works = [f"{LARGE}; {COMMIT}", f"{RIGHT}; {COMMIT}", WRONG]
    for number, work in enumerate(works, 2):
        (tmp_path / f"t-{number}.sh").write_text(f"set -e\n{work}\n")
    prompt = f'run sh -c "sh {tmp_path}/$FLEET_TASK_ID.sh"'
    shop.type("best", "3", prompt, "--test", test)
    for _ in range(3):
        shop.start()
        size = log.stat().st_size if log.exists() else 0
        until(lambda size=size: log.exists() and log.stat().st_size > size, why=shop.said)
        shop.end(signal.SIGKILL)
    shop.start()
    row = decided(shop)
    assert row["winner"] == "t-3", row
    assert len(log.read_text().split()) == 4  # the wrong one twice


def test_a_judge_of_another_vendor_is_chosen_by_itself(shop, tmp_path):
    (shop.repo / "fleet.yaml").write_text("agents:\n  fair:\n    coder: codex\n")
    race(shop, tmp_path, f"{RIGHT}; {COMMIT}", f"{RIGHT}; {COMMIT}")
    shop.start()
    until(lambda: shown(shop)["judges"], why=lambda: str(shown(shop)))
    assert {shop.task(task).spec.agent for task in shown(shop)["judges"]} == {"fair"}


def test_a_tie_is_declared_where_no_judge_is_wanted(shop, tmp_path):
    (shop.repo / "fleet.yaml").write_text("agents:\n  fair:\n    coder: codex\n")
    race(shop, tmp_path, f"{RIGHT}; {COMMIT}", f"{RIGHT}; {COMMIT}", words="--judge none")
    shop.start()
    row = decided(shop)
    assert (row["state"], row["judges"]) == ("asks", [])


def test_a_judge_decides_only_in_both_orders(shop, tmp_path):
    (shop.repo / "fleet.yaml").write_text(
        "agents:\n  fair:\n    coder: scripted\n    model: other-model\n    role: team-lead\n"
    )
    race(shop, tmp_path, f"{RIGHT}; {COMMIT}", f"{RIGHT}; {COMMIT}", words="--judge fair")
    shop.start()
    until(lambda: shown(shop)["judges"], why=lambda: str(shown(shop)))
    row = decided(shop)
    assert row["state"] == "asks"  # its prompt is no script: it says nothing
    assert len(row["judges"]) == 2
    prompts = [shop.task(task).prompt for task in row["judges"]]
    assert [re.findall(r"\bt-[23]\b", text) for text in prompts] == [[], []]
    assert {shop.task(task).role for task in row["judges"]} == {"worker"}  # it only reads


def test_a_gate_that_hangs_disqualifies(shop, tmp_path):
    hangs = f"echo 'sleep 600' > tests/test_slow.sh; {RIGHT}; {COMMIT}"
    race(shop, tmp_path, hangs, f"{LARGE}; {COMMIT}")
    shop.start(FLEET_RUN_GATE_LIMIT="2")
    row = decided(shop)
    assert row["winner"] == "t-3"
    assert "took more than 2 s" in why(row)["t-2"]


def test_work_that_adds_a_secret_cannot_win(shop, tmp_path):
    leaks = f"{RIGHT}; echo AKIA{'Q' * 16} > key.txt; {COMMIT}"
    race(shop, tmp_path, leaks, f"{LARGE}; {COMMIT}")
    shop.start()
    row = decided(shop)
    assert row["winner"] == "t-3"
    assert why(row)["t-2"] == "It adds what looks like a secret: key.txt"


def test_with_escalation_the_others_start_only_when_the_first_two_do_not_decide(shop, tmp_path):
    passes = f"{RIGHT}; {COMMIT}"
    race(shop, tmp_path, WRONG, "exit 1", passes, WRONG, passes, words="--escalate")
    assert [c["status"] for c in shown(shop)["contenders"]] == ["ready"] * 2 + ["paused"] * 3
    assert why(shown(shop))["t-6"] == (
        "It starts only if the solutions before it do not decide the race."
    )
    shop.start()
    row = decided(shop)
    assert row["winner"] == "t-4"
    assert why(row)["t-6"] == "It was not needed."
    assert shop.state("t-6") == "cancelled"
    assert shop.task("t-6").tally.runs == 0


def test_with_escalation_two_that_fail_each_others_tests_are_not_enough(shop, tmp_path):
    wrong = f"echo 'echo 0 # ' > sum.sh; {COMMIT}"
    race(shop, tmp_path, TESTED, wrong, f"{RIGHT}; {COMMIT}", words="--escalate")
    shop.start()
    assert decided(shop)["winner"] == "t-4"
