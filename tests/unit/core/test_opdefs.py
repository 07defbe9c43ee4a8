"""The tables of op definitions: every row parses, types expand, attributes are filled and checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors, opdefs
from tenfold_core.attr_value import from_proto, to_proto
from tenfold_core.node_attrs import resolve_attrs
from tenfold_core.node_signature import signature
from tenfold_core.op_def import parse
from tenfold_core.opdefs import input_ranks
from tenfold_core.shape_inference import infer_shapes
from tenfold_core.tensor_shape import TensorShape
from tenfold_protos import node_def_pb2


def node(op: str, **attrs: Any) -> node_def_pb2.NodeDef:
    definition = opdefs.get(op)
    result = node_def_pb2.NodeDef(name="n", op=op)
    for name, value in attrs.items():
        result.attr[name].CopyFrom(to_proto(value, definition.attr_by_name[name].type))
    return result


@pytest.mark.parametrize("family", opdefs.FAMILIES)
def test_every_row_parses_and_goes_to_the_wire(family: str) -> None:
    for name in opdefs.names():
        if opdefs.family_of(name) == family:
            assert opdefs.get(name).to_proto().name == name


def test_an_unknown_op_names_the_nearest() -> None:
    with pytest.raises(errors.NotFoundError, match=r"'MatMull'. Did you mean MatMul"):
        opdefs.get("MatMull")


def test_a_row_that_cannot_be_read_says_so() -> None:
    with pytest.raises(ValueError, match="op definition X: cannot read the argument 'a'"):
        parse("X", "a", "", ())
    with pytest.raises(ValueError, match="op definition X: cannot read the attribute 'n = 3'"):
        parse("X", "", "", ("n = 3",))


def test_defaults_are_filled_and_foreign_attributes_kept() -> None:
    given = node("MatMul", T=dtypes.float32)
    given.attr["_class"].list.s.append(b"loc:@w")

    attrs = resolve_attrs(opdefs.get("MatMul"), given)

    assert attrs["transpose_a"] is False
    assert attrs["T"] is dtypes.float32
    assert attrs["_class"] == [b"loc:@w"]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (node("MatMul"), "attr 'T' is missing"),
        (node("MatMul", T=dtypes.string), "value string is not one of"),
        (node("Pack", T=dtypes.float32, N=0), "value 0 is below the minimum of 1"),
    ],
)
def test_wrong_attributes_are_named(given: node_def_pb2.NodeDef, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text) as caught:
        resolve_attrs(opdefs.get(given.op), given)
    assert caught.value.node_name == "n"


def test_an_attribute_of_another_kind_is_refused() -> None:
    given = node("Pack", T=dtypes.float32)
    given.attr["N"].s = b"two"
    with pytest.raises(errors.InvalidArgumentError, match="holds a value of kind s; op Pack wants int"):
        resolve_attrs(opdefs.get("Pack"), given)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (b"x", "string"),
        (3, "int"),
        (2.5, "float"),
        (True, "bool"),
        (dtypes.int8, "type"),
        (TensorShape([None, 2]), "shape"),
        ([1, 2], "list(int)"),
        ([], "list(int)"),
        ([dtypes.int8], "list(type)"),
    ],
)
def test_attr_values_round_trip(value: Any, kind: str) -> None:
    assert from_proto(to_proto(value, kind)) == value


@pytest.mark.parametrize(("value", "kind"), [("x", "int"), (1.5, "int"), (b"x", "list(string)"), (3, "string")])
def test_values_of_the_wrong_kind_are_refused(value: Any, kind: str) -> None:
    with pytest.raises(TypeError, match="expected"):
        to_proto(value, kind)


def test_signatures() -> None:
    pack = signature(opdefs.get("Pack"), {"N": 3, "T": dtypes.int32})
    assert pack.input_types == (dtypes.int32,) * 3
    assert pack.input_counts == (3,)
    assign = signature(opdefs.get("Assign"), {"T": dtypes.float32})
    assert assign.input_types == (dtypes.float32.as_ref, dtypes.float32)
    assert assign.output_types == (dtypes.float32.as_ref,)
    save = signature(opdefs.get("RestoreV2"), {"dtypes": [dtypes.float32, dtypes.int64]})
    assert save.output_types == (dtypes.float32, dtypes.int64)
    with pytest.raises(errors.InvalidArgumentError, match="'num_split' of 'output' is -1"):
        signature(opdefs.get("Split"), {"num_split": -1, "T": dtypes.int32})


def shapes(op: str, inputs: list[Any], constants: dict[int, Any] | None = None, outputs: int = 1, **attrs: Any) -> Any:
    values = {index: np.asarray(value) for index, value in (constants or {}).items()}
    definition = opdefs.get(op)
    filled = {a.name: a.default for a in definition.attrs} | attrs
    result = infer_shapes(definition, filled, [TensorShape(s) for s in inputs], values.get, outputs)
    return [None if s.ndims is None else s.as_list() for s in result]


@pytest.mark.parametrize(
    ("op", "inputs", "constants", "attrs", "wanted"),
    [
        ("MatMul", [[2, 3], [3, 4]], {}, {}, [2, 4]),
        ("MatMul", [[3, 2], [4, 3]], {}, {"transpose_a": True, "transpose_b": True}, [2, 4]),
        ("Add", [[None, 3], [3]], {}, {}, [None, 3]),
        ("Add", [None, [3]], {}, {}, None),
        ("Sum", [[2, 3, 4], [2]], {1: [0, -1]}, {}, [3]),
        ("Mean", [[2, 3], [1]], {1: [1]}, {"keep_dims": True}, [2, 1]),
        ("Mean", [[2, 3], [None]], {}, {}, None),
        ("ArgMax", [[2, 3], []], {1: 1}, {}, [2]),
        ("Reshape", [[4, 6], [2]], {1: [-1, 3]}, {}, [8, 3]),
        ("Reshape", [[None, 6], [2]], {1: [-1, 3]}, {}, [None, 3]),
        ("ConcatV2", [[2, 3], [4, 3], []], {2: 0}, {}, [6, 3]),
        ("Pack", [[2], [2]], {}, {"axis": 1}, [2, 2]),
        ("GatherV2", [[5, 3], [2, 4], []], {2: 0}, {}, [2, 4, 3]),
        ("Slice", [[5, 3], [2], [2]], {1: [1, 0], 2: [2, -1]}, {}, [2, 3]),
        ("Slice", [[5, 3], [2], [2]], {1: [-1, -1], 2: [2, -1]}, {}, [2, None]),
        ("StridedSlice", [[5, 3], [1], [1], [1]], {1: [1], 2: [4], 3: [2]}, {}, [2, 3]),
        ("StridedSlice", [[5, 3], [1], [1], [1]], {1: [1], 2: [2], 3: [1]}, {"shrink_axis_mask": 1}, [3]),
        ("Transpose", [[2, 3], [2]], {1: [1, 0]}, {}, [3, 2]),
        ("ExpandDims", [[2, 3], []], {1: -1}, {}, [2, 3, 1]),
        ("Squeeze", [[2, 1, 3]], {}, {}, [2, 3]),
        ("OneHot", [[4], [], [], []], {1: 10}, {"axis": -1}, [4, 10]),
        ("Range", [[], [], []], {0: 0, 1: 10, 2: 3}, {}, [4]),
        ("Tile", [[2, 3], [2]], {1: [2, 1]}, {}, [4, 3]),
        ("Where", [[2, 3]], {}, {}, [None, 2]),
    ],
)
def test_static_shapes(op: str, inputs: list[Any], constants: Any, attrs: Any, wanted: Any) -> None:
    assert shapes(op, inputs, constants, **attrs) == [wanted]


def test_static_shapes_of_several_outputs() -> None:
    assert shapes("Split", [[], [6, 2]], {0: 0}, 3) == [[2, 2]] * 3
    assert shapes("SoftmaxCrossEntropyWithLogits", [[5, 3], [5, 3]], {}, 2) == [[5], [5, 3]]


@pytest.mark.parametrize(
    ("op", "inputs", "constants", "text"),
    [
        ("MatMul", [[2, 3], [4, 5]], {}, "Dimensions must be equal, but are 3 and 4"),
        ("Add", [[2], [3]], {}, "Dimensions must be equal, but are 2 and 3"),
        ("Reshape", [[5], [1]], {1: [4]}, "Cannot reshape a tensor with 5 elements"),
        ("ConcatV2", [[2, 3], [4, 4], []], {2: 0}, "Dimensions must be equal"),
        ("NonMaxSuppression", [[1, 3], [1], []], {}, "Dimension must be 4 but is 3"),
        ("Sum", [[2], [1]], {1: [3]}, r"axis 3 is not in \[-1, 1\)"),
    ],
)
def test_shapes_that_cannot_go_together(op: str, inputs: list[Any], constants: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        shapes(op, inputs, constants)


@pytest.mark.parametrize(
    ("op", "inputs", "match"),
    [
        ("Fill", [[2, 2], []], "Shape must be rank 1 but is rank 2"),
        ("Softmax", [[]], "Shape must be at least rank 1 but is rank 0"),
        ("Sum", [[2, 3], [1, 1]], "Shape must be at most rank 1 but is rank 2"),
        ("SpaceToBatchND", [[1, 4, 1], [], [1, 2]], "rank"),
        ("Unique", [[1, 1]], "Shape must be rank 1 but is rank 2"),
    ],
)
def test_an_input_of_the_wrong_rank_is_refused(op: str, inputs: list[Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        infer_shapes(opdefs.get(op), {}, [TensorShape(each) for each in inputs], lambda i: None, 1)


def test_a_list_is_checked_tensor_by_tensor() -> None:
    shapes = [TensorShape(each) for each in ([2], [2], [])]
    concat = opdefs.get("ConcatV2")

    assert infer_shapes(concat, {"N": 2}, shapes, lambda i: None, 1)[0].ndims == 1
    with pytest.raises(ValueError, match="at least rank 1 but is rank 0"):
        infer_shapes(concat, {"N": 2}, [shapes[0], shapes[2], shapes[2]], lambda i: None, 1)


def test_every_line_of_the_ranks_names_ops_and_inputs_that_there_are() -> None:
    rows = input_ranks._rows()

    assert len(rows) > 400
    for op, needs in rows.items():
        assert len(needs) <= len(opdefs.get(op).inputs), op
