"""One task: what was said, what changed, remarks on it, and what happened."""

from __future__ import annotations

import pytest

from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.wait import until

SCRIPT = """say Reading **the code**.
think Is there a price anywhere?
run printf a\\nb\\nc
say <img src=x onerror=alert(1)> [here](javascript:alert(1))
lines 400
say The needle is here.
lines 400
write prices.py PRICES = {'tea': 3}
commit Prices"""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    scratch = Scratch(tmp_path_factory.mktemp("task") / "x")
    scratch.add("Read prices", "--review", "--gate", "echo 12 passed", script=SCRIPT)
    scratch.add("Speak", script="speak 20 900")
    made = Served(scratch)
    scratch.wait_for("t-1", "review")
    scratch.wait_for("t-2", "running")
    yield made
    made.close()


@pytest.fixture(scope="module")
def token(served):
    return served.token()


def test_the_outcome_comes_first(served, token, tab):
    page = tab(served, token).open("/t/t-1")
    gate = page.get_by_role("region", name="Gate")
    gate.get_by_text("passed", exact=True).wait_for()
    gate.get_by_text("Output").click()
    gate.get_by_text("12 passed", exact=True).wait_for()
    page.get_by_role("region", name="Changes").get_by_text("prices.py").wait_for()


def test_the_transcript_ends_at_the_last_line_and_leads_back_to_the_first(served, token, tab):
    page = tab(served, token).open("/t/t-1/transcript")
    page.get_by_text("The turn ended").wait_for()
    assert page.get_by_text("Reading the code.").count() == 0
    page.get_by_role("button", name="First").click()
    page.get_by_text("the code").wait_for()
    page.get_by_role("button", name="Thinking").click()
    page.locator("pre").get_by_text("Is there a price anywhere?").wait_for()


def test_text_in_a_transcript_is_found_and_shown_in_its_place(served, token, tab):
    page = tab(served, token).open("/t/t-1/transcript")
    page.get_by_label("Search the transcript").fill("NEEDLE")
    page.get_by_role("button", name="The needle is here").click()
    page.locator(".marked").get_by_text("The needle is here.").wait_for()


def test_what_an_agent_says_is_text(served, token, tab):
    page = tab(served, token).open("/t/t-1/transcript")
    page.get_by_role("button", name="First").click()
    page.get_by_text("<img src=x onerror=alert(1)>").wait_for()
    assert page.locator("main img, main a[href^=javascript]").count() == 0


def test_a_running_agent_is_read_line_by_line_as_it_speaks(served, token, tab):
    page = tab(served, token).open("/t/t-2/transcript")
    lines = page.locator(".line-said .no")
    lines.last.wait_for()
    before = int(lines.last.inner_text())
    until(lambda: int(lines.last.inner_text()) > before + 5, "more lines to come")


def test_changes_are_asked_for_once_while_the_code_that_shows_them_comes(served, token, tab):
    shown = tab(served, token)
    page, held, asked = shown.open("/t/t-1/timeline"), [], []
    page.get_by_text("Task added").wait_for()
    page.route("**/screens/diff.js", lambda route: held.append(route))  # noqa: PLW0108  # it marks what it calls
    page.on("request", lambda request: asked.append(request.url.endswith("/v1/task/diff")))
    with page.expect_request("**/v1/task/diff"):
        page.get_by_role("link", name="Changes").click()
    held[0].continue_()
    page.locator(".code-line").first.wait_for()
    assert sum(asked) == 1


def test_a_remark_on_a_line_goes_to_the_agent_with_the_work(served, token, tab):
    shown = tab(served, token)
    page = shown.open("/t/t-1/diff")
    page.get_by_role("button", name="Comment on line 1").click()
    page.get_by_label("Comment on prices.py:1").fill("Coffee, too.")
    assert shown.faults() == []
    page.get_by_role("button", name="Comment", exact=False).last.click()
    page.get_by_text("not sent yet").wait_for()
    page.get_by_role("button", name="Send back").click()
    page.get_by_role("dialog").get_by_role("button", name="Send back").click()
    page.get_by_text("with its agent again").wait_for()
    words = [m["text"] for m in served.scratch.data("show", "t-1")["messages"]]
    assert any("prices.py:1: Coffee, too." in text for text in words)


def test_what_happened_is_listed_with_who_did_it(served, token, tab):
    page = tab(served, token).open("/t/t-1/timeline")
    page.get_by_text("Task added").wait_for()
    page.get_by_text("Run claimed").first.wait_for()


def test_the_files_about_a_task_are_listed_and_read(served, token, tab):
    folder = served.scratch.home / "tasks" / "t-1" / "artifacts"
    (folder / "FOUND.md").write_text(
        "<!-- for later -->\n\n# Findings\n\nThe tax is <b>in</b> the price."
    )
    shown = tab(served, token)
    page = shown.open("/t/t-1/files")
    page.get_by_role("button", name="FOUND.md").click()
    text = page.get_by_role("article", name="artifacts/FOUND.md")
    text.get_by_text("The tax is <b>in</b> the price.").wait_for()
    text.get_by_text("Findings").wait_for()
    folded = text.get_by_text("Comment")
    folded.wait_for()
    assert text.get_by_text("for later").is_hidden()
    folded.click()
    text.get_by_text("<!-- for later -->").wait_for()
    edges = [part.bounding_box()["x"] for part in (text, text.get_by_text("Findings"))]
    assert edges[1] - edges[0] >= 12  # a margin, as files of other kinds have
    page.get_by_role("button", name="log.jsonl").click()
    page.get_by_role("article", name="log.jsonl").get_by_text("task.added").first.wait_for()
    assert shown.faults() == []


def test_a_status_is_explained_by_its_evidence(served, token, tab):
    shown = tab(served, token)
    page = shown.open("/t/t-2/explain")
    page.get_by_role("region", name="Status").get_by_text("Its agent is at work.").wait_for()
    now = page.get_by_role("region", name="Its agent now")
    now.get_by_text("Known by").wait_for()
    [sight] = [row for row in served.scratch.data("list") if row["task"] == "t-2"]
    now.get_by_text(sight["doing"], exact=True).wait_for()
    (run,) = served.scratch.data("show", "t-2")["runs"]
    page.get_by_role("region", name="How each run ended").get_by_text(
        run["host"], exact=True
    ).wait_for()
    assert shown.faults() == []


def test_changes_are_compared_with_an_earlier_checkpoint(served, token, tab):
    task = served.scratch.add("Twice", "--review", script="write one.txt 1\ncommit One")
    served.scratch.wait_for(task, "review")
    served.scratch("send-back", task, "write two.txt 2\ncommit Two")
    until(lambda: len(served.scratch.data("show", task)["runs"]) == 2, "its second run")
    served.scratch.wait_for(task, "review")
    page = tab(served, token).open(f"/t/{task}/diff")
    page.get_by_role("region", name="Changes").get_by_text("one.txt").first.wait_for()
    choice = page.get_by_label("Compare with")
    commit = served.scratch.data("show", task)["runs"][0]["commit"]
    choice.select_option(commit)
    page.get_by_role("region", name="Changes").get_by_text("one.txt").first.wait_for(
        state="detached"
    )


def test_the_checkpoints_of_a_task_are_listed_with_what_changed_since(served, token, tab):
    script = "write one.txt 1\ncommit One\nend\nwrite two.txt 2\ncommit Two"
    task = served.scratch.add("Thrice", "--review", script=script)
    served.scratch.wait_for(task, "review")
    served.scratch("send-back", task, "Go on.")
    until(lambda: len(served.scratch.data("show", task)["runs"]) == 2, "its second run")
    served.scratch.wait_for(task, "review")
    first, second = (run["commit"] for run in served.scratch.data("show", task)["runs"])
    assert first != second
    page = tab(served, token).open(f"/t/{task}")
    checkpoints = page.get_by_role("region", name="Checkpoints")
    checkpoints.get_by_text(second[:10]).wait_for()
    assert checkpoints.get_by_role("listitem").count() == 2
    checkpoints.get_by_role("link", name="Changes since").click()
    changes = page.get_by_role("region", name="Changes")
    changes.get_by_text("two.txt").first.wait_for()
    assert changes.get_by_text("one.txt").count() == 0
    assert page.get_by_label("Compare with").input_value() == first


def test_turns_are_listed_to_jump_to(served, token, tab):
    served.scratch.wait_for("t-1", "review")  # it may have been sent back
    page = tab(served, token).open("/t/t-1/transcript")
    page.locator(".line-said").last.wait_for()
    page.get_by_role("button", name="Turns").click()
    page.locator(".hits button").filter(has_text="result").last.click()
    page.locator(".line-said.marked").get_by_text("The turn ended").wait_for()


def test_a_pause_of_a_running_task_is_seen_and_can_be_taken_back(served, token, tab):
    page = tab(served, token).open("/t/t-2")
    page.get_by_role("button", name="Pause after this run").click()
    page.get_by_text("t-2 finishes its current run").wait_for()
    page.locator(".meta").get_by_text("pauses after this run").wait_for()
    assert served.scratch.data("show", "t-2")["task"]["paused"] is True
    page.get_by_role("button", name="Do not pause").click()
    page.get_by_role("button", name="Pause after this run").wait_for()
    assert served.scratch.data("show", "t-2")["task"]["paused"] is False


def test_what_a_running_agent_does_now_is_on_its_first_page(served, token, tab):
    page = tab(served, token).open("/t/t-2")
    steps = page.get_by_role("region", name="Now").locator("li")
    until(lambda: steps.count() > 1, "more than its last words")


def test_a_task_that_is_not_there_is_said_to_be_missing(served, token, tab):
    shown = tab(served, token)
    page = shown.open("/t/t-999")
    page.get_by_role("heading", name="There is no task t-999").wait_for()
    assert shown.faults() == []
    page.get_by_role("link", name="See all tasks").click()
    page.get_by_role("heading", name="Tasks", level=1).wait_for()
    shown.wrong = [text for text in shown.wrong if "404" not in text]
