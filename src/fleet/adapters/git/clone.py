"""How a clone is recognised on other machines."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from fleet.adapters.forges.addresses import parse
from fleet.adapters.git.repo import Repo, run_git
from fleet.domain.errors import FleetError
from fleet.domain.hosts.clone import Clone

ROOT_SECONDS = 60.0  # of a long history without a commit graph


def clone_of(project: str) -> Clone | None:
    """None where there is no repository, no commit, or only part of the history."""
    with suppress(FleetError, OSError, ValueError):
        repo = Repo.of(Path(project))
        if (repo.common / "shallow").exists():
            return None
        words = ("rev-list", "--max-parents=0", "HEAD")
        roots = run_git(repo.top, *words, timeout=ROOT_SECONDS).raw.decode("ascii").split()
        inside = str(Path(project).resolve().relative_to(repo.top.resolve()))
        if roots:
            return Clone(tuple(sorted(roots)), _remote(repo), "" if inside == "." else inside)
    return None


def _remote(repo: Repo) -> str:
    """The address of `origin`, else of the first one; empty: no other machine knows it by that."""
    done = run_git(repo.top, "config", "--get-regexp", r"^remote\..*\.url$")
    pairs = [line.split(" ", 1) for line in done.raw.decode("utf-8", "replace").splitlines()]
    urls = {pair[0]: pair[1] for pair in pairs if len(pair) > 1}
    url = urls.get("remote.origin.url") or next(iter(urls.values()), "")
    if "://" not in url and ":/" in url:  # a directory of some machine, which has other clones, too
        return ""
    address = parse(url)
    return f"{address.host}/{address.path}" if address else ""
