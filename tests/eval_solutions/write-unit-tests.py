from solution import merge


def raises(intervals):
    try:
        merge(intervals)
    except ValueError:
        return True
    return False


def test_touching_intervals_are_one():
    assert merge([(1, 2), (2, 3)]) == [(1, 3)]


def test_an_interval_inside_another():
    assert merge([(1, 9), (2, 3)]) == [(1, 9)]


def test_any_order():
    given = [(5, 6), (1, 2), (2, 4)]
    assert merge(given) == [(1, 4), (5, 6)]
    assert given == [(5, 6), (1, 2), (2, 4)]


def test_apart():
    assert merge([(1, 2), (3, 4)]) == [(1, 2), (3, 4)]


def test_no_intervals():
    assert merge([]) == []


def test_bad_intervals():
    assert raises([(2, 2)])
    assert raises([(3, 2)])


def test_several_groups():
    assert merge([(1, 3), (2, 4), (6, 8), (7, 9), (20, 21)]) == [(1, 4), (6, 9), (20, 21)]
