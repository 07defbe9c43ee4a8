"""Programs of datasets without functions, and of files: an iterator's elements to the end, checkpoints, readers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from support.program_net.program import FOLDER
from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from support.program_net.program import Program

F, INT, LONG, S = dtypes.float32, dtypes.int32, dtypes.int64, dtypes.string


class _Data:
    """A dataset under way: its node, the types and shapes of its components."""

    def __init__(self, p: Program, node: Any, types: list[Any], shapes: list[TensorShape]) -> None:
        self.p, self.node, self.types, self.shapes = p, node, types, shapes

    def then(
        self, op: str, *inputs: Any, shapes: list[TensorShape] | None = None, types: Any = None, **attrs: Any
    ) -> _Data:
        shapes = self.shapes if shapes is None else shapes
        key = "Toutput_types" if op.startswith("Padded") else "output_types"
        made = self.p.step(op, self.node, *inputs, **{key: types or self.types}, output_shapes=shapes, **attrs)
        return _Data(self.p, made, types or self.types, shapes)


def _source(p: Program) -> _Data:
    d = p.d
    way = d.choice(("range", "range", "slices", "tensor", "two", "list"))
    if way == "range":
        ends = [np.int64(each) for each in d.choice(((0, 5, 1), (2, 9, 3), (5, 0, -2), (0, 7, 1), (3, 3, 1)))]
        if d.maybe(0.03):
            ends[2] = np.int64(0)
        shapes = [TensorShape([])]
        return _Data(p, p.step("RangeDataset", *ends, output_types=[LONG], output_shapes=shapes), [LONG], shapes)
    types = [d.choice((F, INT, S, LONG)) for _ in range(2 if way == "two" else 1)]
    inner = d.shape(0, 1)
    if way == "list":
        shapes = [TensorShape(inner)]
        values = [d.array(types[0], inner) for _ in range(3)]
        return _Data(p, p.step("ListDataset", *values, output_types=types, output_shapes=shapes), types, shapes)
    count = d.randint(0, 5) if way != "tensor" else None
    values = [d.array(each, (*(() if count is None else (count,)), *inner)) for each in types]
    shapes = [TensorShape(inner)] * len(types)
    op = "TensorDataset" if way == "tensor" else "TensorSliceDataset"
    return _Data(p, p.step(op, *values, Toutput_types=types, output_shapes=shapes), types, shapes)


def _batched(data: _Data, rank: int = 1) -> list[TensorShape]:
    return [TensorShape([None] * rank + s.as_list()) if s.rank is not None else s for s in data.shapes]


def _changed(p: Program, data: _Data) -> _Data:
    d = p.d
    number = np.int64
    way = d.choice(
        (
            "batch",
            "batch",
            "padded",
            "repeat",
            "take",
            "skip",
            "shard",
            "concatenate",
            "prefetch",
            "shuffle",
            "unbatch",
            "zip",
            "window",
            "cache",
            "rebatch",
            "sliding",
            "cardinality",
            "unique",
            "options",
            "private",
            "directed",
            "sparse",
            "shuffles",
            "sampling",
            "filter",
            "latency",
            "ignore",
        )
    )
    is_plain = all(s.rank is not None for s in data.shapes)
    if way == "batch":
        size, op = (
            d.choice((1, 2, 3, 0 if d.maybe(0.1) else 2)),
            d.choice(("BatchDataset", "BatchDatasetV2", "ParallelBatchDataset")),
        )
        more = [np.bool_(d.maybe())] if op != "BatchDataset" else []
        more = [number(2), *more] if op == "ParallelBatchDataset" else more
        return data.then(op, number(size), *more, shapes=_batched(data))
    if way == "padded" and is_plain:
        sizes = [
            np.array([-1 if d.maybe(0.4) else (s or 1) + d.randint(0, 2) for s in each.as_list()], np.int64)
            for each in data.shapes
        ]
        pads = [d.array(each, ()) for each in data.types]
        return data.then(
            "PaddedBatchDatasetV2",
            number(d.choice((2, 3))),
            *sizes,
            *pads,
            np.bool_(d.maybe()),
            shapes=_batched(data),
            N=len(sizes),
        )
    if way in ("repeat", "take", "skip"):
        return data.then(
            {"repeat": "RepeatDataset", "take": "TakeDataset", "skip": "SkipDataset"}[way],
            number(d.choice((0, 1, 2, 3, -1 if way != "repeat" else 2))),
        )
    if way == "shard":
        return data.then(
            "ShardDataset",
            number(d.choice((1, 2, 3))),
            number(d.choice((0, 1, 2 if d.maybe(0.3) else 0))),
            require_non_empty=d.maybe(0.2),
        )
    if way == "concatenate":
        return data.then("ConcatenateDataset", data.then("TakeDataset", number(2)).node)
    if way == "prefetch":
        return data.then("PrefetchDataset", number(d.choice((0, 1, 3))))
    if way == "shuffle":
        return data.then(
            "ShuffleDataset",
            number(d.choice((1, 2, 10))),
            number(d.randint(1, 9)),
            number(d.randint(1, 9)),
            reshuffle_each_iteration=False,
        )
    if way == "shuffles":
        return data.then(
            "ShuffleAndRepeatDataset",
            number(d.choice((1, 3))),
            number(d.randint(1, 9)),
            number(d.randint(1, 9)),
            number(2),
            reshuffle_each_iteration=d.maybe(),
        )
    if way == "unbatch" and all(s.rank for s in data.shapes):
        return data.then("UnbatchDataset", shapes=[TensorShape(s.as_list()[1:]) for s in data.shapes])
    if way == "zip":
        other = _source(p)
        made = p.step(
            "ZipDataset",
            data.node,
            other.node,
            N=2,
            output_types=[*data.types, *other.types],
            output_shapes=[*data.shapes, *other.shapes],
        )
        return _Data(p, made, [*data.types, *other.types], [*data.shapes, *other.shapes])
    if way == "cache":
        return data.then("CacheDataset", np.array(b"" if d.maybe() else FOLDER + b"/cache", object))
    if way == "rebatch" and all(s.rank for s in data.shapes):
        return data.then(
            "RebatchDatasetV2",
            np.array(d.choice(([2], [1, 2], [3])), np.int64),
            np.bool_(d.maybe()),
            shapes=[TensorShape([None, *s.as_list()[1:]]) for s in data.shapes],
        )
    if way == "sliding":
        return data.then(
            "SlidingWindowDataset",
            number(d.choice((1, 2, 3))),
            number(d.choice((1, 2))),
            number(d.choice((1, 2))),
            drop_remainder=d.maybe(),
            shapes=_batched(data),
        )
    if way == "cardinality":
        return data.then("AssertCardinalityDataset", number(d.choice((5, 3, 2))))
    if way == "unique" and len(data.types) == 1 and data.types[0] in (INT, LONG, S) and data.shapes[0].rank == 0:
        return data.then("UniqueDataset")
    if way == "options":
        op = d.choice(("OptionsDataset", "ModelDataset", "FinalizeDataset", "NonSerializableDataset"))
        return data.then(op, **({"serialized_options": b""} if op == "OptionsDataset" else {}))
    if way == "private":
        return data.then(d.choice(("PrivateThreadPoolDataset", "MaxIntraOpParallelismDataset")), number(1))
    if way == "directed":
        picks = p.step(
            "TensorSliceDataset",
            np.array(d.ints(6, 0, 1), np.int64),
            Toutput_types=[LONG],
            output_shapes=[TensorShape([])],
        )
        other = data.then("TakeDataset", number(1))
        made = p.step(
            "DirectedInterleaveDataset",
            picks,
            data.node,
            other.node,
            N=2,
            output_types=data.types,
            output_shapes=data.shapes,
            stop_on_empty_dataset=d.maybe(),
        )
        return _Data(p, made, data.types, data.shapes)
    if way == "sampling":
        return data.then(
            "SamplingDataset", np.float32(d.choice((0.5, 1.0, 0.0))), number(d.randint(1, 9)), number(d.randint(1, 9))
        )
    if way == "ignore":
        return data.then("IgnoreErrorsDataset")
    return data


def datasets(p: Program) -> None:
    """A chain of datasets, and its elements, with one beyond the end now and then."""
    d = p.d
    data = _source(p)
    for _ in range(d.randint(0, 3)):
        data = _changed(p, data)
    how = {"output_types": data.types, "output_shapes": data.shapes}
    if d.maybe(0.3):
        p.step("DatasetCardinality", data.node)
    if d.maybe(0.1):
        p.step("DatasetToSingleElement", data.node, **how)
        return
    iterator = p.step("IteratorV2", shared_name=b"it", **how)
    p.step("MakeIterator", data.node, iterator)
    for _ in range(d.randint(1, 6)):
        if d.maybe(0.3):
            optional = p.step("IteratorGetNextAsOptional", iterator, **how)
            p.step("OptionalHasValue", optional)
            if d.maybe(0.5):
                p.step("OptionalGetValue", optional, **how)
        else:
            p.step("IteratorGetNext", iterator, **how)


def _words(p: Program, *values: bytes) -> np.ndarray:
    made = np.empty(len(values), object)
    made[:] = values
    return made


def _one(value: bytes) -> np.ndarray:
    return np.array(value, object)


def checkpoints(p: Program) -> None:
    """Tensors and slices of them, written and read."""
    d = p.d
    types = [d.choice((F, INT, S, LONG)) for _ in range(d.randint(1, 3))]
    shapes = [tuple(max(1, size) for size in d.shape(0, 2)) for _ in types]
    names = [b"n%d" % k for k in range(len(types))]
    values = [d.array(*each) for each in zip(types, shapes, strict=True)]
    slices = [b"" for _ in types]
    if d.maybe():
        prefix = _one(FOLDER + b"/ckpt")
        p.step("SaveV2", prefix, _words(p, *names), _words(p, *slices), *values, dtypes=types)
        wanted = d.sample(range(len(types)), d.randint(1, len(types)))
        part = [_slice(p, shapes[k]) if d.maybe(0.3) else b"" for k in wanted]
        kinds = [types[k] if d.maybe(0.95) else dtypes.bool_ for k in wanted]
        asked = [names[k] if d.maybe(0.95) else b"missing" for k in wanted]
        p.step("RestoreV2", prefix, _words(p, *asked), _words(p, *part), dtypes=kinds)
        return
    file = _one(FOLDER + b"/old")
    p.step("Save", file, _words(p, *names), *values, T=types)
    at = d.randrange(len(types))
    if d.maybe():
        p.step(
            "Restore",
            file,
            _one(names[at] if d.maybe(0.95) else b"missing"),
            dt=types[at] if d.maybe(0.95) else dtypes.bool_,
        )
    else:
        p.step(
            "RestoreSlice", file, _one(names[at]), _one(_slice(p, shapes[at]) if d.maybe(0.7) else b""), dt=types[at]
        )


def _slice(p: Program, shape: tuple[int, ...]) -> bytes:
    d = p.d
    if not shape:
        return b""
    parts = []
    for size in shape:
        start = d.randint(0, size - 1)
        parts.append(d.choice((b"-", b"%d,%d" % (start, d.randint(1, size - start) + d.maybe(0.05)))))
    return b" ".join(b"%d" % size for size in shape) + b" " + b":".join(parts)


def files(p: Program) -> None:
    """What is written, read whole, by patterns and by readers."""
    d = p.d
    text = d.choice((b"a\nbb\n\nccc", b"one\r\ntwo\r\n", b"", b"0123456789", b"x\n"))
    name = FOLDER + b"/file"
    p.step("WriteFile", _one(name), _one(text))
    if d.maybe(0.3):
        p.step("ReadFile", _one(name if d.maybe(0.9) else name + b"s"))
        return
    kind = d.choice(("TextLineReaderV2", "WholeFileReaderV2", "FixedLengthRecordReaderV2", "IdentityReaderV2"))
    attrs: dict[str, Any] = {}
    if kind.startswith("Text"):
        attrs = {"skip_header_lines": d.choice((0, 1))}
    if kind.startswith("Fixed"):
        attrs = {
            "record_bytes": d.choice((2, 3)),
            "header_bytes": d.choice((0, 1)),
            "footer_bytes": d.choice((0, 1)),
            "hop_bytes": d.choice((0, 1)),
        }
    queue = p.step("FIFOQueueV2", component_types=[S], shapes=[TensorShape([])], shared_name=b"q")
    p.step("QueueEnqueueV2", queue, _one(name), Tcomponents=[S])
    if d.maybe(0.4):
        p.step("QueueEnqueueV2", queue, _one(name), Tcomponents=[S])
    p.step("QueueCloseV2", queue)
    reader = p.step(kind, shared_name=b"r", **attrs)
    for _ in range(d.randint(1, 2)):
        then = d.choice(("one", "many", "counts", "reset" if d.maybe(0.3) else "one"))
        if then == "one":
            _, value = p.step("ReaderReadV2", reader, queue, fetched=False)
            p.step("Identity", value, T=S)
        elif then == "many":
            _, value = p.step("ReaderReadUpToV2", reader, queue, np.int64(d.randint(1, 3)), fetched=False)
            p.step("Identity", value, T=S)
        elif then == "reset":
            p.step("ReaderResetV2", reader)
        p.step("ReaderNumRecordsProducedV2", reader)
        p.step("ReaderNumWorkUnitsCompletedV2", reader)


FAMILIES = {each.__name__: each for each in (datasets, checkpoints, files)}
