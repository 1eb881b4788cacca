"""What is pinned, for uv and for pip."""

from __future__ import annotations

import re
import tomllib
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader

from tests.docs.tree import TOP


def test_the_lock_names_the_public_index_alone():
    hosts = set(re.findall(r"https?://([^/\"]+)", (TOP / "uv.lock").read_text()))
    assert hosts == {"pypi.or" + "g", "files.pythonhosted.or" + "g"}


def test_the_lock_and_the_constraints_are_of_one_mind_and_know_every_dependency():
    loader = SourceFileLoader("lock", str(TOP / "scripts" / "lock"))
    script = module_from_spec(spec_from_loader("lock", loader))
    loader.exec_module(script)
    lock, constraints = (TOP / "uv.lock").read_text(), (TOP / "constraints.txt").read_text()
    assert script.merge(constraints, lock) == constraints, "run scripts/lock"
    wanted = tomllib.loads((TOP / "pyproject.toml").read_text())
    named = [*wanted["project"]["dependencies"], *wanted["dependency-groups"]["dev"]]
    pinned = {script.normal(each) for each in script.pinned(constraints)}
    names = {script.normal(re.match(r"[\w.-]+", each)[0]) for each in named}
    assert names <= pinned, "run scripts/lock"
