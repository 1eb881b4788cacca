"""`fleet update` against an index on loopback: newer, the same, unreachable."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from fleet import __version__
from tests.e2e.scratch import Scratch


class Index:
    """Answers as a package index does, in JSON or as a page of links."""

    def __init__(self, *versions: str, page: bool = False) -> None:
        self.asked = 0
        files = [f"agent_fleet-{v}-py3-none-any.whl" for v in versions]
        said = {"name": "agent-fleet", "files": [{"filename": f} for f in files]}
        links = "".join(f'<a href="{f}">{f}</a>\n' for f in files)
        self.body = (links if page else json.dumps(said)).encode()
        index = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                index.asked += 1
                found = self.path == "/simple/agent-fleet/"
                self.send_response(200 if found else 404)
                self.end_headers()
                self.wfile.write(index.body if found else b"")

            def log_message(self, *_) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self.server.server_port}/simple"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path)


@pytest.fixture
def index():
    made = []

    def serve(*versions: str, **given) -> Index:
        made.append(Index(*versions, **given))
        return made[-1]

    yield serve
    for one in made:
        one.close()


@pytest.mark.parametrize("page", [False, True])
def test_a_newer_release_is_named_with_the_way_to_get_it(scratch, index, page):
    there = index("0.0.1", "99.1.0", "99.0.5", "100.0.0rc1", page=page)
    said = scratch("update", "--check", env={"FLEET_INDEX": there.url})
    assert said.startswith(
        f"fleet 99.1.0 is out; {__version__} is installed (by source).\nGet it: "
    )


def test_the_same_release_is_the_newest(scratch, index):
    there = index(__version__)
    said = scratch("update", "--check", env={"FLEET_INDEX": there.url})
    assert said == f"fleet {__version__} is the newest release.\n"


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/simple", "http://127.0.0.1:1"])
def test_an_index_that_cannot_be_asked_is_never_up_to_date(scratch, url):
    said = scratch.fails("update", "--check", env={"FLEET_INDEX": url}, status=3)
    assert "could not be reached" in said
    assert "newest release" not in said


def test_an_index_without_the_package_is_not_an_answer(scratch, index):
    there = index("1.0")
    elsewhere = there.url.replace("/simple", "/other")
    assert "could not be reached" in scratch.fails(
        "update", env={"FLEET_INDEX": elsewhere}, status=3
    )


def test_an_answer_is_good_for_a_day_unless_it_is_forced(scratch, index):
    there = index("99.1.0")
    env = {"FLEET_INDEX": there.url}
    scratch("update", "--check", env=env)
    scratch("update", "--check", env=env)
    assert there.asked == 1
    scratch("update", "--check", "--force", env=env)
    assert there.asked == 2


def test_a_checkout_is_told_what_to_do_and_nothing_is_installed(scratch, index):
    there = index("99.1.0")
    said = scratch("update", env={"FLEET_INDEX": there.url})
    assert "git pull" in said
    assert "Installed it" not in said
