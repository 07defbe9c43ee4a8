from __future__ import annotations

import numpy as np
import pytest

from tenfold_core import dtypes, errors, opdefs, tensor_util
from tenfold_core.resolver import Resolver
from tenfold_protos.node_def_pb2 import NodeDef


def _add(name: str, dtype: dtypes.DType) -> NodeDef:
    node = NodeDef(name=name, op="Add")
    node.attr["T"].type = dtype.as_datatype_enum
    return node


def test_nodes_of_one_kind_share_what_was_worked_out():
    resolver, add = Resolver(), opdefs.get("Add")

    first = resolver.resolve(add, _add("a", dtypes.float32))
    second = resolver.resolve(add, _add("b", dtypes.float32))
    other = resolver.resolve(add, _add("c", dtypes.int32))

    assert first is second
    assert first[0] == {"T": dtypes.float32}
    assert other[0] == {"T": dtypes.int32}
    assert other[1].output_types == (dtypes.int32,)


def test_attributes_that_the_definition_does_not_know_make_another_kind():
    resolver, add = Resolver(), opdefs.get("Add")
    marked = _add("b", dtypes.float32)
    marked.attr["_class"].list.s.append(b"loc:@a")

    assert resolver.resolve(add, _add("a", dtypes.float32))[0] == {"T": dtypes.float32}
    assert resolver.resolve(add, marked)[0] == {"T": dtypes.float32, "_class": [b"loc:@a"]}


def test_tensors_are_not_remembered():
    resolver, const = Resolver(), opdefs.get("Const")
    node = NodeDef(name="c", op="Const")
    node.attr["dtype"].type = dtypes.float32.as_datatype_enum
    node.attr["value"].tensor.CopyFrom(tensor_util.make_tensor_proto(np.float32(1)))

    assert resolver.resolve(const, node)[0] is not resolver.resolve(const, node)[0]


def test_nodes_with_tensors_share_what_they_have_beside():
    resolver, const = Resolver(), opdefs.get("Const")

    def node(value: np.float32 | np.int32) -> NodeDef:
        made = NodeDef(name="c", op="Const")
        proto = tensor_util.make_tensor_proto(value)
        made.attr["dtype"].type = proto.dtype
        made.attr["value"].tensor.CopyFrom(proto)
        return made

    first, second = (resolver.resolve(const, node(np.float32(value))) for value in (1, 2))
    other = resolver.resolve(const, node(np.int32(3)))

    assert first[1] is second[1]
    assert [tensor_util.make_ndarray(each[0]["value"]) for each in (first, second, other)] == [1, 2, 3]
    assert (first[0]["dtype"], other[0]["dtype"]) == (dtypes.float32, dtypes.int32)
    wrong = node(np.float32(1))
    wrong.attr["dtype"].tensor.CopyFrom(wrong.attr["value"].tensor)
    with pytest.raises(errors.InvalidArgumentError, match="attr 'dtype' holds a value of kind tensor"):
        resolver.resolve(const, wrong)


def test_an_error_is_raised_each_time():
    resolver, add = Resolver(), opdefs.get("Add")
    for _ in range(2):
        with pytest.raises(errors.InvalidArgumentError, match="attr 'T' is missing"):
            resolver.resolve(add, NodeDef(name="a", op="Add"))


def test_a_graph_whose_numbers_make_more_outputs_than_there_may_be_is_refused():
    resolver, unpack = Resolver(), opdefs.get("Unpack")

    def node(number: int) -> NodeDef:
        node = NodeDef(name=f"n{number}", op="Unpack")
        node.attr["T"].type = dtypes.float32.as_datatype_enum
        node.attr["num"].i = (1 << 20) - number
        return node

    for number in range(8):
        resolver.resolve(unpack, node(number))
    with pytest.raises(errors.ResourceExhaustedError, match="more than 8388608 inputs and outputs together"):
        resolver.resolve(unpack, node(8))
