"""`tf.profiler.profile` and `Profiler`: parameters, float operations, times and bytes of a graph's nodes.

figures.py collects them, scope_view.py and op_view.py show them. As TensorFlow 1.15's profiler/model_analyzer.py; the
views "graph" and "code", advice and files for pprof are left out: `Timeline` and `tenfold trace` show where a step's
time goes.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NoReturn

from tenfold import gfile
from tenfold.graph import get_default_graph
from tenfold.profiler import op_view, scope_view
from tenfold.profiler.figures import GraphFigures
from tenfold.profiler.option_builder import ProfileOptionBuilder
from tenfold_core import errors
from tenfold_protos.tfprof_log_pb2 import OpLogEntry, OpLogProto

if TYPE_CHECKING:
    from tenfold.graph import Graph
    from tenfold.profiler.option_builder import Options
    from tenfold_protos.config_pb2 import RunMetadata
    from tenfold_protos.tfprof_output_pb2 import GraphNodeProto, MultiGraphNodeProto

__all__ = ["Profiler", "advise", "profile", "write_op_log"]

_VIEWS = {"scope": scope_view.profile, "op": op_view.profile}
_DOC = {
    "scope": "each line is a node or a scope of names: its own figure / the sum with all below it",
    "op": "each line is a type of op: its figure (share of it and the types after it, its own share)",
}


def _left_out(what: str) -> NoReturn:
    raise errors.UnimplementedError(
        None,
        None,
        f"tf.profiler's {what} is not part of Tenfold: use cmd 'scope' or 'op', and for where a step's time goes "
        "tf.profiler.Timeline or `tenfold trace`",
    )


def _show(figures: GraphFigures, cmd: str, options: Options) -> Any:
    if cmd not in _VIEWS:
        if cmd in ("graph", "code"):
            _left_out(f"view '{cmd}'")
        raise errors.InvalidArgumentError(None, None, f"unknown cmd: {cmd}; there are {sorted(_VIEWS)}\n")
    kind, _, target = str(options.get("output", "stdout")).partition(":")
    if kind in ("timeline", "pprof"):
        _left_out(f"output '{kind}'")
    if kind not in ("stdout", "file", "none"):
        raise errors.InvalidArgumentError(
            None, None, f"E.g. Unknown output type: {kind}, Valid types: file,none,stdout"
        )
    step = options.get("step", -1)
    if step >= 0 and step not in figures.steps:
        raise errors.InvalidArgumentError(
            None, None, f"Options -step={step} not found. Available steps: {sorted(figures.steps)}"
        )
    proto, text = _VIEWS[cmd](figures.nodes, options)
    report = f"\nDoc:\n{cmd}: {_DOC[cmd]}\n\nProfile:\n{text}"
    if options.get("dump_to_file"):
        kind, target = "file", f"outfile={options['dump_to_file']}"
    if kind == "file":
        if not target.startswith("outfile="):
            raise errors.InvalidArgumentError(None, None, f"output 'file' needs outfile=<path>, there is {target!r}")
        with gfile.GFile(target.removeprefix("outfile="), "w") as file:
            file.write(report)
    elif kind == "stdout":
        print(f"\n==================Model Analysis Report======================\n{report}", flush=True)
        print("======================End of Report==========================", flush=True)
    return proto


def profile(
    graph: Graph | None = None,
    run_meta: RunMetadata | None = None,
    op_log: OpLogProto | None = None,
    cmd: str = "scope",
    options: Options | None = None,
) -> GraphNodeProto | MultiGraphNodeProto:
    """The profile of `graph` (the default one), by scope or by type of op; times and bytes are those of `run_meta`.

    Writes a report as `options` say (built by ProfileOptionBuilder; without them, the parameters of trainable variables
    to the standard output), and returns its figures: `total_parameters`, `total_float_ops`, … As TensorFlow 1.15's
    `tf.profiler.profile`. Raises InvalidArgumentError for an unknown view, output or step, UnimplementedError for the
    views "graph" and "code" and for timelines and files of pprof.
    """
    figures = GraphFigures(graph or get_default_graph(), run_meta, op_log)
    if run_meta is not None and run_meta.HasField("step_stats"):
        figures.add_step(0, run_meta)
    found: GraphNodeProto | MultiGraphNodeProto = _show(
        figures, cmd, ProfileOptionBuilder.trainable_variables_parameter() if options is None else options
    )
    return found


class Profiler:
    """The profile of a graph over several traced steps. As TensorFlow 1.15's `tf.profiler.Profiler`."""

    def __init__(self, graph: Graph | None = None, op_log: OpLogProto | None = None) -> None:
        self._figures = GraphFigures(graph or get_default_graph(), None, op_log)

    def add_step(self, step: int, run_meta: RunMetadata) -> None:
        """Adds what a traced run measured, under a number that options may ask for."""
        self._figures.add_step(step, run_meta)

    def profile_name_scope(self, options: Options) -> GraphNodeProto:
        """The profile by scope, written as `options` say. Raises what `profile` raises."""
        found: GraphNodeProto = _show(self._figures, "scope", options)
        return found

    def profile_operations(self, options: Options) -> MultiGraphNodeProto:
        """The profile by type of op, written as `options` say. Raises what `profile` raises."""
        found: MultiGraphNodeProto = _show(self._figures, "op", options)
        return found

    def profile_graph(self, options: Options) -> NoReturn:
        """Raises UnimplementedError."""
        _left_out("view 'graph'")

    def profile_python(self, options: Options) -> NoReturn:
        """Raises UnimplementedError."""
        _left_out("view 'code'")

    def advise(self, options: Any = None) -> NoReturn:
        """Raises UnimplementedError."""
        _left_out("advice")

    def serialize_to_string(self) -> NoReturn:
        """Raises UnimplementedError: it is for a command of TensorFlow's that is not here."""
        _left_out("file of a profile")


def advise(graph: Graph | None = None, run_meta: RunMetadata | None = None, options: Any = None) -> NoReturn:
    """Raises UnimplementedError."""
    _left_out("advice")


def write_op_log(
    graph: Graph | None,
    log_dir: str,
    op_log: OpLogProto | None = None,
    run_meta: RunMetadata | None = None,
    add_trace: bool = True,
) -> None:
    """Writes the float operations and the types of the nodes as an OpLogProto, `log_dir`/tfprof_log. Blocks.

    Shapes that the graph does not know are those of `run_meta`. `add_trace` adds the calls that made each node.
    """
    graph = graph or get_default_graph()
    figures = GraphFigures(graph, run_meta, op_log)
    ids = {"none": 0}
    log = OpLogProto()
    for op in graph.get_operations():
        node = figures.nodes[op.name]
        types = sorted(node.types - {op.type})
        entry = OpLogEntry(name=op.name, float_ops=node.float_ops, types=types)
        for file, line, function, *_ in op.traceback if add_trace else ():
            entry.code_def.traces.add(
                file_id=ids.setdefault(str(file), len(ids)),
                lineno=int(line or -1),
                function_id=ids.setdefault(str(function), len(ids)),
            )
        if entry.float_ops or types or entry.HasField("code_def"):
            log.log_entries.append(entry)
    for text, number in ids.items():
        log.id_to_string[number] = text
    with gfile.GFile(os.path.join(log_dir, "tfprof_log"), "wb") as file:
        file.write(log.SerializeToString())
