"""The real `gh` of Debian: it hands its token over, and sees the pull requests that Fleet opens."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fleet.adapters.forges.forges import HostForges
from fleet.adapters.forges.token import TokenSource
from fleet.domain.errors import Refused
from fleet.domain.forges.pull import PullDraft, PullState
from tests.contract.checkouts import commit, git, make_repo
from tests.forges.fake_forge import TOKEN, FakeForge

ROOT = Path(__file__).parents[2]
HOST = "github.localhost"  # to which gh speaks HTTP without TLS
pytestmark = pytest.mark.real


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    if shutil.which("gh") is None:
        words = [str(ROOT / "scripts/debian"), "gh"]
        ran = subprocess.run(words, capture_output=True, text=True, check=False)
        if ran.returncode:
            pytest.skip(f"gh: {ran.stderr[-200:]}")


@pytest.fixture
def signed_in(tmp_path) -> dict[str, str]:
    """The environment of a person who ran `gh auth login` for two hosts."""
    folder = tmp_path / ".config" / "gh"
    folder.mkdir(parents=True)
    words = "{}:\n    user: ada\n    oauth_token: {}\n    git_protocol: https\n"
    hosts = words.format("git.example.com", "gho_from_gh") + words.format(HOST, TOKEN)
    (folder / "hosts.yml").write_text(hosts)
    return {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}


def test_gh_hands_its_token_over(signed_in):
    assert TokenSource("git.example.com", "github", signed_in)() == "gho_from_gh"
    with pytest.raises(Refused):
        TokenSource("other.example.com", "github", signed_in)()


def test_gh_sees_the_pull_request_that_we_opened_and_we_see_what_gh_changed(signed_in, tmp_path):
    repo = make_repo(tmp_path / "shop")
    forge = FakeForge("github", tmp_path / "forge")

    def gh(*words: str) -> str:
        env = signed_in | {"GH_HOST": HOST, "HTTP_PROXY": f"http://{forge.host}"}
        ran = subprocess.run(
            ["gh", "api", *words], env=env, cwd=tmp_path, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.strip()

    try:
        forge.adopt(repo)
        git(repo, "checkout", "-q", "-b", "fleet/t-1")
        head = commit(repo, "Work", a="1\n")
        git(repo, "-c", "push.default=current", "push", "-q", "origin", "fleet/t-1")
        token = TokenSource(HOST, "github", signed_in)()
        env = {"FLEET_FORGE_TOKEN": token}
        ours = HostForges(env, lambda: [f"{forge.host}=github"]).of(str(repo), "origin")
        number = ours.open(PullDraft("Prices", "All of them.", "fleet/t-1", "main")).number
        pull = f"repos/shop/web/pulls/{number}"
        assert gh(pull, "--jq", '.title + " " + .head.sha') == f"Prices {head}"
        gh(pull, "-X", "PATCH", "-f", "title=All prices")
        assert ours.show(number).title == "All prices"
        gh(f"{pull}/merge", "-X", "PUT", "-f", f"sha={head}", "-f", "merge_method=merge")
        assert ours.show(number).state is PullState.MERGED
    finally:
        forge.close()
