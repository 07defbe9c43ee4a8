"""What fits the ops of examples in strings, of summaries and of file names. See cases.py."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from support.kernel_net.draw import objects
from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape
from tenfold_core.tensor_util import tensor_to_proto
from tenfold_protos import example_pb2, feature_pb2, summary_pb2

if TYPE_CHECKING:
    from support.kernel_net.draw import Draw


from support.kernel_net.recipes_string import words

Attrs = dict[str, Any]
F, INT, S = dtypes.float32, dtypes.int64, dtypes.string
WORDS = (
    b"",
    b"a",
    b"ab",
    b"abc",
    b" A b ",
    b"x,y,,z",
    b"\xc3\xa9t\xc3\xa9",
    b"aXbXc",
    b"\xff\xfe",
    b"12",
    b"a  b c",
    b"\xe2\x82\xac1",
)


def _csv(d: Draw, a: Attrs) -> list[Any]:
    kinds = [d.choice((F, dtypes.int32, INT, S, dtypes.float64)) for _ in range(d.randint(1, 3))]
    a["OUT_TYPE"], a["field_delim"] = kinds, d.choice((b",", b",", b";"))
    a["na_value"], a["use_quote_delim"] = d.choice((b"", b"NA")), d.maybe(0.8)
    texts = {F: (b"1.5", b"-2", b"", b"NA"), S: (b"ab", b'"a,b"', b'"a""b"', b"", b" x ", b'a"b', b"NA")}
    columns = list(kinds)
    a["select_cols"] = []
    if d.maybe(0.2):
        columns = [S, *columns]
        a["select_cols"] = list(range(1, len(columns)))
    rows = []
    for _ in range(d.randint(0, 3)):
        cells = [d.choice(texts.get(kind, (b"1", b"-2", b"", b"NA" if a["na_value"] else b"3"))) for kind in columns]
        if d.maybe(0.1):
            cells[-1] = d.choice((b"x", b'"', b'"a"b', b"1,2", b"99999999999"))
        rows.append(a["field_delim"].join(cells) + (b"\r\n" if d.maybe(0.1) else b""))
    defaults = [d.choice(((1,), (1,), (0,), ())) for _ in kinds]
    return [objects(rows) if rows else words(d, 0), *defaults]


def _parse_tensor(d: Draw, a: Attrs) -> list[Any]:
    a["out_type"] = d.choice((F, dtypes.int32, S, dtypes.bool_))
    made = tensor_to_proto(d.array(a["out_type"] if d.maybe(0.9) else INT, d.shape(0, 2)))
    return [made.SerializeToString(deterministic=True) if d.maybe(0.95) else b"odd"]


def _feature(d: Draw, kind: Any, count: int) -> Any:
    feature = feature_pb2.Feature()
    if kind is F:
        feature.float_list.value.extend(d.floats((count,)).tolist())
    elif kind is INT:
        feature.int64_list.value.extend(d.ints(count, -3, 300))
    else:
        feature.bytes_list.value.extend(d.choice(WORDS) for _ in range(count))
    return feature


class _Columns:
    """Keys with their types: sparse, dense of a shape, ragged."""

    def __init__(self, d: Draw, ragged: bool) -> None:
        keys = list(_KEYS)
        d.shuffle(keys)
        counts = d.choice(((1, 1, 0), (0, 2, 0), (2, 0, 0), (1, 1, 1), (0, 0, 1), (1, 2, 0)))
        self.sparse = [(keys.pop(), d.choice((F, INT, S))) for _ in range(counts[0])]
        self.dense = [(keys.pop(), d.choice((F, INT, S)), d.choice(((), (2,), (1, 2)))) for _ in range(counts[1])]
        self.ragged = [
            (keys.pop(), d.choice((F, INT, S)), d.choice((dtypes.int32, INT))) for _ in range(counts[2] * ragged)
        ]
        self.varies = [d.maybe(0.2) for _ in self.dense]

    def shapes(self) -> list[TensorShape]:
        return [
            TensorShape([None, 2] if open else shape)
            for (_, _, shape), open in zip(self.dense, self.varies, strict=True)
        ]

    def defaults(self, d: Draw) -> list[Any]:
        return [
            (() if open else ((0,) if d.maybe(0.4) else shape))
            for (_, _, shape), open in zip(self.dense, self.varies, strict=True)
        ]

    def fill(self, d: Draw, feature: Any) -> None:
        for key, kind, *_ in (*self.sparse, *self.ragged):
            if d.maybe(0.7):
                feature[key.decode()].CopyFrom(_feature(d, kind if d.maybe(0.97) else F, d.randint(0, 3)))
        for (key, kind, shape), open in zip(self.dense, self.varies, strict=True):
            if d.maybe(0.85):
                count = 2 * d.randint(0, 2) if open else math.prod(shape)
                feature[key.decode()].CopyFrom(_feature(d, kind if d.maybe(0.97) else S, count + d.maybe(0.04)))


def _example(d: Draw, columns: _Columns) -> bytes:
    made = example_pb2.Example()
    columns.fill(d, made.features.feature)
    data: bytes = made.SerializeToString(deterministic=True)
    return data if d.maybe(0.97) else b"odd"


def _keys(rows: list[Any]) -> np.ndarray:
    return objects([row[0] for row in rows])


def _texts(*rows: Any) -> Any:
    return objects(list(rows)) if rows else np.empty(0, object)


def _parse_example(d: Draw, a: Attrs) -> list[Any]:
    columns = _Columns(d, False)
    a["Nsparse"], a["Ndense"] = len(columns.sparse), len(columns.dense)
    a["sparse_types"], a["Tdense"] = [row[1] for row in columns.sparse], [row[1] for row in columns.dense]
    a["dense_shapes"] = columns.shapes()
    rows = [_example(d, columns) for _ in range(d.randint(0, 3))]
    names = _texts(*(b"n%d" % k for k in range(len(rows)))) if d.maybe(0.3) else _texts()
    return [
        _texts(*rows),
        names,
        *(row[0] for row in columns.sparse),
        *(row[0] for row in columns.dense),
        *columns.defaults(d),
    ]


def _parse_example_v2(d: Draw, a: Attrs) -> list[Any]:
    columns = _Columns(d, True)
    a["num_sparse"] = len(columns.sparse)
    a["sparse_types"], a["Tdense"] = [row[1] for row in columns.sparse], [row[1] for row in columns.dense]
    a["ragged_value_types"], a["ragged_split_types"] = [r[1] for r in columns.ragged], [r[2] for r in columns.ragged]
    a["dense_shapes"] = columns.shapes()
    rows = [_example(d, columns) for _ in range(d.randint(0, 3))]
    serialized = rows[0] if rows and d.maybe(0.3) else _texts(*rows)
    return [serialized, _texts(), *map(_keys, (columns.sparse, columns.dense, columns.ragged)), *columns.defaults(d)]


def _parse_single(d: Draw, a: Attrs) -> list[Any]:
    columns = _Columns(d, False)
    a["num_sparse"], a["sparse_keys"] = len(columns.sparse), [row[0] for row in columns.sparse]
    a["dense_keys"], a["dense_shapes"] = [row[0] for row in columns.dense], columns.shapes()
    a["sparse_types"], a["Tdense"] = [row[1] for row in columns.sparse], [row[1] for row in columns.dense]
    return [_example(d, columns), *columns.defaults(d)]


class _Lists:
    """Feature lists: sparse, dense, ragged ones."""

    def __init__(self, d: Draw, ragged: bool) -> None:
        self.sparse = [(b"s", d.choice((F, INT, S)))] if d.maybe() else []
        self.dense = [(b"t", d.choice((F, INT, S)), d.choice(((), (2,))))] if d.maybe(0.7) else []
        self.ragged = [(b"u", d.choice((F, INT, S)), d.choice((dtypes.int32, INT)))] if ragged and d.maybe() else []
        self.may_miss = d.maybe()

    def fill(self, d: Draw, lists: Any) -> None:
        for key, kind, *rest in (*self.sparse, *self.dense, *self.ragged):
            is_dense = bool(self.dense) and key == self.dense[0][0]
            if d.maybe(0.85 if is_dense else 0.6):
                for _ in range(d.randint(0, 2)):
                    count = math.prod(rest[0]) + d.maybe(0.03) if is_dense else d.randint(0, 2)
                    lists[key.decode()].feature.append(_feature(d, kind, count))


def _sequence(d: Draw, columns: _Columns, lists: _Lists) -> bytes:
    made = example_pb2.SequenceExample()
    columns.fill(d, made.context.feature)
    lists.fill(d, made.feature_lists.feature_list)
    data: bytes = made.SerializeToString(deterministic=True)
    return data if d.maybe(0.97) else b"odd"


def _sequence_attrs(a: Attrs, columns: _Columns, lists: _Lists) -> None:
    columns.varies = [False] * len(columns.dense)
    a["Ncontext_sparse"], a["Nfeature_list_sparse"] = len(columns.sparse), len(lists.sparse)
    a["Nfeature_list_dense"] = len(lists.dense)
    if "Ncontext_dense" in a:
        a["Ncontext_dense"] = len(columns.dense)
    a["context_sparse_types"], a["Tcontext_dense"] = [r[1] for r in columns.sparse], [r[1] for r in columns.dense]
    a["context_dense_shapes"], a["feature_list_dense_shapes"] = (
        columns.shapes(),
        [TensorShape(r[2]) for r in lists.dense],
    )
    a["feature_list_sparse_types"] = [r[1] for r in lists.sparse]
    a["feature_list_dense_types"] = [r[1] for r in lists.dense]


def _parse_sequence(d: Draw, a: Attrs) -> list[Any]:
    columns, lists = _Columns(d, False), _Lists(d, False)
    _sequence_attrs(a, columns, lists)
    a["context_sparse_keys"], a["context_dense_keys"] = [r[0] for r in columns.sparse], [r[0] for r in columns.dense]
    a["feature_list_sparse_keys"], a["feature_list_dense_keys"] = (
        [r[0] for r in lists.sparse],
        [r[0] for r in lists.dense],
    )
    a["feature_list_dense_missing_assumed_empty"] = [r[0] for r in lists.dense] if lists.may_miss else []
    rows = [_sequence(d, columns, lists) for _ in range(d.randint(0, 3))]
    return [_texts(*rows), _texts(), *columns.defaults(d)]


def _parse_sequence_v2(d: Draw, a: Attrs) -> list[Any]:
    is_one = d.maybe(0.3)  # of ragged ones TensorFlow then gives what was in its memory
    columns, lists = _Columns(d, not is_one), _Lists(d, not is_one)
    _sequence_attrs(a, columns, lists)
    a["context_ragged_value_types"], a["context_ragged_split_types"] = ([r[k] for r in columns.ragged] for k in (1, 2))
    a["feature_list_ragged_value_types"] = [r[1] for r in lists.ragged]
    a["feature_list_ragged_split_types"] = [r[2] for r in lists.ragged]
    rows = [_sequence(d, columns, lists) for _ in range(d.randint(0, 3))]
    serialized = rows[0] if rows and is_one else _texts(*rows)
    keys = (columns.sparse, columns.dense, columns.ragged, lists.sparse, lists.dense, lists.ragged)
    return [serialized, _texts(), *map(_keys, keys), [lists.may_miss] * len(lists.dense), *columns.defaults(d)]


def _parse_single_sequence(d: Draw, a: Attrs) -> list[Any]:
    columns, lists = _Columns(d, False), _Lists(d, False)
    _sequence_attrs(a, columns, lists)
    keys = [row[0] for rows in (columns.sparse, columns.dense, lists.sparse, lists.dense) for row in rows]
    missing = _keys(lists.dense) if lists.may_miss else _texts()
    return [_sequence(d, columns, lists), missing, *keys, *columns.defaults(d), b"name"]


def _shard(d: Draw, a: Attrs) -> list[Any]:
    return [b"file", d.randint(0, 99), d.choice((100, 5))]


def _shards(d: Draw, a: Attrs) -> list[Any]:
    return [b"file", d.choice((100, 5))]


def _scalars(d: Draw, a: Attrs) -> list[Any]:
    shape = d.choice(((), (2,), (2, 2)))
    return [words(d, *shape, of=(b"loss", b"x")), shape]


def _histogram(d: Draw, a: Attrs) -> list[Any]:
    return [b"tag", d.choice((d.shape(0, 2), (9,)))]


def _summary(d: Draw) -> bytes:
    made = summary_pb2.Summary()
    made.value.add(tag=d.choice(("a", "b", "c", "d")), simple_value=1.5)
    data: bytes = made.SerializeToString(deterministic=True)
    return data if d.maybe(0.95) else b"odd"


def _merge(d: Draw, a: Attrs) -> list[Any]:
    a["N"] = d.choice((1, 2, 3))
    return [
        _texts(*(_summary(d) for _ in range(d.randint(0, 2)))) if d.maybe(0.3) else _summary(d) for _ in range(a["N"])
    ]


def _tensor_summary(d: Draw, a: Attrs) -> list[Any]:
    a["T"] = d.choice((F, dtypes.int32, S))
    shape = d.shape(0, 2)
    if "description" in a:
        return [shape]
    metadata = summary_pb2.SummaryMetadata(display_name="n").SerializeToString() if d.maybe(0.9) else b"odd"
    return [b"tag", shape, metadata]


def _json(d: Draw, a: Attrs) -> list[Any]:
    of = (
        b'{"features": {"feature": {"a": {"int64List": {"value": ["1", "2"]}}}}}',
        b'{"features": {"feature": {"b": {"floatList": {"value": [1.5]}}}}}',
        b'{"features": {"feature": {"c": {"bytesList": {"value": ["YWI="]}}}}}', b"{}",
        *((b"odd", b'{"x": 1}', b'{"features": 3}') if d.maybe(0.3) else ()),
    )  # fmt: skip
    return [words(d, *d.shape(0, 1), of=of)]


_KEYS = (b"a", b"b", b"c", b"d")

RECIPES = {
    "DecodeCSV": _csv,
    "ParseTensor": _parse_tensor,
    "ParseExample": _parse_example,
    "ParseExampleV2": _parse_example_v2,
    "ParseSingleExample": _parse_single,
    "ParseSequenceExample": _parse_sequence,
    "ParseSequenceExampleV2": _parse_sequence_v2,
    "ParseSingleSequenceExample": _parse_single_sequence,
    "ShardedFilename": _shard,
    "ShardedFilespec": _shards,
    "ScalarSummary": _scalars,
    "HistogramSummary": _histogram,
    "MergeSummary": _merge,
    "TensorSummary": _tensor_summary,
    "TensorSummaryV2": _tensor_summary,
    "DecodeJSONExample": _json,
}
