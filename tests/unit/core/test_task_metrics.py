"""Figures as lines of a scrape, read back by Prometheus's own parser."""

from __future__ import annotations

from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tenfold_core.task_metrics import (
    MOST_PARTS,
    MOST_TABLES,
    PEER_METRICS,
    QUEUE_METRICS,
    TABLE_METRICS,
    TASK_METRICS,
    families,
    labels,
)


def samples(tasks: list[tuple[str, dict[str, Any]]]) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Name → (labels, value) of each sample."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families("".join(families(tasks))):
        assert family.documentation
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def test_each_member_has_its_family() -> None:
    told: dict[str, Any] = {metric.member: number for number, metric in enumerate(TASK_METRICS)}
    told["peers"] = [{"task": "/job:ps/replica:0/task:0", "bytes_sent": 5, "bytes_received": 6}]
    told["queues"] = [{"name": "q", "size": 1, "capacity": 8}]
    told["tables"] = [{"name": "t/part_0", **{metric.member: 7 for metric in TABLE_METRICS}}]

    found = samples([(labels(cluster="c", job="ps", task="0"), told)])

    every = (*TASK_METRICS, *PEER_METRICS, *QUEUE_METRICS, *TABLE_METRICS)
    assert found.keys() == {metric.name for metric in every}
    who = {"cluster": "c", "job": "ps", "task": "0"}
    assert [found[metric.name] for metric in TASK_METRICS] == [[(who, n)] for n in range(len(TASK_METRICS))]
    assert found["tenfold_task_peer_sent_bytes_total"] == [({**who, "peer": "/job:ps/replica:0/task:0"}, 5.0)]
    assert found["tenfold_task_queue_capacity"] == [({**who, "queue": "q"}, 8.0)]
    assert found["tenfold_task_table_evicted_total"] == [({**who, "table": "t/part_0"}, 7.0)]


def test_what_is_not_told_has_no_sample() -> None:
    unbounded = {"steps": None, "threads": 3, "queues": [{"name": "q", "size": 1, "capacity": None}]}

    found = samples([(labels(task="0"), {}), (labels(task="1"), unbounded)])

    assert found == {
        "tenfold_task_threads": [({"task": "1"}, 3.0)],
        "tenfold_task_queue_size": [({"task": "1", "queue": "q"}, 1.0)],
    }


def test_names_may_hold_anything() -> None:
    odd = 'a "quoted" \\ name\nin two lines, with ümlauts'

    found = samples([(labels(job=odd), {"queues": [{"name": odd, "size": 0, "capacity": None}]})])

    assert found == {"tenfold_task_queue_size": [({"job": odd, "queue": odd}, 0.0)]}


def test_parts_are_bounded_and_a_series_comes_once() -> None:
    peers = [{"task": f"t{index}", "bytes_sent": index, "bytes_received": 0} for index in range(3 * MOST_PARTS)]
    twice = [{"name": "q", "size": 1, "capacity": 2}, {"name": "q", "size": 2, "capacity": 2}]

    found = samples([(labels(task="0"), {"peers": peers, "queues": twice})])

    busiest = [value for _, value in found["tenfold_task_peer_sent_bytes_total"]]
    assert sorted(busiest) == list(range(2 * MOST_PARTS, 3 * MOST_PARTS))
    assert found["tenfold_task_queue_size"] == [({"task": "0", "queue": "q"}, 2.0)]


def test_of_tables_the_largest_have_samples_and_no_lookups_where_none_are_counted() -> None:
    nothing = dict.fromkeys(metric.member for metric in TABLE_METRICS)
    tables = [{**nothing, "name": f"t{at}", "rows": 1, "bytes": at} for at in range(3 * MOST_TABLES)]

    found = samples([(labels(task="0"), {"tables": tables})])

    assert found.keys() == {"tenfold_task_table_rows", "tenfold_task_table_bytes"}
    sizes = [value for _, value in found["tenfold_task_table_bytes"]]
    assert sorted(sizes) == list(range(2 * MOST_TABLES, 3 * MOST_TABLES))
