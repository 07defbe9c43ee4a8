"""Branches, loops and functions on a cluster of two of our servers, asked by our own client for a GraphDef.

The passes alone are tested in tests/unit; here are the rendezvous, the paths between processes and the clean-up.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import numpy as np
import pytest

import tenfold as tf
from support.background_cluster import background_cluster
from support.functions import call, const, function, graph, node
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold_protos.graph_pb2 import GraphDef

F32, I32, BOOL, RESOURCE = dtypes.float32, dtypes.int32, dtypes.bool_, dtypes.resource
PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    """The worker of a ps and a worker."""
    with background_cluster({"ps": 1, "worker": 1}) as servers:
        yield servers["worker", 0].target


@contextlib.contextmanager
def session(target: str, graph_def: GraphDef) -> Iterator[tf.Session]:
    with tf.Graph().as_default():
        tf.import_graph_def(graph_def, name="")
        config = tf.ConfigProto(operation_timeout_in_ms=30_000)
        with tf.Session(target, config=config) as opened:
            yield opened


LESS = function(
    "less", ["i: int32", "n: int32", "a: float"], ["r: bool"], [node("l", "Less", "i", "n", T=I32)], r="l:z:0"
)
STEP = function(
    "step",
    ["i: int32", "n: int32", "a: float"],
    ["o: int32", "m: int32", "b: float"],
    [
        const("one", 1),
        node("add", "Add", "i", "one:output:0", T=I32, device=WORKER),
        node("twice", "Add", "a", "a", T=F32, device=PS),
    ],
    o="add:z:0",
    m="n",
    b="twice:z:0",
)


def loop() -> GraphDef:
    nodes = [
        node("n", "Placeholder", dtype=I32),
        const("zero", 0),
        const("start", 1.0),
        node("w", "While", "zero", "n", "start", T=[I32, I32, F32], cond=call("less"), body=call("step")),
    ]
    return graph(nodes, LESS, STEP)


@pytest.mark.parametrize("count", [0, 1, 50])
def test_a_body_over_two_tasks(target: str, count: int) -> None:
    with session(target, loop()) as opened:
        assert opened.run(["w:0", "w:2"], {"n:0": count}) == [count, 2.0**count]


def test_steps_of_one_loop_do_not_meet(target: str) -> None:
    """Frames are named alike in every step; the tensors of each are its own."""
    with session(target, loop()) as opened:
        assert [opened.run("w:2", {"n:0": count}) for count in (3, 1, 10, 0)] == [8, 2, 1024, 1]


def test_a_large_tensor_goes_round(target: str) -> None:
    step = function(
        "step",
        ["i: int32", "n: int32", "a: float"],
        ["o: int32", "m: int32", "b: float"],
        [
            const("one", 1),
            node("add", "Add", "i", "one:output:0", T=I32),
            const("bias", np.ones((300, 300), np.float32)),
            node("more", "Add", "a", "bias:output:0", T=F32, device=PS),
        ],
        o="add:z:0",
        m="n",
        b="more:z:0",
    )
    nodes = [*loop().node[:2], node("start", "Placeholder", dtype=F32), loop().node[3]]
    with session(target, graph(nodes, LESS, step)) as opened:
        start = np.arange(90_000, dtype=np.float32).reshape(300, 300)

        result = opened.run("w:2", {"n:0": 7, "start:0": start})

        np.testing.assert_array_equal(result, start + 7)


def test_an_error_in_a_body_names_task_and_node(target: str) -> None:
    step = function(
        "step",
        ["i: int32", "n: int32", "a: float"],
        ["o: int32", "m: int32", "b: float"],
        [
            const("one", 1),
            node("add", "Add", "i", "one:output:0", T=I32),
            const("limit", 3),
            node("small", "Less", "i", "limit:output:0", T=I32),
            const("text", b"too far"),
            node("check", "Assert", "small:z:0", "text:output:0", T=[dtypes.string], device=PS),
        ],
        control=["check"],
        o="add:z:0",
        m="n",
        b="a",
    )
    with session(target, graph(list(loop().node), LESS, step)) as opened:
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"(?s)From /job:ps.*too far.*\{\{node w/body/check\}\}"
        ):
            opened.run("w:0", {"n:0": 5})
        # nothing of the broken step is in the way of the next
        assert opened.run("w:0", {"n:0": 2}) == 2


def test_a_function_lies_on_two_tasks_and_changes_a_variable(target: str) -> None:
    f = function(
        "f",
        ["v: resource", "x: float"],
        ["y: float"],
        [
            node("change", "AssignAddVariableOp", "v", "x", dtype=F32),
            node("read", "ReadVariableOp", "v", "^change", dtype=F32),
            node("minus", "Neg", "read:value:0", T=F32, device=WORKER),
        ],
        control=["change"],
        stateful=True,
        y="minus:y:0",
    )
    v = node("v", "VarHandleOp", dtype=F32, shape=(), shared_name="function_variable", device=PS)
    x = node("x", "Placeholder", dtype=F32)
    init = node("init", "AssignVariableOp", "v", "x", dtype=F32)
    f_call = node("c", "StatefulPartitionedCall", "v", "x", Tin=[RESOURCE, F32], Tout=[F32], f=call("f"))
    with session(target, graph([v, x, init, f_call], f)) as opened:
        opened.run("init", {"x:0": 1.0})

        assert opened.run("c:0", {"x:0": 10.0}) == -11
        opened.run("c", {"x:0": 10.0})
        assert opened.run("c:0", {"x:0": 0.0}) == -21


@pytest.mark.parametrize(("taken", "expected"), [(True, 14), (False, -7)])
def test_branches_on_two_tasks(target: str, taken: bool, expected: float) -> None:
    twice = function("twice", ["x: float"], ["y: float"], [node("a", "Add", "x", "x", T=F32, device=PS)], y="a:z:0")
    minus = function("minus", ["x: float"], ["y: float"], [node("n", "Neg", "x", T=F32, device=WORKER)], y="n:y:0")
    branches = {"then_branch": call("twice"), "else_branch": call("minus")}
    nodes = [
        node("p", "Placeholder", dtype=BOOL),
        node("x", "Placeholder", dtype=F32),
        node("if", "If", "p", "x", Tcond=BOOL, Tin=[F32], Tout=[F32], **branches),
    ]
    with session(target, graph(nodes, twice, minus)) as opened:
        assert opened.run("if:0", {"p:0": taken, "x:0": 7.0}) == expected


def test_a_function_that_calls_itself_runs_on_another_task(target: str) -> None:
    sum_to = function(
        "sum_to",
        ["n: int32"],
        ["r: int32"],
        [
            const("one", 1),
            node("small", "Less", "n", "one:output:0", T=I32),
            node("if", "If", "small:z:0", "n", Tcond=BOOL, Tin=[I32], Tout=[I32],
                 then_branch=call("same"), else_branch=call("more")),
        ],
        r="if:output:0",
    )  # fmt: skip
    same = function("same", ["n: int32"], ["r: int32"], [], r="n")
    more = function(
        "more",
        ["n: int32"],
        ["r: int32"],
        [
            const("one", 1),
            node("less", "Sub", "n", "one:output:0", T=I32),
            node("rest", "PartitionedCall", "less:z:0", Tin=[I32], Tout=[I32], f=call("sum_to")),
            node("sum", "Add", "n", "rest:output:0", T=I32),
        ],
        r="sum:z:0",
    )
    nodes = [
        node("x", "Placeholder", dtype=I32),
        node("c", "PartitionedCall", "x", Tin=[I32], Tout=[I32], f=call("sum_to"), device=PS),
    ]
    with session(target, graph(nodes, sum_to, same, more)) as opened:
        assert opened.run("c:0", {"x:0": 20}) == 210
