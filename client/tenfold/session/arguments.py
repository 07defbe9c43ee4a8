"""The arguments of `Session(...)` and `run(...)` besides fetches and feeds: checked, copied, time-outs read.

A wrong type raises TypeError with TensorFlow's message, before any look-up or call. Called by base_session.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_protos import config_pb2

if TYPE_CHECKING:
    from tenfold.graph.graph import Graph

#: Shared by all steps without options; never written to.
_NO_OPTIONS = config_pb2.RunOptions()


def checked_target(target: object) -> str:
    if target is None:
        return ""
    if isinstance(target, bytes):
        return target.decode()
    if isinstance(target, str):
        return target
    hint = ""
    if isinstance(target, config_pb2.ConfigProto):
        hint = '. Did you do "Session(config)" instead of "Session(config=config)"?'
    raise TypeError(f'target must be a string, but got "{type(target).__name__}"{hint}')


def checked_graph(graph: object) -> Graph:
    from tenfold.graph.default_stack import get_default_graph
    from tenfold.graph.graph import Graph

    if graph is None:
        return get_default_graph()
    if not isinstance(graph, Graph):
        raise TypeError(f'graph must be a tf.Graph, but got "{type(graph).__name__}"')
    return graph


def checked_config(config: object) -> config_pb2.ConfigProto:
    """A copy: changing the caller's message later does not change the session."""
    copy = config_pb2.ConfigProto()
    if config is None:
        return copy
    if not isinstance(config, config_pb2.ConfigProto):
        raise TypeError(f'config must be a tf.ConfigProto, but got "{type(config).__name__}"')
    copy.CopyFrom(config)
    return copy


def check_options(options: object, run_metadata: object) -> None:
    if options is not None and not isinstance(options, config_pb2.RunOptions):
        raise TypeError(f'Argument `options` must be a tf.RunOptions, but got "{type(options).__name__}"')
    if run_metadata is not None and not isinstance(run_metadata, config_pb2.RunMetadata):
        raise TypeError(f'Argument `run_metadata` must be a tf.RunMetadata, but got "{type(run_metadata).__name__}"')


def step_timeout(options: config_pb2.RunOptions | None, config: config_pb2.ConfigProto) -> float | None:
    """Seconds from RunOptions, else from the session's config, else None."""
    milliseconds = options.timeout_in_ms if options is not None else 0
    milliseconds = milliseconds or config.operation_timeout_in_ms
    return milliseconds / 1000 if milliseconds > 0 else None


def with_timeout(options: config_pb2.RunOptions | None, timeout: float | None) -> config_pb2.RunOptions:
    """Options that tell the master the deadline, so that its answer can say what it was waiting for."""
    if timeout is None or (options is not None and options.timeout_in_ms):
        return options or _NO_OPTIONS
    bounded = config_pb2.RunOptions()
    if options is not None:
        bounded.CopyFrom(options)
    bounded.timeout_in_ms = max(1, int(timeout * 1000))
    return bounded
