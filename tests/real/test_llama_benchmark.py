"""`fleet benchmark` of a real llama.cpp server, as somebody types it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.real.llama_server import NAME, LlamaServer

pytestmark = pytest.mark.real

FLEET = Path(sys.executable).with_name("fleet")
WORDS = ("benchmark", "--prompt-tokens", "300", "--output-tokens", "48", "--repeat", "2", "--json")


@pytest.fixture(scope="module")
def server():
    with LlamaServer(slots=1, context=2048) as node:
        yield node


def measured(server, root: Path) -> dict:
    node = f"{{endpoint: '{server.url}'}}"  # what it is nobody says: that is found out
    models = f"{{real: {{node: box, upstream: {NAME}, context: 2048}}}}"
    (root / "fleet.yaml").write_text(f"nodes: {{box: {node}}}\nmodels: {models}\n")
    env = {"PATH": os.defpath, "HOME": str(root), "FLEET_HOME": str(root / "home")}
    done = subprocess.run(
        [FLEET, *WORDS], cwd=root, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = json.loads(done.stdout)["data"]["measured"]
    return row


def test_its_speeds_agree_with_its_own_clock_and_a_cached_prompt_is_quicker(server, tmp_path):
    row = measured(server, tmp_path)
    assert (row["node"], row["upstream"], row["rank"], row["why"]) == ("box", NAME, 1, None)
    assert row["output"] == 48  # it was told not to stop early
    assert row["prompt"] == pytest.approx(300, rel=0.25)
    reading = row["prompt"] / row["prefill"]
    assert row["ttft"] == pytest.approx(reading, rel=0.5)
    assert row["ttft_cached"] < row["ttft"] / 2
    kept = json.loads((tmp_path / "home" / "benchmarks.json").read_text())["measured"]
    assert [each["url"] for each in kept] == [server.url]
