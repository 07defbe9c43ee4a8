"""`tensorflow.python.eager.context`: always graph mode. What would begin eager execution says that there is none."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, NoReturn

from tenfold.compat import executing_eagerly, no_eager_execution

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["context", "eager_mode", "executing_eagerly", "graph_mode", "in_eager_mode", "in_graph_mode", "num_gpus"]

GRAPH_MODE, EAGER_MODE = 0, 1


@contextlib.contextmanager
def graph_mode() -> Iterator[None]:
    """Changes nothing: there is no other mode."""
    yield


def eager_mode() -> NoReturn:
    """Raises NotImplementedError."""
    no_eager_execution("context.eager_mode")


def in_graph_mode() -> bool:
    """Always True."""
    return True


in_eager_mode = executing_eagerly


def num_gpus() -> int:
    """How many GPUs this process sees."""
    from tenfold.session.inprocess import physical_gpus

    return len(physical_gpus())


class _Context:
    """What programs ask of the context of TensorFlow: whether it is eager, which devices it has."""

    def executing_eagerly(self) -> bool:
        return False

    in_eager_mode = executing_eagerly

    def num_gpus(self) -> int:
        return num_gpus()

    def devices(self) -> list[str]:
        from tenfold.compat.python.device_lib import list_local_devices

        return [each.name for each in list_local_devices()]


_context = _Context()


def context() -> Any:
    """The one context."""
    return _context


global_context = get_context = context
