"""`fleet eval` with a real llama.cpp server, and a scripted API in place of hosted models.

The model has 135 million parameters and can do hardly any of the jobs. So these tests are about what
is asked, measured and kept, and about a server that really dies, not about its marks.
"""

from __future__ import annotations

import json
import subprocess
import urllib.request

import pytest

from tests.e2e.scratch import FLEET, Scratch
from tests.eval_student import answer, hasty
from tests.frontier_server import KEY, FrontierServer
from tests.real.llama_server import NAME, LlamaServer
from tests.wait import until

pytestmark = pytest.mark.real
FLEET_YAML = """\
nodes:
  here: {{endpoint: "{url}", kind: llamacpp}}
models:
  {name}: {{node: here, upstream: {name}, context: 2048, timeout: 300}}
"""


@pytest.fixture
def node():
    with LlamaServer(context=2048) as made:
        yield made


@pytest.fixture
def scratch(tmp_path, node):
    made = Scratch(tmp_path)
    (made.repo / "fleet.yaml").write_text(FLEET_YAML.format(url=node.url, name=NAME))
    return made


def typed(scratch, *words, env=None):
    """A real model takes longer than other commands may."""
    argv, whole = [FLEET, *words], scratch.env | (env or {})
    return subprocess.run(
        argv, cwd=scratch.repo, env=whole, capture_output=True, text=True, timeout=900, check=False
    )


def test_a_real_server_is_asked_every_case_and_its_replies_are_graded(scratch):
    done = typed(scratch, "eval", "--json", "--seed", "1", "--output-tokens", "64")
    assert done.returncode == 1, done.stderr  # it cannot do all of it
    (row,) = json.loads(done.stdout)["data"]["rows"]
    cases = {case["case"]: case for case in row["cases"]}
    assert len(cases) == 8
    for case in cases.values():
        assert case["passed"] or case["why"], case
    answered = [case for case in cases.values() if case["seconds"]]
    assert len(answered) >= 7  # a server may refuse tools
    assert all(case["output_tokens"] > 0 for case in answered)
    assert all(0 < case["first"] < case["seconds"] for case in answered)
    assert "no whole answer" not in done.stdout
    assert "offline" not in done.stdout


def test_a_server_that_is_killed_fails_the_rest_of_its_cases(scratch, node):
    argv = [FLEET, "eval", "--json", "--seed", "1", "--output-tokens", "64"]
    with subprocess.Popen(
        argv, cwd=scratch.repo, env=scratch.env, stdout=subprocess.PIPE, text=True
    ) as process:
        until(lambda: busy(node.url), "it was never asked")
        node.__exit__()
        out, _ = process.communicate()
    assert process.returncode == 1
    (row,) = json.loads(out)["data"]["rows"]
    whys = [case["why"] for case in row["cases"]]
    assert any("here went offline during" in why for why in whys)
    assert whys[-1].endswith("connection refused")


def busy(url: str) -> bool:
    with urllib.request.urlopen(f"{url}/slots") as reply:
        return any(slot["is_processing"] for slot in json.load(reply))


def test_the_fleet_stands_beside_scripted_models_that_are_scored_by_the_same_tests(scratch):
    models = {
        "scripted/right": answer,
        "scripted/hasty": hasty,
        "scripted/judge": lambda _: "ANSWER: B",
    }
    with FrontierServer(models) as server:
        words = ["--frontier", "scripted/right", "--frontier", "scripted/hasty"]
        words += [
            "--judge",
            "scripted/judge",
            "--frontier-url",
            server.url,
            "--output-tokens",
            "64",
        ]
        done = typed(scratch, "eval", "--json", *words, env={"OPENROUTER_API_KEY": KEY})
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)["data"]
    rows = {row["model"]: row for row in data["rows"]}
    assert rows["scripted/right"]["passed"] == 8
    assert rows["scripted/hasty"]["passed"] == 0
    assert 0.5 < rows["scripted/hasty"]["score"] < 1
    assert rows[NAME]["score"] < rows["scripted/hasty"]["score"]
    assert rows[NAME]["cost"] == 0 < rows["scripted/right"]["cost"]
    assert rows[NAME]["latency"] > rows["scripted/right"]["latency"]
    assert (data["agreement"]["pairs"], data["agreement"]["agreed"]) == (16, 0)
