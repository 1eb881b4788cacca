"""GitHub's pull requests and Linear's tickets, on `emulate`: a stand-in by others that keeps state."""

from __future__ import annotations

import json
import subprocess
from base64 import b64encode
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from fleet.adapters.forges.forges import HostForges
from fleet.adapters.forges.github import GitHub, headers
from fleet.adapters.forges.rest import Rest
from fleet.domain.errors import Refused
from fleet.domain.forges.pull import PullDraft, PullState
from tests.free_ports import free_ports
from tests.wait import until

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.real
TOKEN = "test_token_admin"
SEED = """
tokens:
  test_token_admin: {login: octocat, scopes: [repo, user]}
github:
  users: [{login: octocat, name: The Octocat}]
  repos: [{owner: octocat, name: hello-world, auto_init: true}]
"""


def output(*script: str) -> str:
    ran = subprocess.run([*script], cwd=ROOT, capture_output=True, text=True, check=False)
    if ran.returncode:
        pytest.skip(f"{script[0]}: {ran.stderr[-200:]}")
    return ran.stdout.strip()


@pytest.fixture(scope="module")
def emulated(tmp_path_factory):
    """The ports of GitHub and Linear. It needs Node 22.15, which Playwright's package has."""
    folder = output("scripts/forges")
    output("scripts/browser")
    node = ROOT / ".cache/browser/playwright/driver/node"
    place = tmp_path_factory.mktemp("emulate")
    (place / "seed.yaml").write_text(SEED)
    first = free_ports()
    words = ["start", "--service", "github,linear", "--seed", "seed.yaml", "--port", str(first)]
    program = f"{folder}/node_modules/emulate/dist/index.js"
    with (place / "log").open("w") as log:
        process = subprocess.Popen([node, program, *words], cwd=place, stdout=log, stderr=log)
    try:
        until(lambda: "Ready" in (place / "log").read_text(), (place / "log").read_text)
        yield first, first + 1
    finally:
        process.terminate()
        process.wait(30)


def ask(port: int, method: str, path: str, body=None):
    data = None if body is None else json.dumps(body).encode()
    sent = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    url = f"http://127.0.0.1:{port}/repos/octocat/hello-world{path}"
    with urlopen(Request(url, data, sent, method=method), timeout=30) as answer:
        return json.loads(answer.read())


def work_on(port: int, branch: str) -> str:
    """A branch with a commit that main does not have: the stand-in takes no pushes."""
    tip = ask(port, "GET", "/git/ref/heads/main")["object"]["sha"]
    ask(port, "POST", "/git/refs", {"ref": f"refs/heads/{branch}", "sha": tip})
    text = b64encode(branch.encode()).decode()
    file = {"message": "Work", "content": text, "branch": branch}
    return ask(port, "PUT", f"/contents/{branch.replace('/', '-')}.txt", file)["commit"]["sha"]


@pytest.fixture
def github(emulated) -> GitHub:
    rest = Rest(f"http://127.0.0.1:{emulated[0]}", lambda: headers(TOKEN))
    return GitHub(rest, "octocat/hello-world")


def test_a_pull_request_is_opened_found_and_merged(emulated, github):
    """It has no statuses of commits; `test_forge_descriptions` has those."""
    head = work_on(emulated[0], "fleet/t-1")
    draft = PullDraft("Prices", "All of them.", "fleet/t-1", "main")
    assert github.find("fleet/t-1", "main") is None
    opened = github.open(draft)
    assert (opened.state, opened.head, opened.branch) == (PullState.OPEN, head, "fleet/t-1")
    assert github.find("fleet/t-1", "main").number == opened.number
    github.update(opened.number, draft._replace(title="Prices!"))
    assert github.show(opened.number).title == "Prices!"
    for _ in range(2):
        github.comment(opened.number, "Look.", "t-1 look")
    assert len(ask(emulated[0], "GET", f"/issues/{opened.number}/comments")) == 1
    with pytest.raises(Refused):  # here 422, at GitHub 409
        github.merge(opened.number, "0" * 40, "merge")
    github.merge(opened.number, head, "merge")
    seen = github.show(opened.number)
    assert seen.state is PullState.MERGED
    assert seen.merged_as == ask(emulated[0], "GET", "/git/ref/heads/main")["object"]["sha"]


def test_a_pull_request_is_closed_and_its_branch_can_have_another(emulated, github):
    work_on(emulated[0], "fleet/t-2")
    draft = PullDraft("Prices", "", "fleet/t-2", "main")
    first = github.open(draft).number
    github.close(first)
    assert github.show(first).state is PullState.CLOSED
    assert github.open(draft).number != first
    assert github.find("fleet/t-2", "main").state is PullState.OPEN


def test_an_issue_of_github_is_read(emulated, github):
    number = ask(emulated[0], "POST", "/issues", {"title": "Slow", "body": "Very."})["number"]
    ticket = github.ticket(number)
    assert (ticket.title, ticket.text, ticket.author) == ("Slow", "Very.", "octocat")


def test_a_ticket_of_linear_is_read_and_commented_on_once(emulated):
    """Its filter of issues knows a few fields of Linear's alone, so the search is not tried here."""
    host = f"localhost:{emulated[1]}"
    env = {"FLEET_LINEAR_TOKEN": "lin_test_admin"}
    tickets = HostForges(env, lambda: [f"{host}=linear"]).tickets
    ticket = tickets.read(f"http://{host}/issue/ENG-1")
    assert (ticket.name, ticket.author, ticket.labels) == ("ENG-1", "Admin User", ("Bug",))
    for _ in range(2):
        tickets.comment(f"http://{host}/issue/ENG-1", "t-1 is done.", "t-1 done")
    again = HostForges(env, lambda: [f"{host}=linear"]).tickets
    again.comment(f"http://{host}/issue/ENG-1", "t-1 is done.", "t-1 done")
    asks = {"query": '{ issue(id: "ENG-1") { comments { nodes { body } } } }'}
    sent = {"Authorization": "lin_test_admin", "Content-Type": "application/json"}
    query = Request(f"http://{host}/graphql", json.dumps(asks).encode(), sent)
    with urlopen(query, timeout=30) as answer:
        notes = json.loads(answer.read())["data"]["issue"]["comments"]["nodes"]
    assert sum("t-1 is done." in note["body"] for note in notes) == 1
