"""Callables made of a CallableOptions message: names in, names out. Called by base_session.py.

`Session.make_callable` is the one for tensors of the graph. Follows BaseSession._Callable of TF 1.15's
client/session.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.session.base_session import BaseSession
    from tenfold_protos.config_pb2 import CallableOptions


def from_options(session: BaseSession, options: CallableOptions) -> Callable[..., list[Any]]:
    """A function of the values of `options.feed` that gives the list of values of `options.fetch`.

    With `run_metadata=` it fills that. Raises UnimplementedError for connected tensors; the function TypeError for
    another number of values, and what a step raises.
    """
    if options.tensor_connection:
        raise errors.UnimplementedError(None, None, "CallableOptions.tensor_connection is not served.")
    feeds, fetches = list(options.feed), list(options.fetch)
    targets = [session.graph.get_operation_by_name(name) for name in options.target]
    step_options = options.run_options if options.HasField("run_options") else None

    def run_step(*values: Any, run_metadata: Any = None) -> list[Any]:
        if len(values) != len(feeds):
            raise TypeError(f"This callable takes {len(feeds)} feed values, but got {len(values)}")
        fed = dict(zip(feeds, values, strict=True))
        results: list[Any] = session.run([*fetches, *targets], fed, step_options, run_metadata)
        return results[: len(fetches)]

    return run_step
