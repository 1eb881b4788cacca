from fleet.domain.nodes.benchmark import (
    Measured,
    SpeedSample,
    data_of,
    ranked,
    row_of,
    summed,
    together,
)
from fleet.domain.nodes.speed import Timing

ROW = Measured("a", "http://a", "small", "qwen:7b")


def test_the_middle_counts_and_not_the_one_that_was_disturbed():
    fresh = [SpeedSample(Timing(100, s, 50, s), s) for s in (1.0, 1.1, 9.0)]
    again = [SpeedSample(Timing(1, 0.1, 50, 1.0), 0.1)]
    found = summed(ROW, fresh, again)
    assert (round(found.prefill, 1), round(found.decode, 1)) == (90.9, 45.5)
    assert (found.ttft, found.ttft_cached, found.requests) == (1.1, 0.1, 4)


def test_nodes_are_ranked_by_what_a_whole_request_takes():
    reads = ROW._replace(node="reads", prefill=4000, decode=10)
    writes = ROW._replace(node="writes", prefill=400, decode=100)
    fails = ROW._replace(node="fails", why="connection refused")

    def order(prompt, output):
        return [(n, row.node) for n, row in ranked([fails, reads, writes], prompt, output)]

    assert order(4000, 10) == [(1, "reads"), (2, "writes"), (0, "fails")]
    assert order(100, 400) == [(1, "writes"), (2, "reads"), (0, "fails")]


def test_what_failed_does_not_replace_what_is_known_and_a_load_that_was_seen_stays():
    key = ("http://a", "qwen:7b")
    known = together({}, [ROW._replace(decode=10, load=3.0)])
    assert together(known, [ROW._replace(why="connection refused")]) == known
    newer = together(known, [ROW._replace(decode=20)])
    assert (newer[key].decode, newer[key].load) == (20, 3.0)


def test_what_is_kept_is_read_back_and_what_is_damaged_is_not():
    row = ROW._replace(prefill=100.5, at=17)
    assert row_of(data_of(row)) == row
    assert row_of({"url": "http://a"}) is None
    assert row_of(data_of(row) | {"decode": "fast"}) is None
    assert row_of({"url": "http://a", "upstream": "qwen:7b", "later": 1}) is not None
