"""`fleet gateway`: both processes, started, looked at and ended; LiteLLM is a stand-in."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
from urllib.parse import quote

import pytest

from tests.e2e.machines import FLEET, Machines, alive, typed
from tests.wait import LIMIT, until


@pytest.fixture
def machines(tmp_path):
    made = Machines(tmp_path)
    yield made
    made.close()


def test_start_waits_until_both_answer_and_a_request_goes_through(machines):
    done = machines.scratch.type("gateway", "start")
    assert done.returncode == 0, done.stderr
    assert f"Starting the relay on port {machines.port + 1}" in done.stderr
    assert f"Starting LiteLLM 1.106.2 on port {machines.port}" in done.stderr
    held = machines.services()
    assert [held[name]["answers"] for name in ("gateway", "relay")] == [True, True]
    assert machines.ask()["usage"]["prompt_tokens"] > 0
    assert len(machines.laptop.asked("/api/chat")) == 1


def test_what_start_makes_is_for_its_owner_alone(machines):
    machines.scratch("gateway", "start")
    home = machines.scratch.home
    for path in (home, home / "gateway.key", home / "logs" / f"gateway-{machines.port}.log"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_a_second_start_changes_nothing(machines):
    machines.scratch("gateway", "start")
    before = machines.services()
    again = machines.scratch.type("gateway", "start")
    assert again.stderr == ""
    assert machines.services() == before


def test_a_new_model_is_told_to_both(machines):
    machines.scratch("gateway", "start")
    before = machines.services()
    machines.write(FLEET.replace("claude-haiku-local", "tiny"))
    machines.scratch("gateway", "start")
    held = machines.services()
    assert held["gateway"]["pid"] != before["gateway"]["pid"]
    assert held["relay"]["pid"] == before["relay"]["pid"]
    assert machines.ask("tiny")["choices"]


def test_a_fleet_that_has_changed_meanwhile_is_noticed_and_start_tells_it(machines):
    machines.scratch("gateway", "start")
    assert machines.scratch.document("gateway", "status")["data"]["stale"] is False
    machines.write(FLEET.replace("context: 32768", "context: 32768\n    max_parallel: 2"))
    done = machines.scratch.type("gateway", "status")
    assert "run with another fleet.yaml. Reload them: fleet gateway start" in done.stderr
    machines.scratch("gateway", "start")
    assert machines.scratch.document("gateway", "status")["data"]["stale"] is False


@pytest.fixture
def other(machines):
    """Another project of the same home, with the same port; its fleet.yaml is a copy."""
    path = machines.root / "other"
    path.mkdir()
    shutil.copy(machines.file, path / "fleet.yaml")
    yield path
    machines.scratch.type("gateway", "stop", cwd=path)


def test_two_projects_of_a_home_share_one_gateway_and_one_relay(machines, other):
    machines.scratch("gateway", "start")
    before = machines.services()
    text = (other / "fleet.yaml").read_text()
    text = text.replace("small-coder", "tiny-coder").replace("claude-haiku-local", "tiny")
    text = text.replace("laptop:", "notebook:").replace("node: laptop", "node: notebook")
    (other / "fleet.yaml").write_text(text.replace("planner:", "scout:"))
    machines.scratch("gateway", "start", cwd=other)
    after = machines.services()
    assert after["relay"]["pid"] == before["relay"]["pid"]
    assert len(list((machines.scratch.home / "gateway").iterdir())) == 1
    for model in ("claude-haiku-local", "tiny", "fleet-planner", "fleet-scout"):
        assert machines.ask(model)["choices"], model
    assert machines.scratch.document("gateway", "status")["data"]["stale"] is False

    config = json.loads(
        (machines.scratch.home / "gateway" / str(machines.port) / "relay.config.json").read_text()
    )
    assert sorted(config["nodes"]) == ["laptop", "mini"], "the notebook is the laptop"

    def traced() -> set[tuple[str, str]]:
        read = machines.scratch.document("trace")["data"]
        return {(each["model"], each["project"]) for each in read}

    own, others = ("small-coder", str(machines.file.parent)), ("tiny-coder", str(other))
    until(lambda: traced() == {own, others}, lambda: f"the requests of both: {traced()}")


def test_a_request_that_names_its_project_is_traced_as_its_own(machines, other):
    machines.scratch("gateway", "start")
    machines.scratch("gateway", "start", cwd=other)
    machines.ask()
    machines.ask(headers={"x-fleet-project": quote(str(other))})

    def projects() -> list[str]:
        return [each["project"] for each in machines.scratch.document("trace")["data"]]

    until(lambda: len(projects()) == 2, "that both are traced")
    assert projects() == ["", str(other)], "both have the model"


def test_stop_in_one_project_leaves_the_gateway_to_the_other(machines, other):
    machines.scratch("gateway", "start")
    machines.scratch("gateway", "start", cwd=other)
    kept = machines.scratch("gateway", "stop")
    assert kept == f"The gateway keeps running: it also serves {other}.\n"
    assert machines.ask()["choices"]
    assert f"it also serves {other}" not in machines.scratch("gateway", "stop", cwd=other)
    assert not any(each["running"] for each in machines.services().values())


def test_a_project_that_is_gone_keeps_no_gateway_running(machines, other):
    machines.scratch("gateway", "start", cwd=other)
    machines.scratch("gateway", "start")
    shutil.rmtree(other)
    assert machines.scratch.data("gateway", "stop") == {"stopped": ["gateway", "relay"]}
    other.mkdir()


def test_projects_that_mean_different_models_by_a_name_do_not_share(machines, other):
    machines.scratch("gateway", "start")
    file = other / "fleet.yaml"
    file.write_text(file.read_text().replace("model: small-coder", "model: heavy-coder"))
    done = machines.scratch.type("gateway", "start", cwd=other)
    assert done.returncode == 1
    assert f"{machines.file.parent} and {other} mean different things by" in done.stderr
    assert "the name 'fleet-planner'" in done.stderr
    assert machines.ask("fleet-planner")["choices"], "the first is served as before"
    [fix] = [line for line in done.stderr.splitlines() if "config set --project" in line]
    machines.scratch(*typed(fix.rpartition(": ")[2]), cwd=other)
    machines.scratch("gateway", "start", cwd=other)
    machines.scratch("gateway", "stop", cwd=other)
    assert machines.services()["gateway"]["answers"]


@pytest.mark.parametrize("beside", [0, 1], ids=["the gateway's", "the relay's"])
def test_a_taken_port_is_refused_and_its_fix_works(machines, beside):
    with socket.create_server(("127.0.0.1", machines.port + beside)):
        said = machines.scratch.fails("gateway", "start", status=1)
        assert f"Port {machines.port + beside}" in said
        assert "is in use by another program" in said
        assert not any(each["running"] for each in machines.services().values())
        fix = said[said.index("fleet config set") :].strip()
        machines.scratch(*typed(fix))
        machines.port = int(fix.rpartition("=")[2])
        machines.scratch("gateway", "start")
    assert machines.ask()["choices"]


def test_stop_ends_both_and_a_second_stop_says_that_none_runs(machines):
    machines.scratch("gateway", "start")
    pids = [each["pid"] for each in machines.services().values()]
    assert machines.scratch.data("gateway", "stop") == {"stopped": ["gateway", "relay"]}
    assert not any(map(alive, pids))
    assert machines.scratch("gateway", "stop") == "Neither LiteLLM nor the relay is running.\n"


@pytest.mark.parametrize("name", ["gateway", "relay"])
def test_one_that_was_killed_is_seen_and_started_again(machines, name):
    machines.scratch("gateway", "start")
    before = machines.services()
    os.kill(before[name]["pid"], signal.SIGKILL)
    until(lambda: not machines.services()[name]["running"], f"the {name} to be gone")
    machines.scratch("gateway", "start")
    held = machines.services()
    other = "relay" if name == "gateway" else "gateway"
    assert held[name]["pid"] != before[name]["pid"]
    assert held[other]["pid"] == before[other]["pid"]
    assert machines.ask()["choices"]


def test_status_says_what_runs_for_people_and_programs(machines):
    assert [row.split()[1] for row in machines.scratch("gateway", "status").splitlines()[1:]] == [
        "stopped",
        "stopped",
    ]
    machines.scratch("gateway", "start")
    data = machines.scratch.data("gateway", "status")
    assert data["url"] == f"http://127.0.0.1:{machines.port}"
    assert data["version"] == "1.106.2"
    assert [(each["running"], each["port"]) for each in data["services"]] == [
        (True, machines.port),
        (True, machines.port + 1),
    ]


def test_logs_shows_what_it_printed(machines):
    assert "The gateway has not been started yet." in machines.scratch.fails(
        "gateway", "logs", status=2
    )
    machines.scratch("gateway", "start")
    machines.ask()
    said = machines.scratch("gateway", "logs").splitlines()
    assert any("POST /v1/chat/completions" in json.loads(line)["message"] for line in said)


@pytest.mark.parametrize(
    ("version", "said"),
    [("1.82.7", "a compromised release"), ("1.103.9", "too old")],
)
def test_a_release_that_must_not_run_is_refused(machines, version, said):
    machines.litellm(version)
    for words in (("gateway", "install"), ("gateway", "start"), ("up",)):
        assert said in machines.scratch.fails(*words, status=1).replace("\n", " ")
    assert not any(each["running"] for each in machines.services().values())


def test_an_own_python_without_litellm_is_refused_with_the_way_out(machines):
    (machines.root / "own" / "packages" / "litellm-1.106.2.dist-info" / "METADATA").unlink()
    said = machines.scratch.fails("gateway", "start", status=1)
    assert "which has no LiteLLM" in said
    assert "unset FLEET_GATEWAY_PYTHON" in said


def test_without_litellm_start_says_how_to_install_it(machines):
    del machines.scratch.env["FLEET_GATEWAY_PYTHON"]
    assert "fleet gateway install" in machines.scratch.fails("gateway", "start", status=1)


def test_one_that_does_not_come_up_is_told_with_its_last_words(machines):
    package = machines.root / "own" / "packages" / "litellm" / "__init__.py"
    package.write_text("def run_server():\n    raise SystemExit('no such table')\n")
    said = machines.scratch.fails("gateway", "start", status=3)
    assert "The gateway did not start: no such table" in said
    assert not any(each["running"] for each in machines.services().values())
    assert "fleet gateway logs" in said


def test_whoever_has_no_patience_is_left_with_nothing_half_started(machines):
    package = machines.root / "own" / "packages" / "litellm" / "__init__.py"
    package.write_text("import time\n\ndef run_server():\n    time.sleep(60)\n")
    starting = machines.scratch.start("gateway", "start")
    until(lambda: machines.services()["gateway"]["running"], "LiteLLM to be started")
    pids = [each["pid"] for each in machines.services().values()]
    starting.send_signal(signal.SIGINT)
    starting.communicate(LIMIT)
    assert starting.returncode == 130
    assert not any(each["running"] for each in machines.services().values())
    assert not any(alive(pid) for pid in pids)


def test_what_the_gateway_was_not_told_before_an_interruption_it_is_told_next(machines):
    """Here by a relay that cannot start, so that the command ends between the two."""
    machines.scratch("gateway", "start")
    before = machines.services()
    os.kill(before["relay"]["pid"], signal.SIGKILL)
    until(lambda: not machines.services()["relay"]["running"], "the relay to be gone")
    machines.write(FLEET.replace("claude-haiku-local", "tiny"))
    (machines.root / "aiohttp.py").write_text("raise SystemExit('no aiohttp')\n")
    said = machines.scratch.fails(
        "gateway", "start", status=3, env={"PYTHONPATH": str(machines.root)}
    )
    assert "The relay did not start" in said
    assert "no aiohttp" in said
    machines.scratch("gateway", "start")
    assert machines.services()["gateway"]["pid"] != before["gateway"]["pid"]
    assert machines.ask("tiny")["choices"]


def test_beyond_this_machine_a_weak_key_is_refused(machines):
    machines.scratch("config", "set", "project.gateway.host=0.0.0.0")
    machines.scratch.env["LITELLM_MASTER_KEY"] = "sk-1234"
    said = machines.scratch.fails("gateway", "start", status=1)
    assert "its key in $LITELLM_MASTER_KEY is weak" in said
    assert "unset LITELLM_MASTER_KEY" in said


def test_it_is_found_where_it_was_told_to_listen(machines):
    machines.scratch("config", "set", "project.gateway.host=127.0.0.2")
    machines.scratch("gateway", "start")
    assert machines.scratch.data("gateway", "status")["url"] == f"http://127.0.0.2:{machines.port}"
    assert machines.services()["gateway"]["answers"] is True
