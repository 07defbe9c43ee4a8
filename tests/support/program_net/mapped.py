"""Programs of datasets whose elements go through functions of the graph's library. They need a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import attr_value, dtypes, opdefs
from tenfold_core.tensor_shape import TensorShape
from tenfold_core.tensor_util import tensor_to_proto
from tenfold_protos.attr_value_pb2 import NameAttrList

if TYPE_CHECKING:
    from support.program_net.program import Program

LONG = dtypes.int64
_SCALAR = [TensorShape([])]
_ONE = {"output_types": [LONG], "output_shapes": _SCALAR}


def _function(p: Program, name: str, inputs: list[str], outputs: dict[str, tuple[Any, str]], *nodes: Any) -> None:
    """A function of int64s, but for inputs whose names begin with `data`, which are datasets.

    A node is (name, op, inputs, attributes); an output is (type, where it comes from).
    """
    made = p.graph.library.function.add()
    made.signature.name = name
    for each in inputs:
        kind = dtypes.variant if each.startswith("data") else LONG
        made.signature.input_arg.add(name=each, type=kind.as_datatype_enum)
    for key, (dtype, place) in outputs.items():
        made.signature.output_arg.add(name=key, type=dtype.as_datatype_enum)
        made.ret[key] = place
    for node_name, op, given, attrs in nodes:
        node = made.node_def.add(name=node_name, op=op, input=given)
        kinds = opdefs.get(op).attr_by_name
        known = {attr.name: attr.default for attr in opdefs.get(op).attrs if attr.has_default}
        for key, value in {**known, **attrs}.items():
            node.attr[key].CopyFrom(attr_value.to_proto(value, kinds[key].type))


def _constant(name: str, value: int) -> Any:
    return name, "Const", [], {"dtype": LONG, "value": tensor_to_proto(np.array(value, np.int64))}


def _library(p: Program) -> None:
    two, one, four = _constant("two", 2), _constant("one", 1), _constant("four", 4)
    number = {"T": LONG}
    _function(
        p,
        "twice",
        ["x"],
        {"y": (LONG, "sum:z:0")},
        two,
        one,
        ("product", "Mul", ["x", "two:output:0"], number),
        ("sum", "AddV2", ["product:z:0", "one:output:0"], number),
    )
    _function(
        p,
        "odd",
        ["x"],
        {"y": (dtypes.bool_, "is:z:0")},
        two,
        one,
        ("rest", "FloorMod", ["x", "two:output:0"], number),
        ("is", "Equal", ["rest:z:0", "one:output:0"], number),
    )
    _function(p, "parity", ["x"], {"y": (LONG, "rest:z:0")}, two, ("rest", "FloorMod", ["x", "two:output:0"], number))
    _function(p, "small", ["x"], {"y": (dtypes.bool_, "is:z:0")}, four, ("is", "Less", ["x", "four:output:0"], number))
    _function(p, "total", ["s", "x"], {"y": (LONG, "sum:z:0")}, ("sum", "AddV2", ["s", "x"], number))
    _function(
        p,
        "running",
        ["s", "x"],
        {"t": (LONG, "sum:z:0"), "y": (LONG, "product:z:0")},
        ("sum", "AddV2", ["s", "x"], number),
        ("product", "Mul", ["s", "x"], number),
    )
    _function(
        p,
        "ranged",
        ["x"],
        {"y": (dtypes.variant, "range:handle:0")},
        _constant("zero", 0),
        one,
        ("range", "RangeDataset", ["zero:output:0", "x", "one:output:0"], _ONE),
    )
    _function(p, "always_two", ["x"], {"y": (LONG, "two:output:0")}, two)
    _function(
        p,
        "batched",
        ["key", "data"],
        {"y": (dtypes.variant, "batch:handle:0")},
        two,
        (
            "batch",
            "BatchDataset",
            ["data", "two:output:0"],
            {"output_types": [LONG], "output_shapes": [TensorShape([None])]},
        ),
    )


def mapped(p: Program) -> None:
    """Numbers through one or two functions, to the end or until some are there."""
    d = p.d
    _library(p)
    numbers = [np.int64(each) for each in d.choice(((0, 5, 1), (1, 6, 1), (3, 0, -1), (0, 3, 1)))]
    data, shapes = p.step("RangeDataset", *numbers, **_ONE), _SCALAR
    for _ in range(d.randint(1, 2)):
        if shapes is _SCALAR:
            data, shapes = _through(p, data)
    if d.maybe(0.15) and shapes is _SCALAR:
        p.step("ReduceDataset", data, np.int64(10), f=NameAttrList(name="total"), Tstate=[LONG], Targuments=[], **_ONE)
        return
    how = {"output_types": [LONG], "output_shapes": shapes}
    if d.maybe(0.2):
        p.step("DatasetCardinality", data)
    iterator = p.step("IteratorV2", shared_name=b"it", **how)
    p.step("MakeIterator", data, iterator)
    for _ in range(d.randint(1, 4)):
        optional = p.step("IteratorGetNextAsOptional", iterator, **how)
        p.step("OptionalHasValue", optional)
    p.step("IteratorGetNext", iterator, **how)


def _through(p: Program, data: Any) -> tuple[Any, list[TensorShape]]:
    d, number = p.d, np.int64
    way = d.choice(("map", "filter", "flat", "interleave", "scan", "while", "window", "batch", "parallel", "several"))
    name = NameAttrList
    # metadata are what a client of 2.21 gives: to those of 1.15 a map has a known number of elements
    plain: dict[str, Any] = {"Targuments": [], "metadata": b"\n\1m", **_ONE}
    if way == "map":
        return p.step("MapDataset", data, f=name(name="twice"), **plain), _SCALAR
    if way == "parallel":
        return p.step(
            "ParallelMapDatasetV2", data, number(2), f=name(name="twice"), deterministic=b"true", **plain
        ), _SCALAR
    if way == "filter":
        return p.step("FilterDataset", data, predicate=name(name="odd"), **plain), _SCALAR
    if way == "flat":
        return p.step("FlatMapDataset", data, f=name(name="ranged"), **plain), _SCALAR
    if way in ("interleave", "several"):
        sizes = [number(d.choice((1, 2, 3))), number(d.choice((1, 2)))]
        if way == "interleave":
            return p.step("InterleaveDataset", data, *sizes, f=name(name="ranged"), **plain), _SCALAR
        op = d.choice(("ParallelInterleaveDatasetV2", "ParallelInterleaveDatasetV3", "ParallelInterleaveDatasetV4"))
        calls = number(d.choice((1, 1, 2, -1, 0 if d.maybe(0.3) else 1)))
        more = [number(1), number(1), calls] if op.endswith("V4") else [calls]
        how = {"sloppy": False} if op.endswith("V2") else {"deterministic": b"true"}
        return p.step(op, data, *sizes, *more, f=name(name="ranged"), **how, **plain), _SCALAR
    if way == "scan":
        return p.step(
            "ScanDataset", data, number(1), f=name(name="running"), Tstate=[LONG], Targuments=[], **_ONE
        ), _SCALAR
    if way == "while":
        return p.step("TakeWhileDataset", data, predicate=name(name="small"), Targuments=[], **_ONE), _SCALAR
    wide = [TensorShape([None])]
    if way == "window":
        keys = {
            "Tkey_func_other_arguments": [],
            "Treduce_func_other_arguments": [],
            "Twindow_size_func_other_arguments": [],
        }
        made = p.step(
            "GroupByWindowDataset",
            data,
            key_func=name(name="parity"),
            reduce_func=name(name="batched"),
            window_size_func=name(name="always_two"),
            output_types=[LONG],
            output_shapes=wide,
            **keys,
        )
        return made, wide
    made = p.step(
        "MapAndBatchDataset",
        data,
        number(2),
        number(2),
        np.bool_(d.maybe()),
        f=name(name="twice"),
        Targuments=[],
        output_types=[LONG],
        output_shapes=wide,
    )
    return made, wide


FAMILIES = {"mapped": mapped}
