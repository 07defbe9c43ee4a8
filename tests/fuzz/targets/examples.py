"""Serialized Examples and SequenceExamples: byte 0 picks the op and its features, the pieces are the rows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fuzz import pieces
from fuzz.harness import refusals
from fuzz.kernels import kernel, text
from fuzz.messages import mutated as message_mutated
from fuzz.messages import parsed
from tenfold_core import dtypes
from tenfold_core.memory_limits import limit_tensor
from tenfold_protos.example_pb2 import Example, SequenceExample

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    Reader: TypeAlias = Callable[[list[bytes]], None]

_I, _F, _S = dtypes.int64, dtypes.float32, dtypes.string
_NONE = np.empty(0, object)
_EMPTY = {_I: np.empty(0, np.int64), _F: np.empty(0, np.float32), _S: _NONE}


def _vector(*keys: bytes) -> Any:
    array = np.empty(len(keys), object)
    array[:] = keys
    return array


def _example_ops() -> Iterator[Reader]:
    """The ops on Examples: dense of fixed and of varying length, sparse, ragged."""
    scalars, vectors = (text(b"i"), text(b"s"), text(b"f")), (_vector(b"i"), _vector(b"f"), _vector(b"s", b"i"))
    for shape, default in (([], np.array(1.0, np.float32)), ([2], _EMPTY[_F]), ([None, 2], np.zeros(1, np.float32))):
        batch = kernel("ParseExample", Nsparse=2, Ndense=1, sparse_types=[_I, _S], Tdense=[_F], dense_shapes=[shape])
        yield partial(_of_batch, batch, (_NONE, *scalars, default))
        one = kernel(
            "ParseSingleExample",
            num_sparse=2, sparse_keys=["i", "s"], sparse_types=[_I, _S], dense_keys=["f"], Tdense=[_F],
            dense_shapes=[shape],
        )  # fmt: skip
        yield partial(_of_one, one, (default,))
        second = kernel(
            "ParseExampleV2",
            num_sparse=1, sparse_types=[_I], Tdense=[_F], dense_shapes=[shape], ragged_value_types=[_S, _I],
            ragged_split_types=[dtypes.int32, _I],
        )  # fmt: skip
        yield partial(_of_batch, second, (_NONE, *vectors, default))
        yield partial(_of_one, second, (_NONE, *vectors, default))


def _sequence_ops() -> Iterator[Reader]:
    default = np.array(0.5, np.float32)
    batch = kernel(
        "ParseSequenceExample",
        feature_list_dense_missing_assumed_empty=["lf"], context_sparse_keys=["i"], context_dense_keys=["f"],
        feature_list_sparse_keys=["ls"], feature_list_dense_keys=["lf"], Ncontext_sparse=1, Ncontext_dense=1,
        Nfeature_list_sparse=1, Nfeature_list_dense=1, context_sparse_types=[_I], Tcontext_dense=[_F],
        feature_list_dense_types=[_F], context_dense_shapes=[[]], feature_list_sparse_types=[_S],
        feature_list_dense_shapes=[[2]],
    )  # fmt: skip
    yield partial(_of_batch, batch, (_NONE, default))
    second = kernel(
        "ParseSequenceExampleV2",
        Ncontext_sparse=1, Tcontext_dense=[_F], context_sparse_types=[_I], context_ragged_value_types=[_S],
        context_ragged_split_types=[_I], context_dense_shapes=[[]], Nfeature_list_sparse=1, Nfeature_list_dense=1,
        feature_list_dense_types=[_F], feature_list_sparse_types=[_S], feature_list_ragged_value_types=[_I],
        feature_list_ragged_split_types=[dtypes.int32], feature_list_dense_shapes=[[]],
    )  # fmt: skip
    keys = [_vector(key) for key in (b"i", b"f", b"s", b"ls", b"lf", b"li")]
    yield partial(_of_batch, second, (_NONE, *keys, np.array([True]), default))
    yield partial(_of_one, second, (_NONE, *keys, np.array([True]), default))


def _of_batch(run: Callable[..., Any], more: tuple[Any, ...], rows: list[bytes]) -> None:
    run(_vector(*rows), *more)


def _of_one(run: Callable[..., Any], more: tuple[Any, ...], rows: list[bytes]) -> None:
    run(text(rows[0]), *more)


_OPS = [*_example_ops(), *_sequence_ops()]
_FIRST_SEQUENCE = 12


def one_input(data: bytes) -> None:
    if not data:
        return
    limit_tensor(16 << 20)
    rows = pieces.split(data[1:])[:20] or [b""]
    with refusals():
        _OPS[data[0] % len(_OPS)](rows)


def mutated(data: bytes, chance: random.Random) -> bytes:
    how = data[:1] or b"\0"
    if chance.random() < 0.1:
        how = bytes((chance.randrange(len(_OPS)),))
    kind = Example if how[0] % len(_OPS) < _FIRST_SEQUENCE else SequenceExample

    def changed(row: bytes, chance: random.Random) -> bytes:
        message = parsed(kind, row)
        message_mutated(message, chance)
        return message.SerializePartialToString()

    return how + pieces.join(pieces.mutated(pieces.split(data[1:]), chance, changed))


def seeds() -> Iterator[bytes]:
    for number in range(len(_OPS)):
        if number < _FIRST_SEQUENCE:
            floats = (1, 2, 4)[number // 4]
            row, other = _example(floats), Example()
            other.features.feature["f"].float_list.value.extend([3] * min(floats, 2))
        else:
            row = other = _sequence(2 if number == _FIRST_SEQUENCE else 1)
        yield bytes((number,)) + pieces.join([row.SerializeToString(), other.SerializeToString()])


def _example(floats: int) -> Any:
    example = Example()
    features = example.features.feature
    features["i"].int64_list.value.extend([1, 2])
    features["f"].float_list.value.extend([0.5] * floats)
    features["s"].bytes_list.value.extend([b"a", b""])
    return example


def _sequence(floats: int) -> Any:
    sequence = SequenceExample()
    context, lists = sequence.context.feature, sequence.feature_lists.feature_list
    context["i"].int64_list.value.append(3)
    context["s"].bytes_list.value.append(b"x")
    for _ in range(2):
        lists["lf"].feature.add().float_list.value.extend([1] * floats)
        lists["ls"].feature.add().bytes_list.value.append(b"y")
        lists["li"].feature.add().int64_list.value.append(4)
    return sequence
