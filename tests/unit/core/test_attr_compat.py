"""Graphs for workers of other versions, and requests that come twice."""

from __future__ import annotations

import pytest

from tenfold_core import errors
from tenfold_core.attr_compat import Dialect
from tenfold_protos.graph_pb2 import GraphDef
from tenfold_services.rpc.worker_service import RequestIds


def refusal(text: str) -> errors.OpError:
    return errors.InvalidArgumentError(None, None, text)


UNKNOWN = refusal(
    "NodeDef mentions attr 'grad_a' not in Op<name=MatMul; signature=a:T, b:T -> product:T; attr=T:type>; NodeDef: x"
)
MISSING = refusal(
    "NodeDef missing attr 'transpose_a' from Op<name=MatMul; signature=a:T, b:T -> product:T>; NodeDef: x"
)


def graph(**attrs: bool) -> GraphDef:
    graph_def = GraphDef()
    node = graph_def.node.add(name="x", op="MatMul")
    for name, value in attrs.items():
        node.attr[name].b = value
    graph_def.node.add(name="y", op="Relu")
    return graph_def


def test_an_attribute_that_a_worker_lacks_goes_if_it_has_its_default() -> None:
    dialect = Dialect()
    original = graph(grad_a=False, transpose_b=True)
    assert dialect.translate(original) is original

    assert dialect.learn(UNKNOWN)

    assert list(dialect.translate(original).node[0].attr) == ["transpose_b"]
    assert sorted(original.node[0].attr) == ["grad_a", "transpose_b"]
    assert dialect.translate(graph(grad_a=True)).node[0].attr["grad_a"].b


def test_an_attribute_that_a_worker_misses_comes() -> None:
    dialect = Dialect()
    assert dialect.learn(MISSING)
    translated = dialect.translate(graph(transpose_b=True))
    assert translated.node[0].attr["transpose_a"].WhichOneof("value") == "b"
    assert not translated.node[0].attr["transpose_a"].b
    assert not translated.node[1].attr


@pytest.mark.parametrize(
    "text",
    [
        "Something else is wrong",
        "NodeDef mentions attr 'nothing' not in Op<name=MatMul; signature=>",
        "NodeDef mentions attr 'x' not in Op<name=Unheard; signature=>",
        "NodeDef missing attr 'T' from Op<name=MatMul; signature=>",
    ],
)
def test_other_refusals_teach_nothing(text: str) -> None:
    assert not Dialect().learn(refusal(text))


def test_the_same_refusal_teaches_once_so_that_a_retry_ends() -> None:
    dialect = Dialect()
    assert dialect.learn(UNKNOWN)
    assert not dialect.learn(UNKNOWN)


def test_a_request_is_served_once() -> None:
    requests = RequestIds(remembered=2)
    requests.check(0, "RunGraph")
    requests.check(0, "RunGraph")
    requests.check(7, "RunGraph")
    with pytest.raises(errors.AbortedError, match="The same RunGraph request was received twice"):
        requests.check(7, "RunGraph")
    requests.check(8, "RunGraph")
    requests.check(9, "RunGraph")
    requests.check(7, "RunGraph")  # forgotten: the memory is bounded
