from __future__ import annotations

import json
import re
import urllib.request
from typing import TYPE_CHECKING

import pytest

from fleet.cli.server.ui import HALVES, qr_text
from tests.e2e.scratch import Scratch
from tests.free_ports import free_ports

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def scratch(tmp_path):
    made = Scratch(tmp_path / "x")
    yield made
    made.type("serve", "--stop")


def opened(link: str) -> dict:
    url, _, code = link.partition("/#c=")
    asked = urllib.request.Request(
        f"{url}/v1/session/open",
        json.dumps({"code": code}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(asked, timeout=20) as answer:
        return json.load(answer)["data"]


def browser_of(scratch: Scratch) -> Path:
    """A program that notes what it is to open."""
    seen, program = scratch.root / "seen", scratch.root / "browser"
    program.write_text(f'#!/bin/sh\nprintf %s "$1" >{seen}\n')
    program.chmod(0o755)
    scratch.env["BROWSER"] = str(program)
    return seen


def test_it_starts_the_server_and_opens_the_page_signed_in(scratch):
    seen, port = browser_of(scratch), free_ports()
    said = scratch("ui", "--no-run", "--port", str(port))
    assert f"Opened http://127.0.0.1:{port} as " in said
    session = opened(seen.read_text())
    assert session["role"] == "coordinator"
    again = scratch.data("ui", "--no-open")
    assert (again["started"], again["opened"]) == (False, False)
    assert again["url"] == f"http://127.0.0.1:{port}"
    assert opened(again["link"])["name"] == session["name"]


def test_where_there_is_no_screen_it_prints_the_address(scratch):
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        scratch.env.pop(name, None)
    said = scratch("ui", "--no-run", "--port", str(free_ports()))
    assert re.search(r"Open this within a minute: http://127\.0\.0\.1:\d+/#c=\S+", said)


def test_a_port_that_another_program_has_is_left_to_it(scratch, tmp_path):
    other = Scratch(tmp_path / "other")
    try:
        urls = {each.data("ui", "--no-run", "--no-open")["url"] for each in (scratch, other)}
        assert len(urls) == 2
    finally:
        other.type("serve", "--stop")


def test_a_phone_is_signed_in_by_a_code_for_one(scratch):
    scratch("ui", "--no-run", "--no-open", "--port", str(port := free_ports()))
    refused = scratch.type("ui", "--phone")
    assert refused.returncode == 3
    assert "no phone can reach it" in refused.stderr
    data = scratch.data("ui", "--phone", "--url", "https://fleet.example.com")
    _, _, secret = data["link"].partition("/#c=")
    assert data["link"].startswith("https://fleet.example.com/#c=enrol-")
    here = f"http://127.0.0.1:{port}/#c={secret}"
    assert opened(here)["role"] == "team-lead"
    with pytest.raises(urllib.error.HTTPError) as caught:
        opened(here)
    assert json.load(caught.value)["code"] == "used_up"


def test_the_code_in_the_terminal_has_every_module():
    import segno

    words = "https://fleet.example.com/#c=enrol-xyz"
    halves = {sign: pair for pair, sign in HALVES.items()}
    rows = []
    for line in qr_text(words).splitlines():
        upper, lower = zip(*(halves[sign] for sign in line), strict=True)
        rows += [[1 - each for each in upper], [1 - each for each in lower]]
    expected = [
        list(row) for row in segno.make(words, error="l", micro=False).matrix_iter(border=2)
    ]
    assert rows[: len(expected)] == expected
