from __future__ import annotations

import pytest

from fleet.domain.errors import Unavailable
from fleet.domain.run import Host, Progress
from fleet.operations.insight.conversation import ReadSaid
from fleet.operations.tasks.transcript import ReadScreen, ReadTranscript
from fleet.ports import Put

SECOND = 1_000_000


@pytest.fixture
def far(office):
    """A task at work on box-1, asked about on box-2, which has the same store."""
    task = office.add("Work")
    office.start(task)
    office.agents.shared, office.agents.host = True, "box-2"
    progress = Progress(f"{task}.1", 0, office.clock.now(), lines=42, last="Reading the tests")
    office.store.commit([Put(progress)], [])
    return task


@pytest.mark.parametrize(("request_", "there"), [(ReadTranscript, "logs"), (ReadSaid, "logs"), (ReadScreen, "attach")])  # fmt: skip
def test_what_is_on_another_host_is_said_with_what_is_known_of_it(office, far, request_, there):
    now = office.clock.now()
    row = Host("box-1", 0, "box", "h", "", now + 200 * SECOND, lease=300)
    office.store.commit([Put(row)], [])
    with pytest.raises(Unavailable) as refused:
        office.call(request_(far))
    assert refused.value.code == "elsewhere"
    assert refused.value.fix == f"On box-1: fleet {there} {far}"
    message = refused.value.message
    assert message.startswith(f"{far}.1 is on box-1 (silent, last heard of at ")
    assert "It had printed 42 lines at" in message
    assert message.endswith("the last: Reading the tests")


def test_of_a_host_that_was_removed_it_says_so(office, far):
    with pytest.raises(Unavailable, match="which was removed, and its output is there"):
        office.call(ReadTranscript(far))


def test_on_its_own_host_an_empty_transcript_is_empty(office, far):
    office.agents.host = "box-1"
    assert office.call(ReadTranscript(far)).lines == ()
