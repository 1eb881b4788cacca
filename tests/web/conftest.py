from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.web.tab import Tab, launch, why_not

HOSTILE = "<img src=x onerror=alert(1)> & \u202ehostile\u202c `title`"
VISIBLE = HOSTILE.encode("ascii", "backslashreplace").decode()  # as the command line shows it, too
SPENDS = (
    "say Reading prices.\nwrite prices.py PRICES = {'tea': 3}\nusage 18000 600 0.42\ncommit Prices"
)
TASKS = (  # title, options, script, status
    ("Choose a licence", (), "ask Which licence shall this have?\nwrite LICENSE {answer}\ncommit x", "asking"),
    ("Read prices from a file", (), SPENDS, "done"),
    ("Add up a bill", ("--label", "billing"), "fail 9 the model server went away", "failed"),
    ("Print a bill", ("--after", "t-3"), "say Printed.", "waiting"),
    ("Write the README", (), "say Writing.\nspeak 2 900", "running"),
    ("Draw the schema", ("--review",), "say Drawn.\nwrite schema.sql create table x;\\ncreate table y;\ncommit y", "review"),
    (HOSTILE, (), "say <script>alert(1)</script>\nfail 9 <b onclick=alert(1)>bold</b>", "failed"),
)  # fmt: skip


def pytest_collection_modifyitems(items) -> None:
    """Two workers at most have a browser and a shop: to make those takes longer than most tests."""
    here = Path(__file__).parent
    groups = {path: f"web {n % 2}" for n, path in enumerate(sorted(here.glob("test_*.py")))}
    for item in items:
        if item.path in groups:
            item.add_marker(pytest.mark.real)
            item.add_marker(pytest.mark.xdist_group(groups[item.path]))


@pytest.fixture(scope="session")
def browser():
    if why := why_not():
        pytest.skip(why)
    playwright, chromium = launch()
    yield chromium
    chromium.close()
    playwright.stop()


def filled(scratch: Scratch) -> Served:
    """A server with a task in each state that a person meets."""
    ids = [scratch.add(title, *words, script=script) for title, words, script, _ in TASKS]
    served = Served(scratch)
    for task, (*_, status) in zip(ids, TASKS, strict=True):
        scratch.wait_for(task, status)
    return served


@pytest.fixture(scope="session")
def shop(tmp_path_factory):
    """What the tests only look at."""
    served = filled(Scratch(tmp_path_factory.mktemp("web") / "x"))
    yield served
    served.close()


@pytest.fixture(scope="session")
def token(shop):
    return shop.token()


@pytest.fixture
def tab(browser):
    """Makes tabs; at the end none of them complained."""
    tabs = []

    def make(served, token="", **given) -> Tab:
        tabs.append(Tab(browser, served.url, token, **given))
        return tabs[-1]

    yield make
    wrong = [text for each in tabs for text in each.wrong]
    for each in tabs:
        each.close()
    assert wrong == []
