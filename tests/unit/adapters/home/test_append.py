"""Files of whole lines, in folders in which agents may write, too."""

from __future__ import annotations

import pytest

from fleet.adapters.home.append import LineFile
from fleet.adapters.home.stderr_log import _tail
from fleet.adapters.home.tail import Tail
from fleet.base.files import read_regular


@pytest.fixture
def link(tmp_path):
    """To a file that has no line break at its end: that looks like half a line, which is cut off."""
    (tmp_path / "server.key").write_text("the key")
    made = tmp_path / "log.jsonl"
    made.symlink_to(tmp_path / "server.key")
    yield made
    assert (tmp_path / "server.key").read_text() == "the key"


def test_nothing_is_written_where_a_link_leads(link):
    with pytest.raises(OSError, match="symbolic link"), LineFile(link) as file:
        file.add(b"{}\n", most=100)


def test_nothing_is_read_where_a_link_leads(link):
    with pytest.raises(OSError, match="symbolic link"):
        read_regular(link)
    assert _tail(link) == ""
    assert list(Tail(link).new()) == []
