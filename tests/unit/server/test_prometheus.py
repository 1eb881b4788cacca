from __future__ import annotations

from fleet.server.prometheus import Histogram, Metric, Sample, as_rows, exposition


def test_a_figure_is_a_line_with_its_labels_and_its_kind_before_it():
    tasks = Metric("fleet_tasks", "gauge", "Tasks by state.", (Sample({"state": "open"}, 3),))
    assert exposition([tasks]) == (
        '# HELP fleet_tasks Tasks by state.\n# TYPE fleet_tasks gauge\nfleet_tasks{state="open"} 3\n'
    )


def test_a_label_may_hold_anything():
    odd = Metric("x", "gauge", "X.", (Sample({"of": 'a"b\\c\nd'}, 1.5),))
    assert exposition([odd]).splitlines()[-1] == 'x{of="a\\"b\\\\c\\nd"} 1.5'


def test_a_histogram_counts_what_is_at_most_its_bounds():
    took = Histogram((0.1, 1.0))
    for seconds in (0.1, 0.5, 2.0):
        took.observe(seconds)
    metric = Metric("took", "histogram", "Took.", tuple(took.samples({"way": "up"})))
    assert exposition([metric]).splitlines()[2:] == [
        'took_bucket{way="up",le="0.1"} 1',
        'took_bucket{way="up",le="1"} 2',
        'took_bucket{way="up",le="+Inf"} 3',
        'took_sum{way="up"} 2.6',
        'took_count{way="up"} 3',
    ]
    assert [row["name"] for row in as_rows([metric])] == ["took_sum", "took_count"]
