"""The dashboard's files, as a browser asks for them."""

from __future__ import annotations

import gzip
import http.client
import json
import posixpath
import re

import pytest

from tests.integration.team import Team
from tests.wait import LIMIT

PAGE = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-R'; connect-src 'self'; "
    "img-src 'self' data:; font-src 'self'; manifest-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    made = Team(tmp_path_factory.mktemp("dashboard"))
    yield made
    made.served.end()


def get(team, path, **headers):
    """The status, the headers and the bytes."""
    connection = http.client.HTTPConnection("127.0.0.1", team.served.port, timeout=LIMIT)
    connection.request("GET", path, headers={n.replace("_", "-"): v for n, v in headers.items()})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, answer.headers, body


@pytest.mark.parametrize(
    "path", ["/", "/tasks", "/t/t-31", "/t/t-31/diff", "/land", "/machines", "/costs", "/team"]
)
def test_a_browser_gets_the_shell_without_a_token_at_every_screen(team, path):
    status, headers, body = get(team, path, accept=PAGE)
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert b"<title>Fleet" in body
    assert b"{hash}" not in body
    assert b"{nonce}" not in body
    assert headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("path", ["/nowhere", "/inbox/", "/ui/0123456789abcdef/app.js"])
def test_a_browser_where_nothing_is_gets_the_page_that_says_so_and_a_program_json(team, path):
    status, headers, body = get(team, path, accept=PAGE)
    assert (status, headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert b"<title>Fleet" in body
    status, headers, body = get(team, path, accept="*/*")
    assert (status, headers["content-type"]) == (404, "application/problem+json")
    assert json.loads(body)["status"] == 404


@pytest.mark.parametrize("path", ["/", "/docs", "/t/t-1"])
def test_a_page_comes_under_the_strict_policy_with_a_nonce_of_its_own(team, path):
    nonces = set()
    for _ in range(2):
        _, headers, body = get(team, path, accept=PAGE)
        (nonce,) = re.findall(r"'nonce-([\w-]{20,})'", headers["content-security-policy"])
        assert headers["content-security-policy"] == POLICY.replace("-R'", f"-{nonce}'")
        assert nonce.encode() in body
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        nonces.add(nonce)
    assert len(nonces) == 2


def test_programs_still_get_json_at_the_paths_that_screens_have_too(team):
    task = team.ok("ann", "POST", "/v1/task/add", {"title": "x", "project": str(team.repo)})
    path = f"/tasks/{task['data']['id']}"
    token = f"Bearer {team.tokens['ann']}"
    for accept in ("*/*", "application/json", PAGE):  # whoever sends a token is a program
        status, headers, body = get(team, path, accept=accept, authorization=token)
        assert (status, headers["content-type"]) == (200, "application/json")
        assert json.loads(body)["subject"] == "x"
    assert get(team, path, accept="*/*")[0] == 401
    assert get(team, "/land", accept="application/json")[0] == 404
    assert get(team, "/v1/task/list", accept=PAGE)[0] == 401


HINTED = r'<link rel="modulepreload" href="/ui/[0-9a-f]{16}/([\w./]+)">'


@pytest.mark.parametrize(
    ("path", "some"),
    [
        ("/", {"screens/inbox.js"}),
        ("/tasks", {"screens/tasks.js", "parts/virtual.js"}),
        ("/t/t-1/diff", {"screens/task.js", "screens/diff.js", "vendor/virtual.js"}),
        ("/t/t-1/nothing", {"screens/task.js"}),
    ],
)
def test_the_shell_names_every_module_that_its_screen_begins_with(team, path, some):
    shell = get(team, path, accept=PAGE)[2].decode()
    hinted = re.findall(HINTED, shell)
    assert {"app.js", "vendor/preact.js", "store.js", *some} <= {*hinted}
    assert len(hinted) == len({*hinted}) <= 24
    here = re.search(r"/ui/[0-9a-f]{16}", shell)[0]
    for name in hinted:
        text = get(team, f"{here}/{name}")[2].decode()
        for other in re.findall(r'^import [^;]*"(\.[^"]+)";', text, re.MULTILINE):
            assert posixpath.normpath(posixpath.join(posixpath.dirname(name), other)) in hinted


def test_the_shell_is_painted_before_its_style_sheet_has_come(team):
    shell = get(team, "/", accept=PAGE)[2].decode()
    assert shell.index("</style>") < shell.index('class="shell"') < shell.index('rel="stylesheet"')
    assert len(re.findall('rel="stylesheet"', shell)) == 1
    sheet = re.search(r'href="(/ui/[0-9a-f]{16}/page\.css)"', shell)[1]
    assert b".empty" in get(team, sheet)[2]


def test_files_are_kept_for_good_below_a_hash_and_are_there_in_gzip(team):
    shell = get(team, "/", accept=PAGE)[2].decode()
    path = re.search(r'href="(/ui/[0-9a-f]{16}/icon\.svg)"', shell)[1]
    status, headers, plain = get(team, path)
    assert (status, headers["content-type"]) == (200, "image/svg+xml")
    assert headers["cache-control"] == "public, max-age=31536000, immutable"
    assert "content-encoding" not in headers
    _, headers, packed = get(team, path, accept_encoding="br, gzip")
    assert headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed) == plain
    assert "content-encoding" not in get(team, path, accept_encoding="gzip;q=0")[1]


@pytest.mark.parametrize(
    "path",
    [
        "/ui/", "/ui/x", "/ui/0123456789abcdef/icon.svg", "{}/nothing.js", "{}/../../__init__.py",
        "{}/..%2f..%2f__init__.py", "{}/", "{}/%00",
    ],
)  # fmt: skip
def test_nothing_else_is_below_ui(team, path):
    shell = get(team, "/", accept=PAGE)[2].decode()
    here = re.search(r"/ui/[0-9a-f]{16}", shell)[0]
    assert get(team, path.format(here), accept=PAGE)[0] == 404


def test_large_json_is_compressed_for_whoever_asks_and_small_is_not(team):
    token = f"Bearer {team.tokens['ann']}"
    for number in range(12):
        asked = {"title": f"task {number} " + "x" * 100, "project": str(team.repo)}
        team.ok("ann", "POST", "/v1/task/add", asked)
    list_path = "/v1/task/list"
    _, headers, plain = get(team, list_path, authorization=token)
    assert "content-encoding" not in headers
    assert "accept-encoding" in headers["vary"]
    _, headers, packed = get(team, list_path, authorization=token, accept_encoding="gzip")
    assert headers["content-encoding"] == "gzip"
    assert len(packed) < len(plain) / 2
    titles = [row["title"] for row in json.loads(gzip.decompress(packed))["data"]]
    assert titles == [row["title"] for row in json.loads(plain)["data"]]
    _, headers, _ = get(team, "/health", accept_encoding="gzip")
    assert "content-encoding" not in headers


def test_a_stream_is_never_compressed(team):
    connection = http.client.HTTPConnection("127.0.0.1", team.served.port, timeout=LIMIT)
    headers = {"Authorization": f"Bearer {team.tokens['ann']}", "Accept-Encoding": "gzip"}
    connection.request("GET", "/events", headers=headers)
    answer = connection.getresponse()
    assert "content-encoding" not in answer.headers
    assert answer.readline().strip()
    connection.close()
