"""`fleet benchmark`: what it prints is what the stand-in nodes were told to be."""

from __future__ import annotations

import json
import os
import pty
import re
import stat
import subprocess
from contextlib import suppress

import pytest

from fleet.testing.fake_node.node import FakeNode
from tests.e2e.scratch import FLEET, Scratch
from tests.wait import LIMIT

SMALL, HEAVY = "qwen2.5-coder:7b", "qwen2.5-coder:32b"
FLEET_YAML = """\
nodes:
  laptop: {{endpoint: "{laptop}"}}
  tower: {{endpoint: "{tower}"}}
  box: {{endpoint: "{box}", kind: llamacpp}}
models:
  small:
    servings: {{laptop: "{small}", tower: "{small}", box: "{small}"}}
  heavy: {{node: tower, upstream: "{heavy}", context: 16384, timeout: 20}}
"""
QUICK = ("--repeat", "1", "--prompt-tokens", "200", "--output-tokens", "20")


class Place:
    def __init__(self, root) -> None:
        self.scratch = Scratch(root)
        self.laptop = FakeNode([SMALL], prefill=1000, decode=50, load=0.3, output=100).start()
        more = {"load": 0.6, "slots": 2, "output": 100}
        self.tower = FakeNode([SMALL, HEAVY], prefill=4000, decode=200, **more).start()
        self.box = FakeNode([SMALL], kind="llamacpp", prefill=2000, decode=100, output=100).start()
        urls = {name: getattr(self, name).url for name in ("laptop", "tower", "box")}
        file = self.scratch.repo / "fleet.yaml"
        file.write_text(FLEET_YAML.format(small=SMALL, heavy=HEAVY, **urls))

    def measured(self, *words: str, status: int = 0) -> dict[tuple[str, str], dict]:
        done = self.scratch.type("benchmark", *QUICK, "--json", *words)
        assert done.returncode == status, done.stderr
        rows = json.loads(done.stdout)["data"]["measured"]
        return {(row["model"], row["node"]): row for row in rows}


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path)
    yield made
    for node in (made.laptop, made.tower, made.box):
        node.stop()


def about(value: float):
    return pytest.approx(value, rel=0.1)


def test_the_figures_are_the_speeds_that_the_nodes_have_and_the_fastest_is_first(place):
    rows = place.measured()
    small = {node: row for (model, node), row in rows.items() if model == "small"}
    assert small["laptop"]["prefill"] == about(1000)
    assert small["laptop"]["decode"] == about(50)
    assert small["tower"]["prefill"] == about(4000)
    assert small["tower"]["decode"] == about(200)
    assert small["box"]["prefill"] == about(2000)
    assert small["box"]["decode"] == about(100)
    assert {node: row["rank"] for node, row in small.items()} == {"tower": 1, "box": 2, "laptop": 3}
    assert small["laptop"]["load"] == about(0.3)
    assert small["box"]["load"] == 0  # it never lets its model go
    assert small["laptop"]["seconds"] == about(200 / 1000 + 20 / 50)
    assert small["laptop"]["ttft"] >= 0.2
    assert small["laptop"]["ttft_cached"] > 0
    assert (small["laptop"]["prompt"], small["laptop"]["output"]) == (about(200), 20)


def test_prompts_are_new_each_time_and_the_models_of_a_node_wait_for_each_other(place):
    place.measured("--repeat", "2")
    asked = [seen for seen in place.tower.asked("/api/chat") if len(str(seen.body)) > 500]
    prompts = [seen.body["messages"][0]["content"] for seen in asked]
    assert len(prompts) == 8
    assert len(set(prompts)) == 4  # each once more, to find it cached
    assert len({prompt[:20] for prompt in prompts}) == 4
    assert [seen.cached > 100 for seen in asked] == [False, True] * 4
    assert place.tower.most == 1  # of two slots
    assert {seen.body["options"]["num_ctx"] for seen in asked} == {8192, 16384}
    assert {seen.body["keep_alive"] for seen in asked} == {-1}


def test_nodes_are_measured_side_by_side(place):
    place.measured("--model", "small")
    times = [[s.at for s in node.asked("/api/chat")] for node in (place.laptop, place.tower)]
    assert min(times[0]) < max(times[1])
    assert min(times[1]) < max(times[0])


def test_a_model_that_is_there_already_is_not_loaded_and_what_it_took_once_is_remembered(place):
    first = place.measured("--node", "tower", "--model", "heavy")["heavy", "tower"]
    again = place.measured("--node", "tower", "--model", "heavy")["heavy", "tower"]
    assert (first["load"], again["load"]) == (about(0.6), 0)
    (kept,) = json.loads((place.scratch.home / "benchmarks.json").read_text())["measured"]
    assert (kept["load"], kept["at"]) == (about(0.6), again["at"])
    cold = place.measured("--node", "tower", "--model", "heavy", "--cold")["heavy", "tower"]
    assert cold["load"] == about(0.6)


def test_what_was_found_is_kept_by_address_and_upstream_name_for_its_owner_alone(place):
    place.measured("--model", "small")
    place.measured("--model", "heavy")
    file = place.scratch.home / "benchmarks.json"
    rows = json.loads(file.read_text())["measured"]
    assert {(row["url"], row["upstream"]) for row in rows} == {
        (place.laptop.url, SMALL),
        (place.tower.url, SMALL),
        (place.box.url, SMALL),
        (place.tower.url, HEAVY),
    }
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_text("{half")
    place.measured("--model", "heavy")
    assert len(json.loads(file.read_text())["measured"]) == 1


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ({"refuse": True}, "connection refused"),
        ({"die": 3}, "connection reset by peer"),
        ({"status": 500, "only": "/api/chat"}, "status 500: the stand-in was told to fail"),
        ({"short": 3}, "its reply broke off"),
    ],
)
def test_a_node_that_fails_is_a_row_with_its_reason_and_spoils_no_other(place, fault, why):
    place.laptop.set(**fault)
    rows = place.measured("--model", "small", status=1)
    assert why in rows["small", "laptop"]["why"]
    assert rows["small", "laptop"]["rank"] is None
    assert rows["small", "tower"]["rank"] == 1
    shown = place.scratch.type("benchmark", *QUICK, "--model", "small")
    assert shown.returncode == 1
    (line,) = [line for line in shown.stdout.splitlines() if why in line]
    assert line.split()[:3] == ["small", "-", "laptop"]


def test_a_node_that_hangs_is_given_up_when_the_time_of_its_model_is_over(place):
    file = place.scratch.repo / "fleet.yaml"
    file.write_text(file.read_text().replace("timeout: 20", "timeout: 1"))
    place.tower.set(hang=True, only="/api/chat")
    row = place.measured("--model", "heavy", status=1)["heavy", "tower"]
    assert row["why"] == "no whole answer within 1 s"


def test_a_model_that_is_not_on_its_node_says_how_to_get_it(place):
    del place.tower.models[HEAVY]
    row = place.measured("--model", "heavy", status=1)["heavy", "tower"]
    assert row["why"] == f"it does not have {HEAVY}; run `ollama pull {HEAVY}` there"


def test_a_prompt_that_does_not_fit_is_not_sent(place):
    row = place.measured("--model", "heavy", "--prompt-tokens", "20000", status=1)["heavy", "tower"]
    assert row["why"] == "20000 and 20 tokens do not fit into its context of 16384"
    assert place.tower.asked("/api/chat") == []


def bars(text: str, heading: str) -> dict[tuple[str, str], str]:
    """By model and node, the bar under a heading."""
    after = text.split(heading)[1].split("\n\n", maxsplit=1)[0].splitlines()[2:]
    return {(words[0], words[1]): words[2] for words in map(str.split, after)}


def test_the_plot_is_drawn_to_scale_and_without_colour_in_a_pipe(place):
    said = place.scratch("benchmark", *QUICK)
    assert "\x1b" not in said
    decode = bars(said, "Decode, tokens per second (longer is better):")
    assert len(decode) == 4
    longest = len(decode["small", "tower"])
    assert len(decode["small", "box"]) == pytest.approx(longest / 2, abs=1)
    assert len(decode["small", "laptop"]) == pytest.approx(longest / 4, abs=1)
    assert set(decode["small", "tower"]) == {"█"}
    order = [line.split()[:3] for line in said.splitlines()[1:4]]
    assert order == [["small", "1", "tower"], ["small", "2", "box"], ["small", "3", "laptop"]]


def test_where_there_are_no_blocks_the_plot_is_made_of_ascii(place):
    plain = {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    said = place.scratch("benchmark", *QUICK, "--model", "heavy", env=plain)
    assert said.isascii()
    assert set(bars(said, "Decode")["heavy", "tower"]) == {"#"}


@pytest.mark.parametrize("colour", [True, False])
def test_on_a_terminal_it_fits_the_width_and_obeys_no_color(place, colour):
    ours, theirs = pty.openpty()
    env = (
        place.scratch.env
        | {"TERM": "xterm", "COLUMNS": "100"}
        | ({} if colour else {"NO_COLOR": "1"})
    )
    words = [FLEET, "benchmark", *QUICK, "--model", "small"]
    with subprocess.Popen(
        words, cwd=place.scratch.repo, env=env, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        said = b""
        with suppress(OSError):
            while data := os.read(ours, 65536):
                said += data
        assert process.wait(LIMIT) == 0
    os.close(ours)
    text = said.decode()
    assert ("\x1b[32m█" in text) is colour
    plotted = re.sub(r"\x1b\[\d+m", "", text.split("Decode, tokens")[1]).splitlines()
    wide = [len(line) for line in plotted if "█" in line]
    assert len(wide) == 9
    assert max(wide) <= 100


def test_it_refuses_names_that_are_not_there(place):
    said = place.scratch.fails("benchmark", "--node", "towr", status=2)
    assert "There is no node 'towr'." in said
    assert "Did you mean 'tower'?" in said
    assert "There is no model 'big'" in place.scratch.fails("benchmark", "--model", "big", status=2)
    said = place.scratch.fails("benchmark", "--model", "heavy", "--node", "box", status=2)
    assert "No model heavy is served by box." in said


def test_what_costs_money_is_left_out_unless_it_is_named(place):
    file = place.scratch.repo / "fleet.yaml"
    dear = f"  dear: {{kind: openrouter, endpoint: '{place.box.url}'}}\n"
    dear += "  cloud: {kind: hosted, provider: bedrock}\n"
    text = file.read_text().replace("models:", f"{dear}models:")
    file.write_text(f"{text}  far: {{servings: {{dear: '{SMALL}', cloud: other}}}}\n")
    done = place.scratch.type("benchmark", *QUICK, "--model", "far")
    assert (done.returncode, done.stdout) == (0, "Nothing was measured.\n")
    assert "dear costs money, so it is measured only when it is named: --node dear." in done.stderr
    assert "cloud is a hosted API, whose address only the gateway knows" in done.stderr
    assert place.box.asked("/v1/chat/completions") == []
    assert place.measured("--node", "dear")["far", "dear"]["decode"] == about(100)
