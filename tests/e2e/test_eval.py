"""`fleet eval`: stand-in nodes that can do their jobs, that cannot, and that die at it."""

from __future__ import annotations

import json
import stat
from xml.etree import ElementTree as ET

import pytest

from fleet.testing.fake_node.node import FakeModel, FakeNode
from tests.e2e.scratch import Scratch
from tests.eval_student import answer, without
from tests.frontier_server import COST, KEY, FrontierServer

SMALL, HEAVY = "qwen2.5-coder:7b", "qwen2.5-coder:32b"
FLEET_YAML = """\
nodes:
  laptop: {{endpoint: "{laptop}"}}
  tower: {{endpoint: "{tower}", kind: vllm}}
models:
  small: {{node: laptop, upstream: "{small}", context: 4096, timeout: 30}}
  heavy: {{node: tower, upstream: "{heavy}", context: 8192, timeout: 30}}
agents:
  planner: {{model: small, description: Plans.}}
  reviewer: {{model: heavy, description: Reviews.}}
"""
PLANNER = {"arithmetic", "reasoning", "classification", "tool call", "streaming"}
REVIEWER = {"review", "reasoning", "long context", "streaming"}
ALL = PLANNER | REVIEWER | {"code"}


class Scene:
    def __init__(self, root) -> None:
        self.scratch = Scratch(root)
        self.laptop = FakeNode([SMALL], reply=answer).start()
        self.tower = FakeNode([HEAVY], kind="vllm", reply=answer).start()
        urls = {"laptop": self.laptop.url, "tower": self.tower.url}
        file = self.scratch.repo / "fleet.yaml"
        file.write_text(FLEET_YAML.format(small=SMALL, heavy=HEAVY, **urls))

    def cases(self, *words: str, status: int = 0) -> dict[str, dict[str, dict]]:
        """By node and case."""
        done = self.scratch.type("eval", "--json", *words)
        assert done.returncode == status, done.stdout + done.stderr
        rows = json.loads(done.stdout)["data"]["rows"]
        return {row["node"] or row["model"]: {c["case"]: c for c in row["cases"]} for row in rows}


@pytest.fixture
def scene(tmp_path):
    made = Scene(tmp_path)
    yield made
    made.laptop.stop()
    made.tower.stop()


def test_every_node_is_asked_the_jobs_of_its_agents_and_passes(scene):
    done = scene.scratch.type("eval")
    assert done.returncode == 0, done.stdout
    assert "9 of 9 cases passed." in done.stdout
    cases = scene.cases()
    assert set(cases["laptop"]) == PLANNER
    assert set(cases["tower"]) == REVIEWER
    assert cases["laptop"]["classification"]["right"] == 10
    everything = scene.cases("--all")
    assert set(everything["laptop"]) == set(everything["tower"]) == ALL
    assert all(case["score"] == 1 for node in everything.values() for case in node.values())


def test_a_model_that_an_agent_wants_on_nodes_with_a_tag_is_asked_once(scene):
    file = scene.scratch.repo / "fleet.yaml"
    text = file.read_text().replace("laptop: {endpoint", "laptop: {tags: [gpu], endpoint")
    file.write_text(text.replace("{model: small,", "{model: small, needs: [gpu],"))
    done = json.loads(scene.scratch("eval", "--json"))["data"]["rows"]
    assert [(row["model"], row["node"]) for row in done] == [
        ("small", "laptop"),
        ("heavy", "tower"),
    ]
    assert {case["case"] for case in done[0]["cases"]} == PLANNER
    named = json.loads(scene.scratch("eval", "--agent", "planner", "--json"))["data"]["rows"]
    assert [row["model"] for row in named] == ["small+gpu"]


def test_it_asks_new_numbers_each_time_and_the_same_with_its_seed(scene):
    def prompts(*words: str) -> list[str]:
        before = len(scene.laptop.seen)
        scene.cases("--agent", "planner", *words)
        asked = [seen for seen in scene.laptop.seen[before:] if seen.path == "/api/chat"]
        return [seen.body["messages"][0]["content"] for seen in asked]

    assert prompts("--seed", "7") == prompts("--seed", "7")
    assert prompts() != prompts()


def test_a_node_that_answers_wrongly_fails_the_job_that_it_cannot_do_and_no_other(scene):
    scene.laptop.set(reply=without("Classify"))
    cases = scene.cases(status=1)
    assert {name for name, case in cases["laptop"].items() if not case["passed"]} == {
        "classification"
    }
    why = cases["laptop"]["classification"]["why"]
    assert why.startswith("0 of 10 right, 8 needed: i am not sure")
    assert all(case["passed"] for case in cases["tower"].values())


def test_code_that_looks_right_and_is_not_fails_because_it_is_run(scene):
    def reply(body):
        right = answer(body)
        return right.replace(">= ", "> ") if isinstance(right, str) and "runs" in right else right

    scene.laptop.set(reply=reply)
    code = scene.cases("--all", "--node", "laptop", status=1)["laptop"]["code"]
    assert 0 < code["score"] < 1
    assert "tests passed: test_runs_are_counted: AssertionError" in code["why"]


def test_a_model_that_does_not_call_the_tool_or_calls_it_wrongly_fails(scene):
    def reply(body):
        right = answer(body)
        if isinstance(right, dict):
            return {"name": "read_build", "arguments": {"build": 1}}
        return right

    scene.laptop.set(reply=reply)
    why = scene.cases("--agent", "planner", status=1)["laptop"]["tool call"]["why"]
    assert "it called read_build with {'build': 1}" in why


def test_a_node_that_dies_in_the_middle_fails_its_other_cases_with_the_reason(scene):
    def reply(body):
        if "Classify" in body["messages"][0]["content"]:
            scene.laptop.manner.die = 0
            scene.laptop.manner.refuse = True
            scene.laptop._server.close()  # the port is closed while the reply breaks off
            scene.laptop._server = None
        return answer(body)

    scene.laptop.set(reply=reply)
    cases = scene.cases("--all", status=1)
    order = list(cases["laptop"])
    dead = order.index("classification")
    assert all(cases["laptop"][name]["passed"] for name in order[:dead])
    assert "connection reset" in cases["laptop"]["classification"]["why"]
    for name in order[dead + 1 :]:
        why = cases["laptop"][name]["why"]
        assert why == "laptop went offline during classification: connection refused"
    assert all(case["passed"] for case in cases["tower"].values())


def test_a_node_that_is_down_fails_all_its_cases_and_one_without_the_model_says_so(scene):
    scene.laptop.set(refuse=True)
    scene.tower.models = {"another": FakeModel("another")}
    done = scene.scratch.type("eval")
    assert done.returncode == 1
    lines = [line.split(maxsplit=4) for line in done.stdout.splitlines()]
    assert sum(line[:2] == ["small", "laptop"] for line in lines) == len(PLANNER)
    assert "connection refused" in done.stdout
    assert f"it does not have {HEAVY}" in done.stdout


def test_a_reply_that_is_not_streamed_fails_the_streaming_case(scene):
    def whole(body):
        return answer(body).replace("\n", ",") if "Count" in str(body) else answer(body)

    scene.tower.set(reply=whole)
    case = scene.cases("--node", "tower", status=1)["tower"]["streaming"]
    assert case["why"] == "it came in 1 pieces, so it was not streamed"


def test_the_results_are_kept_for_their_owner_and_listed_and_written_for_a_ci_server(scene):
    scene.laptop.set(reply=without("Classify"))
    done = scene.scratch.type("eval", "--junit", "eval.xml", "--out", "results")
    assert done.returncode == 1
    root = ET.parse(scene.scratch.repo / "eval.xml").getroot()
    suites = {suite.get("name"): suite for suite in root}
    assert suites["small on laptop"].get("failures") == "1"
    (failure,) = root.iter("failure")
    assert failure.get("message").startswith("0 of 10 right")
    (file,) = (scene.scratch.home / "evals").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    (row,) = scene.scratch.data("evals")
    assert (row["id"], row["cases"], row["passed"]) == (file.stem, 9, 8)
    detail = scene.scratch.data("evals", file.stem)
    assert [model["node"] for model in detail["models"]] == ["laptop", "tower"]
    assert "classification" in scene.scratch("evals", file.stem)
    assert "There is no eval 'x'." in scene.scratch.fails("evals", "x", status=2)
    (page,) = (scene.scratch.repo / "results").glob("eval-*.md")
    assert "| small | laptop | classification | failed |" in page.read_text()


def test_nothing_is_asked_when_the_results_cannot_be_written(scene):
    file = scene.scratch.repo / "taken"
    file.write_text("")
    for option, path in (("--out", file / "below"), ("--junit", file / "eval.xml")):
        said = scene.scratch.fails("eval", option, str(path), status=3)
        assert "Results cannot be written to" in said
        assert f"Give another place: {option}." in said
    assert not scene.laptop.asked("/api/chat")


def test_names_that_are_not_there_are_refused(scene):
    assert "Did you mean 'tower'?" in scene.scratch.fails("eval", "--node", "towr", status=2)
    assert "There is no model 'x'" in scene.scratch.fails("eval", "--model", "x", status=2)
    assert "There is no agent 'x'" in scene.scratch.fails("eval", "--agent", "x", status=2)
    assert "There is no folder x" in scene.scratch.fails("eval", "--suite", "x", status=2)
    needs = scene.scratch.fails("eval", "--judge", "acme/judge", status=2)
    assert "--judge needs --frontier MODEL." in needs


def test_a_suite_of_ones_own_is_asked_and_its_mistakes_are_named_by_line(scene):
    folder = scene.scratch.repo / "cases"
    folder.mkdir()
    (folder / "sum.yaml").write_text(
        "prompt: What is 20 + 22? Reply with the number.\nnumber: 42\n"
    )
    (folder / "kinds.yaml").write_text(
        "prompt: 'Classify: {text}'\nlabels: [bug, docs]\nneed: 1\nitems:\n"
        "  - {text: 'The README still shows the old install command.', answer: docs}\n"
        "  - {text: 'Nobody knows this one.', answer: bug}\n"
    )
    cases = scene.cases("--suite", "cases", "--node", "tower")
    assert {name: case["passed"] for name, case in cases["tower"].items()} == {
        "kinds": True,
        "sum": True,
    }
    (folder / "sum.yaml").write_text("promt: 1 + 1?\n\nnumber: two\n")
    wrong = scene.scratch.fails("eval", "--suite", "cases", status=2)
    assert "cases/sum.yaml:1: promt: is not a key of a case." in wrong
    assert "cases/sum.yaml:3: number: must be a number." in wrong


def judge(body: dict) -> str:
    """Prefers the answer with more Python in it, whichever comes first."""
    prompt = body["messages"][0]["content"]
    one = prompt.split("<answer-A>")[1].split("</answer-A>")[0]
    other = prompt.split("<answer-B>")[1].split("</answer-B>")[0]
    return f"ANSWER: {'A' if one.count('return') > other.count('return') else 'B'}"


def first(_body: dict) -> str:
    return "ANSWER: A"


def lazy(body: dict) -> str:
    """A hosted model that can do one task of eight."""
    text = body["messages"][0]["content"]
    return answer(body) if "LRUCache" in text else "I am acme/lazy, and cannot: return None."


def test_the_fleet_is_compared_with_hosted_models_by_tests_that_run(scene):
    models = {"acme/clever": answer, "acme/lazy": lazy, "acme/judge": judge}
    scene.laptop.set(reply=without("LRUCache"))
    with FrontierServer(models, silent=("acme/lazy",)) as server:
        words = ["--frontier", "acme/clever", "--frontier", "acme/lazy", "--judge", "acme/judge"]
        words += ["--frontier-url", server.url, "--out", "docs/evals"]
        env = {"OPENROUTER_API_KEY": KEY}
        shown = scene.scratch.type("eval", *words, env=env)
        assert shown.returncode == 0, shown.stderr
    (file,) = (scene.scratch.repo / "docs/evals").glob("frontier-comparison-*.json")
    data = json.loads(file.read_text())
    rows = {row["model"]: row for row in data["rows"]}
    assert {name: row["passed"] for name, row in rows.items()} == {
        "small": 7,
        "heavy": 8,
        "acme/clever": 8,
        "acme/lazy": 1,
    }
    assert rows["acme/clever"]["cost"] == pytest.approx(8 * COST)
    assert rows["acme/lazy"]["cost"] == pytest.approx(8 * (1000 * 1e-6 + 500 * 2e-6))
    assert rows["small"]["cost"] == 0
    assert server.keys == {f"Bearer {KEY}"}
    assert KEY not in file.read_text() + shown.stdout
    judged = [r for r in server.requests if r["model"] == "acme/judge"]
    assert len(judged) == 2 * (2 * 2 * 8)  # pairs; both orders
    names = ("acme", "lazy", "clever", "laptop", "tower", "qwen")
    texts = [r["messages"][0]["content"].lower() for r in judged]
    assert not [name for text in texts for name in names if name in text]
    agreement = data["agreement"]
    assert agreement["pairs"] == 32
    assert 0 < agreement["agreed"] < 32  # two equal answers: it says B to both
    assert agreement["with_tests"] == agreement["decided"] > 0
    assert "acme/judge, saw 32 pairs of answers without names, in both orders" in shown.stdout
    (page,) = (scene.scratch.repo / "docs/evals").glob("frontier-comparison-*.md")
    assert "| small on laptop | 88% | 7 of 8 |" in page.read_text()


def test_a_judge_that_goes_by_the_order_agrees_with_itself_in_nothing(scene):
    with FrontierServer({"acme/lazy": lazy, "acme/first": first}) as server:
        words = ["--frontier", "acme/lazy", "--judge", "acme/first", "--frontier-url", server.url]
        done = scene.scratch.type("eval", "--json", "--model", "small", *words)
    data = json.loads(done.stdout)["data"]
    assert (data["agreement"]["pairs"], data["agreement"]["agreed"]) == (8, 0)
    assert all(opinion["winner"] is None for opinion in data["opinions"])


def test_a_comparison_needs_a_key_a_safe_address_and_models_that_are_there(scene):
    missing = scene.scratch.fails("eval", "--frontier", "acme/x", status=3)
    assert "OPENROUTER_API_KEY is not set" in missing
    plain = ["--frontier-url", "http://models.example/v1"]
    unsafe = scene.scratch.fails("eval", "--frontier", "acme/x", *plain, status=2)
    assert "is not an https address" in unsafe
    with FrontierServer({"acme/clever": answer}) as server:
        words = ["--frontier", "acme/clevr", "--frontier-url", server.url]
        assert "Did you mean 'acme/clever'?" in scene.scratch.fails("eval", *words, status=2)
        assert server.requests == []


def test_what_costs_money_is_left_out_unless_it_is_named(scene):
    file = scene.scratch.repo / "fleet.yaml"
    file.write_text(file.read_text().replace("kind: vllm", "kind: openrouter"))
    done = scene.scratch.type("eval")
    assert "tower costs money, so it is asked only when it is named: --node tower." in done.stderr
    assert scene.tower.asked("/v1/chat/completions") == []


def test_recommend_goes_by_what_the_models_can_do(scene):
    scene.laptop.set(prefill=20000, decode=4000)
    scene.tower.set(prefill=20000, decode=2000)
    scene.scratch("benchmark", "--repeat", "1", "--prompt-tokens", "64", "--output-tokens", "16")
    scene.tower.set(reply=without("test suite"))  # the larger model is wrong in one thing only
    scene.laptop.set(reply=lambda _body: "I cannot say.")
    scene.scratch.type("eval", "--all")
    data = scene.scratch.data("recommend")
    changes = {change["setting"]: change for change in data["changes"]}
    assert changes["agents.planner.model"]["value"] == "heavy"
    assert "heavy scores 93% at its jobs, small 0%" in changes["agents.planner.model"]["why"]
    assert {seat["agent"]: seat["quality"] for seat in data["agents"]}["reviewer"] > 0.9
