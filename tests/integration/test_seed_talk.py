"""Enrolment, users, chats and worktrees by the paths of claude-fleet's clients, over real HTTP."""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.forges.fake_forge import TOKEN, FakeForge
from tests.integration.team import Team
from tests.integration.test_seed_paths import uid
from tests.integration.test_server import FLEET
from tests.wait import until

ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
MESSAGE = {"id", "chatId", "fromHandle", "fromUid", "text", "timestamp", "status", "metadata"}
CHAT = {"id", "participants", "unread", "lastMessage", "updatedAt"}
USER = {"uid", "handle", "teamName", "agentType", "createdAt", "lastSeen"}


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    root = tmp_path_factory.mktemp("talk")
    forge = FakeForge("github", root / "forge")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLEET_FORGE_HOSTS", f"{forge.host}=github")
        patch.setenv("FLEET_FORGE_TOKEN", TOKEN)
        patch.setenv("FLEET_CODER", "scripted")
        made = Team(root)
    made.join("mel", "merger", "red")
    made.forge = forge
    yield made
    made.served.end()
    forge.close()


def enrolment(scratch, **given):
    return scratch.ok("root", "POST", "/v1/enrolment/create", given)["data"]


def auth(team, **body):
    return team.served.ask("POST", "/auth", body)


def test_a_secret_is_exchanged_for_a_token_that_works(team):
    made = enrolment(team, role="worker", team="red")
    asked = {"handle": "wim", "teamName": "red", "agentType": "worker", "secret": made["secret"]}
    status, said = auth(team, **asked)
    token = said.pop("token")
    assert (status, said) == (
        200,
        {"uid": uid("red", "wim"), "handle": "wim", "teamName": "red", "agentType": "worker"},
    )
    user = team.served.ask("GET", f"/users/{said['uid']}", token=token)[1]
    assert user.keys() == USER
    assert (user["handle"], user["teamName"]) == ("wim", "red")
    again = auth(team, **asked)  # as a program does that starts again
    assert again[0] == 200
    team.ok("root", "POST", "/v1/enrolment/revoke", {"enrolment": made["id"]})
    assert auth(team, **asked)[1]["code"] == "bad_secret"
    for each in (token, again[1]["token"]):
        until(lambda t=each: team.served.ask("GET", "/swarms", token=t)[0] == 401)


def test_without_a_secret_nobody_gets_in(team):
    status, said = auth(team, handle="eve", teamName="red", agentType="team-lead")
    assert (status, said["code"]) == (401, "no_secret")
    assert "fleet token enrol" in said["fix"]
    status, said = auth(team, handle="eve", teamName="red", secret="enrol-guess")
    assert (status, said["code"]) == (401, "bad_secret")


def test_nobody_gets_more_than_the_secret_gives(team):
    secret = enrolment(team, role="worker", team="red")["secret"]
    for role in ("team-lead", "coordinator", "merger"):
        status, said = auth(team, handle="up", agentType=role, secret=secret)
        assert (status, said["code"]) == (403, "too_much"), role
    assert auth(team, handle="up", agentType="monitor", secret=secret)[1]["agentType"] == "monitor"
    assert auth(team, handle="up", agentType="king", secret=secret)[0] == 422
    assert auth(team, handle="up", teamName="blue", secret=secret)[1]["code"] == "bad_secret"
    for name in ("a b", "", "x" * 51, "t-3", "../up"):
        assert auth(team, handle=name, secret=secret)[0] == 422
    lead = enrolment(team, role="team-lead", team="red")["secret"]
    assert auth(team, handle="lea", secret=lead)[1]["agentType"] == "worker"
    assert auth(team, handle="lea", agentType="team-lead", secret=lead)[0] == 200
    watcher = enrolment(team, role="monitor", team="red")["secret"]
    assert auth(team, handle="moe", secret=watcher)[1]["agentType"] == "monitor"


def test_nobody_takes_the_name_of_another(team):
    secret = enrolment(team, role="worker", team="red")["secret"]
    for name in ("ann", "supervisor", "auth", "server"):
        status, said = auth(team, handle=name, secret=secret)
        assert (status, said["code"]) == (409, "taken")
    for_one = enrolment(team, role="worker", team="red", name="zed")["secret"]
    assert auth(team, handle="yan", secret=for_one)[1]["code"] == "bad_secret"
    assert auth(team, handle="zed", secret=for_one)[0] == 200
    assert auth(team, handle="zed", secret=secret)[1]["code"] == "taken"
    team.ok("root", "POST", "/v1/token/revoke", {"token": "zed"})
    assert auth(team, handle="zed", secret=for_one)[1]["code"] == "bad_secret"
    anew = enrolment(team, role="worker", team="red", name="zed")["secret"]
    assert auth(team, handle="zed", secret=anew)[0] == 200


def test_a_secret_ends_with_its_time_and_is_kept_as_a_hash(team):
    made = enrolment(team, role="worker", team="red", seconds=1)
    until(lambda: auth(team, handle="late", secret=made["secret"])[0] == 401)
    listed = team.ok("root", "GET", "/v1/enrolment/list?all=true")["data"]
    assert made["id"] in [row["id"] for row in listed]
    assert not any(row["secret"] for row in listed)
    store = team.served.cwd / "home" / "fleet.db"
    assert made["secret"].encode() not in b"".join(
        p.read_bytes() for p in store.parent.glob("fleet.db*")
    )
    assert team.ask("ann", "POST", "/v1/enrolment/create", {})[0] == 403


def test_a_chat_is_read_by_those_who_are_in_it(team):
    for name in ("ann", "bob", "mel", "eve"):
        team.ok(name, "GET", "/swarms")  # so that they have been seen
    until(lambda: len(team.ok("ann", "GET", "/teams/red/agents")) >= 3)
    ann, bob = uid("red", "ann"), uid("red", "bob")
    chat = team.ok("ann", "POST", "/chats", {"uid1": ann, "uid2": bob})["chatId"]
    assert team.ok("bob", "POST", "/chats", {"uid1": bob, "uid2": ann}) == {"chatId": chat}
    path = f"/chats/{chat}/messages"
    first = team.ok("ann", "POST", path, {"from": ann, "text": "Hi", "metadata": {"n": 1}})
    assert first.keys() == MESSAGE
    assert (first["fromHandle"], first["fromUid"], first["metadata"]) == ("ann", ann, {"n": 1})
    team.ok("ann", "POST", path, {"text": "There?"})
    (row,) = team.ok("bob", "GET", f"/users/{bob}/chats")
    assert row.keys() >= CHAT
    assert (set(row["participants"]), row["unread"]) == ({ann, bob}, 2)
    assert row["lastMessage"]["text"] == "There?"
    assert team.ok("ann", "GET", f"/users/{ann}/chats")[0]["unread"] == 0
    assert [m["text"] for m in team.ok("bob", "GET", path)] == ["Hi", "There?"]
    assert [m["text"] for m in team.ok("bob", "GET", f"{path}?after={first['id']}")] == ["There?"]
    assert team.ok("bob", "POST", f"/chats/{chat}/read", {"uid": bob}) == {"success": True}
    assert team.ok("bob", "GET", f"/users/{bob}/chats")[0]["unread"] == 0
    team.join("red2", "team-lead", "red")
    for who in ("eve", "red2", "root"):
        assert team.ask(who, "GET", path)[0] == 404, who
        assert team.ask(who, "POST", path, {"text": "x"})[0] == 404
        assert team.ask(who, "POST", f"/chats/{chat}/read")[0] == 404


def test_a_chat_has_pages(team):
    chat = team.ok("ann", "POST", "/chats", {"teamName": "red"})["chatId"]
    for number in range(5):
        team.ok("ann", "POST", f"/chats/{chat}/messages", {"text": f"{number}"})
    seen, path = [], f"/chats/{chat}/messages?limit=2"
    while path:
        status, rows, headers = team.asked("bob", "GET", path)
        assert status == 200
        seen = [row["text"] for row in rows] + seen
        path = headers.get("link", "").partition(">")[0].removeprefix("<")
    assert seen == ["0", "1", "2", "3", "4"]
    assert team.ok("bob", "GET", f"/users/{uid('red', 'bob')}/chats")[0]["isTeamChat"]
    assert team.ask("eve", "GET", f"/chats/{chat}/messages")[0] == 404


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/chats", {"uid1": uid("red", "ann"), "uid2": uid("red", "mel")}),
        ("GET", f"/users/{uid('red', 'ann')}/chats", None),
        ("POST", "/chats/x/messages", {"from": uid("red", "ann"), "text": "x"}),
        ("POST", "/chats/x/read", {"uid": uid("red", "ann")}),
    ],
)
def test_nobody_chats_as_somebody_else(team, method, path, body):
    status, said = team.ask("bob", method, path, body)
    assert (status, said["code"]) == (403, "forged")


def test_users_of_another_team_are_not_there(team):
    assert team.ask("eve", "GET", f"/users/{uid('red', 'ann')}")[0] == 404
    assert team.ask("ann", "GET", "/users/nobody")[0] == 404
    assert team.ask("bob", "POST", "/chats", {"uid1": uid("red", "bob"), "uid2": "x"})[0] == 404


def git(where, *words):
    return subprocess.run(
        ["git", *words], cwd=where, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture(scope="module")
def tree(team):
    """Bob's task, that has run and left its worktree: its handle and where that is."""
    spec = {"cwd": str(team.repo), "branch": "fix/login"}
    asked = {"title": "Work", "prompt": "ask Which?", "project": str(team.repo), "spec": spec}
    made = team.ok("root", "POST", "/v1/task/add", asked | {"team": "red"})["data"]["id"]
    subprocess.run(
        [FLEET, "run", "--once"],
        cwd=team.repo,
        env=team.served.env,
        check=True,
        capture_output=True,
    )
    team.ok("root", "POST", "/v1/task/assign", {"task": made, "assignee": "bob"})
    path = team.ok("ann", "GET", "/orchestrate/worktree/fix/login/status")["path"]
    return "/orchestrate/worktree/fix/login", path


def without_remote(repo):
    if git(repo, "remote"):
        git(repo, "remote", "remove", "origin")


def with_remote(repo, folder):
    without_remote(repo)
    git(folder, "init", "-q", "--bare", "far.git")
    git(repo, "remote", "add", "origin", str(folder / "far.git"))


def test_a_worktree_is_committed_pushed_proposed_and_merged(team, tree, tmp_path):
    handle, path = tree
    without_remote(team.repo)
    Path(path, "new.txt").write_text("x\n")
    seen = team.ok("ann", "GET", f"{handle}/status")
    assert (seen["branch"], seen["hasChanges"]) == ("fix/login", True)
    assert seen["files"] == [{"path": "new.txt", "change": "untracked"}]
    status, said = team.ask("ann", "POST", f"{handle}/merge")
    assert (status, said["code"]) == (409, "dirty")
    done = team.ok("bob", "POST", f"{handle}/commit", {"message": "$(touch /tmp/pwned)"})
    assert (done["success"], done["handle"]) == (True, "fix/login")
    assert git(path, "log", "-1", "--format=%B") == "$(touch /tmp/pwned)"
    status, said = team.ask("bob", "POST", f"{handle}/commit", {"message": "x"})
    assert (status, said["code"]) == (409, "nothing_to_commit")
    status, said = team.ask("ann", "POST", f"{handle}/push")
    assert (status, said["code"], bool(said["fix"])) == (409, "no_remote", True)
    team.forge.adopt(team.repo)
    team.ok("mel", "POST", f"{handle}/push")
    assert team.forge.tip("fix/login") == done["commitHash"]
    asked = {"title": "Fix `id`", "body": "$(id)", "base": "main"}
    url = team.ok("ann", "POST", f"{handle}/pr", asked)["prUrl"]
    (pull,) = team.forge.pulls
    assert url == team.forge.web_of(pull)
    assert (pull.branch, pull.base) == ("fix/login", "main")
    assert (pull.title, pull.body) == ("Fix `id`", "$(id)")
    merged = team.ok("mel", "POST", f"{handle}/merge")
    assert merged["commitHash"] == git(team.repo, "rev-parse", "main") == done["commitHash"]


def test_only_who_may_touches_a_worktree(team, tree):
    handle, path = tree
    before = git(path, "status", "--porcelain"), git(path, "rev-parse", "HEAD")
    team.join("wendy", "worker", "red")
    status, said = team.ask("wendy", "POST", f"{handle}/commit", {"message": "Mine"})
    assert (status, said["code"]) == (403, "not_yours")
    for what in ("push", "merge", "pr"):
        assert (
            team.ask("bob", "POST", f"{handle}/{what}", {"title": "x"} if what == "pr" else None)[0]
            == 403
        )
    for method, what in (
        ("GET", "status"),
        ("POST", "commit"),
        ("POST", "push"),
        ("POST", "merge"),
    ):
        body = {"message": "x"} if what == "commit" else None
        assert team.ask("eve", method, f"{handle}/{what}", body)[0] in {403, 404}
    assert (git(path, "status", "--porcelain"), git(path, "rev-parse", "HEAD")) == before


def tool(team, who, name, **given):
    """What a tool says, or the code of why not."""
    params = {"name": name, "arguments": given}
    said = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    result = team.ok(who, "POST", "/mcp", said, headers=ACCEPT)["result"]
    return (
        result["structuredContent"]["code"]
        if result["isError"]
        else json.loads(result["content"][0]["text"])
    )


def test_the_same_is_said_by_tools(team, tree, tmp_path):
    _, path = tree
    with_remote(team.repo, tmp_path)
    Path(path, "more.txt").write_text("x\n")
    assert tool(team, "ann", "worktree_status", handle="fix/login")["changes"] == 1
    assert tool(team, "mel", "worktree_commit", handle="fix/login", message="`id`")["files"] == 1
    assert git(path, "log", "-1", "--format=%s") == "`id`"
    assert tool(team, "ann", "worktree_push", handle="fix/login")["remote"] == "origin"
    assert tool(team, "ann", "worktree_merge", handle="fix/login")["onto"] == "main"
    assert tool(team, "bob", "worktree_push", handle="fix/login") == "forbidden"
    assert tool(team, "eve", "worktree_status", handle="fix/login") == "not_found"
    assert "bob" in [mail["to"] for mail in tool(team, "ann", "team_broadcast", message="Hear!")]
    tool(team, "ann", "team_handoff", to="bob", context={"goal": "Login", "branch": "fix/login"})
    assert tool(team, "bob", "checkpoint_load")["summary"]["goal"] == "Login"
    read = tool(team, "bob", "mail_read", mark_read=True)
    assert [mail["text"] for mail in read] == ["Hear!"]
    assert tool(team, "bob", "mail_read") == []


def test_many_looks_at_a_worktree_do_not_hold_up_the_others(team, tree):
    handle, _ = tree
    with ThreadPoolExecutor(12) as pool:
        looks = [pool.submit(team.ok, "ann", "GET", f"{handle}/status") for _ in range(12)]
        assert team.served.ask("GET", "/health")[0] == 200
        assert all(look.result()["branch"] == "fix/login" for look in looks)


def test_guessing_is_slowed_down_and_a_good_secret_passes_all_the_same(team):
    """Behind a proxy everybody has one address: ten wrong secrets lock nobody out."""
    for _ in range(12):
        status, said = auth(team, handle="eve", secret="enrol-guess")
    assert (status, said["code"]) == (429, "too_many_requests")
    good = enrolment(team, role="worker", team="red")["secret"]
    assert auth(team, handle="nan", secret=good)[0] == 200
    assert auth(team, handle="eve", secret="enrol-guess")[0] == 429
