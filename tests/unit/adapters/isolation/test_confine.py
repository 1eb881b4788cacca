from __future__ import annotations

import pytest

from fleet.adapters.isolation.confine import beside


@pytest.fixture
def root(tmp_path):
    """A home with two runs, files beside it, and a link into it."""
    for folder in ("home/runs/a", "home/runs/b", "src", "data"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "notes").write_text("")
    (tmp_path / "way-in").symlink_to(tmp_path / "home")
    return tmp_path


def allowed(root, *hidden: str) -> set[str]:
    paths = beside([str(root / path) for path in hidden])
    return {path.removeprefix(f"{root}/") for path in paths if path.startswith(f"{root}/")}


@pytest.mark.parametrize(
    ("hidden", "beside_it"),
    [
        (["home"], {"src", "data", "notes"}),
        (["home/runs/a"], {"home/runs/b", "src", "data", "notes"}),
        (["home", "home/runs/a"], {"src", "data", "notes"}),
        (["home", "data/fleet.db"], {"src", "notes"}),  # a file that is not there yet
        (["way-in"], {"src", "data", "notes"}),
    ],
)
def test_what_is_beside_a_hidden_path_is_allowed_by_name(root, hidden, beside_it):
    assert allowed(root, *hidden) == beside_it


def test_the_rest_of_the_machine_is_allowed(root):
    paths = set(beside([str(root / "home")]))
    assert {"/usr", "/etc"} <= paths
    assert not paths & {"/", str(root), str(root.parent), str(root / "home")}
