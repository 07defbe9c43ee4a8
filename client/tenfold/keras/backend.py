"""`tf.keras.backend`: questions about tensors, Keras's constants, and the session that models run in."""

from __future__ import annotations

import atexit
import weakref
from typing import TYPE_CHECKING, Any

from tenfold.graph.default_stack import get_default_graph, get_default_session
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold.left_out import why
from tenfold.ops import array, math, variable_lists

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenfold.graph.tensor import Tensor

__all__ = [
    "batch_dot",
    "clear_session",
    "epsilon",
    "floatx",
    "get_session",
    "image_data_format",
    "int_shape",
    "is_sparse",
    "learning_phase",
    "ndim",
    "set_session",
]

_PHASE_KEY = ("__keras_learning_phase",)
#: The session of models where there is no default one.
_own: list[Any] = []
#: Session → ids of the variables that are known to have values in it.
_initialized: weakref.WeakKeyDictionary[Any, set[int]] = weakref.WeakKeyDictionary()


def is_sparse(tensor: Any) -> bool:
    """Whether it is a SparseTensor."""
    return isinstance(tensor, SparseTensor)


def epsilon() -> float:
    """1e-7, what is added where a zero would do harm."""
    return 1e-7


def floatx() -> str:
    """The name of the usual type, "float32"."""
    return "float32"


def image_data_format() -> str:
    """Where channels are: "channels_last"."""
    return "channels_last"


def ndim(x: Any) -> int | None:
    """How many dimensions it has, None if that is unknown."""
    rank: int | None = x.shape.ndims
    return rank


def int_shape(x: Any) -> tuple[int | None, ...] | None:
    """Its shape, with None for unknown sizes; None if that is unknown."""
    return None if x.shape.ndims is None else tuple(x.shape.as_list())


def batch_dot(x: Any, y: Any, axes: Any = None) -> Tensor:
    """The product of each example of `x` and `y` over one axis of each. # (B, …, K), (B, …, K) → (B, …) or (B, 1)

    Raises ValueError for tensors of different ranks.
    """
    ranks = ndim(x), ndim(y)
    if ranks[0] is None or ranks[0] != ranks[1]:
        raise ValueError(f"batch_dot takes tensors of as many dimensions here, not {ranks[0]} and {ranks[1]}")
    rank = ranks[0]
    first, second = (rank - 1, rank - 2) if axes is None else (axes, axes) if isinstance(axes, int) else axes
    if rank == 2:
        product: Tensor = math.reduce_sum(x * y if first == second else array.transpose(x) * y, second, keepdims=True)
        return product
    product = math.matmul(x, y, transpose_a=first % rank != rank - 1, transpose_b=second % rank == rank - 1)
    return product


def learning_phase() -> Any:
    """A bool of the graph, which is fed True while a model trains."""
    holder = get_default_graph().get_collection_ref(_PHASE_KEY)
    if not holder:
        holder.append(array.placeholder_with_default(False, (), "keras_learning_phase"))
    return holder[0]


def get_session() -> Any:
    """The default session, otherwise that of `set_session`, otherwise one that is made for the default graph."""
    session = get_default_session()
    if session is not None:
        return session
    if not _own or _own[0].graph is not get_default_graph():
        from tenfold.session.session import Session

        set_session(Session())
        atexit.register(_own[0].close)
    return _own[0]


def set_session(session: Any) -> None:
    """Has models use it where there is no default one."""
    _own[:] = [session]


def clear_session() -> None:
    """Forgets the session, and begins a new default graph."""
    from tenfold.graph.default_stack import reset_default_graph

    for session in _own:
        session.close()
    _own.clear()
    reset_default_graph()


def initialize(session: Any, wanted: Iterable[Any]) -> None:
    """Gives those of the variables a first value that have none, as models do before they are used."""
    known = _initialized.setdefault(session, set())
    new = [each for each in {id(each): each for each in wanted}.values() if id(each) not in known]
    if not new:
        return
    with session.graph.as_default():
        there = session.run([variable_lists.is_variable_initialized(each) for each in new])
        session.run([each.initializer for each, is_there in zip(new, there, strict=True) if not is_there])
    known.update(map(id, new))


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(f"tf.keras.backend.{name} is not part of Tenfold: {why('keras.backend')}")
