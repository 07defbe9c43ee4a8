"""The plan of an exchange: what it says of a part, and that a peer reads what the master wrote."""

from __future__ import annotations

from tenfold_protos.link_calls_pb2 import LinkRunPlan
from tenfold_services.exchange.plan import ExchangePlan, numbered

PS, OTHER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:1"


def plan(graph: str = "g") -> ExchangePlan:
    return ExchangePlan(
        "h",
        graph,
        feeds=("x",),
        fetches=("y", "z"),
        answered=("a0", "a1"),
        pushed=((PS, ("p0", "p1")), (OTHER, ("o",))),
        expected=("e0", "e1"),
        brought=("e1",),
    )


def test_a_plan_says_where_each_tensor_goes() -> None:
    made = plan()

    assert made.answered == {"a0": 0, "a1": 1}
    assert made.pushed == {"p0": PS, "p1": PS, "o": OTHER}
    assert made.consumers == (PS, OTHER)
    assert made.sent == {"a0", "a1", "p0", "p1", "o"}
    assert made.expected == {"e0", "e1"}
    assert numbered([("e1", 7, False)], made) == [(0, 7, False)]


def test_a_peer_reads_the_plan_that_the_master_made() -> None:
    made = plan()

    read = ExchangePlan.from_message(LinkRunPlan.FromString(made.to_message().SerializeToString()))

    assert read == made
    assert hash(read) == hash(made)
    assert (read.session_handle, read.graph_handle) == ("h", "g")
    assert (read.feeds, read.fetches, read.answer_keys, read.call_keys) == (("x",), ("y", "z"), ("a0", "a1"), ("e1",))


def test_plans_are_equal_by_content() -> None:
    assert plan() == plan()
    assert plan() != plan("another")
    assert plan() != "plan"
