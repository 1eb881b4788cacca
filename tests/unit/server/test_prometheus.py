from __future__ import annotations

import math

from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

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


@given(text=st.text(), value=st.floats() | st.integers(-(2**53), 2**53))
@example(text='a"b\\c\nd', value=math.nan)
def test_prometheus_own_parser_reads_every_label_and_value(text, value):
    metric = Metric("fleet_x", "gauge", "About x.", (Sample({"of": text}, value),))
    (family,) = text_string_to_metric_families(exposition([metric]))
    (sample,) = family.samples
    assert (family.name, family.type, family.documentation) == ("fleet_x", "gauge", "About x.")
    assert sample.labels == {"of": text}
    assert sample.value == value or (math.isnan(value) and math.isnan(sample.value))


@given(values=st.lists(st.floats(0, 1e6)))
def test_prometheus_own_parser_reads_a_histogram(values):
    took = Histogram((0.1, 1.0))
    for value in values:
        took.observe(value)
    metric = Metric("took", "histogram", "Took.", tuple(took.samples()))
    (family,) = text_string_to_metric_families(exposition([metric]))
    read = {(s.name, s.labels.get("le", "")): s.value for s in family.samples}
    assert read["took_bucket", "1"] == sum(value <= 1 for value in values)
    assert read["took_bucket", "+Inf"] == read["took_count", ""] == len(values)
    assert math.isclose(read["took_sum", ""], sum(values))
