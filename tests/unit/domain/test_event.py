import json

from fleet.domain.event import TASK, Event, Kind


def test_a_kind_that_another_release_recorded_can_be_read_shown_and_matched_by_nothing():
    later = Kind("task.praised")
    assert (str(later), f"{later}", later.value) == ("task.praised",) * 3
    assert later == "task.praised" and later not in list(Kind)  # noqa: PT018  # one thing
    assert later.startswith(TASK)
    assert json.dumps({"type": Event(later, "t-1", "ada", 1).type}) == '{"type": "task.praised"}'
    assert "task.praised" not in {str(kind) for kind in Kind}


def test_a_kind_that_is_known_is_read_as_the_member():
    assert Kind("task.added") is Kind.TASK_ADDED
