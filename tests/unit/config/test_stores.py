"""What the address of a store says of its files."""

from __future__ import annotations

from fleet.config.stores import files_of


def test_the_path_of_a_store_has_one_slash_at_its_beginning():
    assert files_of("sqlite:////nowhere/x.db")[0] == "/nowhere/x.db"
