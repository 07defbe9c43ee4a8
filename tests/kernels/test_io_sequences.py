"""SequenceExamples as tensors: what stands in a few records, by each of the ops, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.cpu._compiled import compiling
from tenfold_protos import example_pb2

_F, _I, _S = dtypes.float32, dtypes.int64, dtypes.string
_FIELDS = {bytes: "bytes_list", float: "float_list", int: "int64_list"}


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "loops", compiling.Loops("blocking"))


def fill(feature: Any, values: list[Any]) -> None:
    if values:
        getattr(feature, _FIELDS[type(values[0])]).value.extend(values)


def record(context: dict[str, list[Any]] | None = None, **lists: list[list[Any]]) -> bytes:
    message = example_pb2.SequenceExample()
    for key, values in (context or {}).items():
        fill(message.context.feature[key], values)
    for key, steps in lists.items():
        found = message.feature_lists.feature_list[key]
        for values in steps:
            fill(found.feature.add(), values)
    return message.SerializeToString()


def vector(*items: bytes) -> Any:
    out = np.empty(len(items), object)
    out[:] = items
    return out


_ROWS = (
    record({"c": [1], "e": [2.5]}, d=[[1.0, 2.0], [3.0, 4.0]], s=[[b"a"], [], [b"b", b"c"]], r=[[1], [2, 3]]),
    record({"c": [2, 3]}, d=[[5.0, 6.0]], r=[]),
)
_NOTHING = record(d=[])

#: Key and type, and of dense ones shape and default, of ragged ones the type of the splits.
_WANT: dict[str, Any] = {
    "context_sparse": [(b"c", _I)],
    "context_dense": [(b"e", _F, [], np.float32(7))],
    "context_ragged": [(b"c", _I, dtypes.int32)],
    "list_sparse": [(b"s", _S)],
    "list_dense": [(b"d", _F, [2])],
    "list_ragged": [(b"r", _I, dtypes.int32)],
}


def parsed(
    ops: Any, op: str, serialized: Any, name: Any = None, *, missing: Any = (), more: Any = None, **want: Any
) -> dict[str, list[Any]]:
    """The outputs by group. `missing`: keys of dense lists that may be missing; `more`: attributes and `inputs`."""
    groups: dict[str, list[Any]] = {key: want.get(key, []) for key in _WANT}
    sparse, dense, ragged = (groups[f"context_{kind}"] for kind in ("sparse", "dense", "ragged"))
    listed, of_lists, in_rags = (groups[f"list_{kind}"] for kind in ("sparse", "dense", "ragged"))
    attrs: dict[str, Any] = {
        "Ncontext_sparse": len(sparse), "Nfeature_list_sparse": len(listed), "Nfeature_list_dense": len(of_lists),
        "context_sparse_types": [each[1] for each in sparse], "Tcontext_dense": [each[1] for each in dense],
        "context_dense_shapes": [TensorShape(each[2]) for each in dense],
        "feature_list_sparse_types": [each[1] for each in listed],
        "feature_list_dense_types": [each[1] for each in of_lists],
        "feature_list_dense_shapes": [TensorShape(each[2]) for each in of_lists],
    }  # fmt: skip
    keys = [[each[0] for each in group] for group in (sparse, dense, listed, of_lists)]
    defaults = [each[3] for each in dense]
    names = np.array(name, object) if name is not None else vector()
    if op == "ParseSequenceExample":
        attrs |= dict(zip(("context_sparse_keys", "context_dense_keys", "feature_list_sparse_keys",
                           "feature_list_dense_keys"), keys, strict=True))  # fmt: skip
        attrs |= {"Ncontext_dense": len(dense), "feature_list_dense_missing_assumed_empty": list(missing)}
        inputs = [serialized, names, *defaults]
    elif op == "ParseSequenceExampleV2":
        attrs |= {
            "context_ragged_value_types": [each[1] for each in ragged],
            "context_ragged_split_types": [each[2] for each in ragged],
            "feature_list_ragged_value_types": [each[1] for each in in_rags],
            "feature_list_ragged_split_types": [each[2] for each in in_rags],
        }
        keys.insert(2, [each[0] for each in ragged])
        keys.append([each[0] for each in in_rags])
        flags = np.array([each[0] in missing for each in of_lists], bool)
        inputs = [serialized, names, *(vector(*group) for group in keys), flags, *defaults]
    else:
        attrs["Ncontext_dense"] = len(dense)
        scalars = [np.array(key, object) for group in keys for key in group]
        inputs = [serialized, vector(*missing), *scalars, *defaults, names]
    change = dict(more or {})
    for place, value in change.pop("inputs", {}).items():
        inputs[place] = value
    result = ops.run(op, inputs, **{**attrs, **change})
    outputs = list(result) if isinstance(result, tuple) else [] if result is None else [result]
    found = {}
    for key, group, parts in (
        ("context_sparse", sparse, 3), ("context_dense", dense, 1), ("context_ragged", ragged, 2),
        ("list_sparse", listed, 3), ("list_dense", of_lists, 1 if op.startswith("ParseSingle") else 2),
        ("list_ragged", in_rags, 3),
    ):  # fmt: skip
        for _ in range(parts):
            for feature in group:
                found.setdefault(f"{key} {feature[0].decode()}", []).append(outputs.pop(0))
    assert not outputs
    return found


def same(found: dict[str, list[Any]], expected: dict[str, list[Any]]) -> None:
    assert found.keys() == expected.keys()
    for key, arrays in expected.items():
        for mine, other in zip(found[key], arrays, strict=True):
            assert (mine.tolist(), mine.shape) == (np.array(other).tolist(), np.shape(other)), key


_BATCH = {
    "context_sparse c": [[[0, 0], [1, 0], [1, 1]], [1, 2, 3], [2, 2]],
    "context_dense e": [[2.5, 7]],
    "list_sparse s": [[[0, 0, 0], [0, 2, 0], [0, 2, 1]], [b"a", b"b", b"c"], [2, 3, 2]],
    "list_dense d": [[[[1, 2], [3, 4]], [[5, 6], [0, 0]]], [2, 1]],
}
_RAGGED = {
    "context_ragged c": [[1, 2, 3], [0, 1, 3]],
    "list_ragged r": [[1, 2, 3], [0, 2, 2], [0, 1, 3]],
}
_ALONE = {
    "context_sparse c": [[[0]], [1], [1]],
    "context_dense e": [2.5],
    "list_sparse s": [[[0, 0], [2, 0], [2, 1]], [b"a", b"b", b"c"], [3, 2]],
    "list_dense d": [[[1, 2], [3, 4]], 2],
}
_PLAIN = {key: value for key, value in _WANT.items() if "ragged" not in key}


def test_what_stands_in_a_batch(ops: Any) -> None:
    rows = vector(*_ROWS)
    same(parsed(ops, "ParseSequenceExample", rows, **_PLAIN), _BATCH)
    found = parsed(ops, "ParseSequenceExampleV2", rows, **_WANT)
    same(found, {**_BATCH, **_RAGGED})
    kinds = {"context_ragged c": [np.int64, np.int32], "list_ragged r": [np.int64, np.int32, np.int32]}
    for key, dtypes_of in kinds.items():
        assert [each.dtype for each in found[key]] == dtypes_of
    turned = parsed(ops, "ParseSequenceExampleV2", vector(*_ROWS[::-1]), missing=[b"d"], **_WANT)
    assert turned["list_dense d"][1].tolist() == [1, 2]
    assert turned["list_ragged r"][1].tolist() == [0, 0, 2]


def test_what_stands_in_one_record(ops: Any) -> None:
    row = np.array(_ROWS[0], object)
    for op in ("ParseSequenceExample", "ParseSequenceExampleV2", "ParseSingleSequenceExample"):
        expected = dict(_ALONE)
        if op.startswith("ParseSingle"):
            expected["list_dense d"] = expected["list_dense d"][:1]
        same(parsed(ops, op, row, **_PLAIN), expected)
    found = parsed(ops, "ParseSequenceExampleV2", row, **_WANT)
    same(found, {**_ALONE, "context_ragged c": [[1], 0], "list_ragged r": [[1, 2, 3], 0, [0, 1, 3]]})


def test_what_is_missing_or_empty(ops: Any) -> None:
    nothing = {
        "context_sparse c": [np.zeros((0, 2)), [], [2, 0]],
        "context_dense e": [[7, 7]],
        "list_sparse s": [np.zeros((0, 3)), [], [2, 0, 0]],
        "list_dense d": [np.zeros((2, 0, 2)), [0, 0]],
    }
    rows = vector(_NOTHING, record())
    same(parsed(ops, "ParseSequenceExample", rows, missing=[b"d"], **_PLAIN), nothing)
    ragged = {"context_ragged c": [[], [0, 0, 0]], "list_ragged r": [[], [0, 0, 0], [0]]}
    same(parsed(ops, "ParseSequenceExampleV2", rows, missing=[b"d"], **_WANT), {**nothing, **ragged})
    empty = {
        "context_sparse c": [np.zeros((0, 2)), [], [0, 0]],
        "context_dense e": [[]],
        "list_sparse s": [np.zeros((0, 3)), [], [0, 0, 0]],
        "list_dense d": [np.zeros((0, 0, 2)), []],
    }
    same(parsed(ops, "ParseSequenceExample", vector(), **_PLAIN), empty)
    ragged = {"context_ragged c": [[], [0]], "list_ragged r": [[], [0], [0]]}
    same(parsed(ops, "ParseSequenceExampleV2", vector(), **_WANT), {**empty, **ragged})
    alone = parsed(ops, "ParseSingleSequenceExample", np.array(record(), object), missing=[b"d"], **_PLAIN)
    assert alone["list_dense d"][0].shape == (0, 2)
    assert alone["list_sparse s"][2].tolist() == [0, 0]
    steps = record(s=[[], []])
    assert parsed(ops, "ParseSequenceExample", vector(steps), list_sparse=[(b"s", _S)])["list_sparse s"][
        2
    ].tolist() == [1, 2, 0]
    assert parsed(ops, "ParseSequenceExampleV2", vector(*_ROWS)) == {}


def test_steps_of_any_shape(ops: Any) -> None:
    rows = vector(record(d=[[1], [2], [3]], w=[[b"x", b"y"]], n=[[], []]), record(d=[[4]], w=[], n=[[]]))
    want = [(b"d", _I, []), (b"w", _S, [1, 2]), (b"n", _F, [0])]
    for op in ("ParseSequenceExample", "ParseSequenceExampleV2"):
        found = parsed(ops, op, rows, list_dense=want)
        same(found, {
            "list_dense d": [[[1, 2, 3], [4, 0, 0]], [3, 1]],
            "list_dense w": [[[[[b"x", b"y"]]], [[[b"", b""]]]], [1, 0]],
            "list_dense n": [np.zeros((2, 2, 0)), [2, 1]],
        })  # fmt: skip
        assert [each.dtype for each in found["list_dense w"]] == [object, np.int64]


def refused(text: str, run: Any, *inputs: Any, **attrs: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError) as error:
        run(*inputs, **attrs)
    assert error.value.message == text


@pytest.mark.parametrize("op", ["ParseSequenceExample", "ParseSequenceExampleV2", "ParseSingleSequenceExample"])
def test_wrong_records_are_named(ops: Any, op: str) -> None:
    single = op == "ParseSingleSequenceExample"

    def given(row: bytes) -> Any:
        return np.array(row, object) if single else vector(_ROWS[1], row)

    for called, name in ((None, "<unknown>"), ("n\xff".encode("latin-1"), "n\ufffd")):
        names = called if single or called is None else vector(b"first", called)
        types = f"Name: {name}, Feature list: d, Index: 1.  Data types don't match. Expected type: float"
        wrong = given(record(d=[[1.0, 2.0], [3]]))
        refused(types, parsed, ops, op, wrong, names, list_dense=[(b"d", _F, [2])])
        refused(types, parsed, ops, op, wrong, names, list_sparse=[(b"d", _F)])
        if op.endswith("V2"):
            refused(types, parsed, ops, op, wrong, names, list_ragged=[(b"d", _F, _I)])
        text = (
            f"Name: {name}, Feature list 'd' is required but could not be found.  Did you mean to include it in "
            "feature_list_dense_missing_assumed_empty or feature_list_dense_defaults?"
        )
        refused(text, parsed, ops, op, given(record(e=[[1.0]])), names, list_dense=[(b"d", _F, [2])], missing=[b"e"])
        number = "Number of float values" if single else "Number of values"
        for steps, place, count in (([[1.0], [2.0, 3.0, 4.0]], 0, 1), ([[1.0, 2.0], []], 1, 0),
                                    ([[1.0, 2.0], [1.0, 2.0, 3.0, 4.0]], 1, 4)):  # fmt: skip
            size = f"values size: {count} but output shape: [2]"
            text = f"Name: {name}, Key: d, Index: {place}.  {number} != expected.  {size}"
            refused(text, parsed, ops, op, given(record(d=steps)), names, list_dense=[(b"d", _F, [2])])
        odd = given(record(d=[[1.0, 2.0], [3.0]]))
        text = (
            "Feature list 'd' has an unexpected number of values.  Total values size: 3 is not consistent with output "
            "shape: [?,2]"
        )
        if single:
            text = f"Name: {name}, Key: d, Index: 1.  {number} != expected.  values size: 1 but output shape: [2]"
        refused(text, parsed, ops, op, odd, names, list_dense=[(b"d", _F, [2])])


def test_inputs_that_do_not_fit(ops: Any) -> None:
    rows, row, single = vector(*_ROWS), np.array(_ROWS[0], object), "ParseSingleSequenceExample"
    refused("Expected serialized to be a scalar, got shape: [2]", parsed, ops, single, rows, **_PLAIN)
    text = "Expected feature_list_dense_missing_assumed_empty to be a vector, got shape: []"
    refused(text, parsed, ops, single, row, more={"inputs": {1: np.array(b"d", object)}}, **_PLAIN)
    text = "Expected len(feature_list_dense_missing_assumed_empty to match Nfeature_list_dense"
    for flags in ([], [True, True]):
        refused(text, parsed, ops, "ParseSequenceExampleV2", rows, more={"inputs": {8: np.array(flags, bool)}}, **_WANT)
    for op in ("ParseSequenceExample", "ParseSequenceExampleV2"):
        text = "Expected serialized to be a scalar or vector, got shape: [1,2]"
        refused(text, parsed, ops, op, rows[None], **_PLAIN)
        text = "Expected names have the same shape as serialized: name.shape=[1], serialized.shape=[2]"
        refused(text, parsed, ops, op, rows, vector(b"n"), **_PLAIN)
    for op in ("ParseSequenceExample", "ParseSequenceExampleV2", single):
        given = row if op == single else rows
        for attr in ("context_dense_shapes", "feature_list_dense_shapes"):
            text = f"{attr}[0] has unknown rank or unknown inner dimensions: {TensorShape(None)}"
            refused(text, parsed, ops, op, given, more={attr: [TensorShape(None)]}, **_PLAIN)
        assert parsed(ops, op, given, **_PLAIN)
