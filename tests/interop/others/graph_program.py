"""Runs one graph that others made, with feeds made from a seed, and keeps what it gives. Called by graphs.py.

    python graph_program.py LIBRARY FILE OUT [CHOSEN]

LIBRARY is `tensorflow` or `tenfold`; FILE holds a GraphDef, MetaGraphDef, SavedModel or, in an event file, a graph.
Without CHOSEN it chooses feeds and fetches that work, and writes them to OUT with what they gave; with CHOSEN, such a
file, it runs the same. Variables and random numbers are fed as well: neither state nor seeds play a part. A run is fed
what its fetch needs and no more: a graph may have a placeholder for a whole data set that nothing takes.
"""

from __future__ import annotations

import importlib
import os
import pickle
import sys
import zlib
from typing import Any

import numpy as np

_VARIABLES = ("Variable", "VariableV2", "ReadVariableOp")
_RANDOM = ("RandomUniform", "RandomStandardNormal", "TruncatedNormal")
_GIVEN = ("Placeholder", "PlaceholderV2")
#: Ops whose values say nothing of the graph.
_DULL = ("Const", "NoOp", "ShardedFilename", "MergeSummary", "BroadcastGradientArgs", "Shape", *_GIVEN, *_VARIABLES)
#: Shapes to try for placeholders of which nothing is known, in this order.
_SHAPES: tuple[tuple[int, ...], ...] = (
    (),
    (2,),
    (2, 3),
    (1, 784),
    (1, 28, 28, 1),
    (1, 32, 32, 3),
    (1, 64, 64, 3),
    (1, 8),
)
_MOST_FETCHES = 10


def seeded(name: str, shape: tuple[int, ...], dtype: Any) -> Any:
    """The same values in every process: from the tensor's name."""
    rng = np.random.RandomState(zlib.crc32(name.encode()) & 0x7FFFFFFF)
    kind = np.dtype(dtype)
    if kind.kind == "O":
        return np.full(shape, b"0.5", object)
    if kind.kind == "b":
        return np.zeros(shape, bool)
    if kind.kind in "iu":
        return rng.randint(0, 2, shape).astype(kind)
    return rng.uniform(0.1, 0.9, shape).astype(kind)


def read_graph(tf: Any, library: str, path: str) -> None:
    """Puts the graph of a file into the default graph. Raises ValueError for an event file without one."""
    name = os.path.basename(path)
    if name == "saved_model.pb":
        loader = importlib.import_module(
            f"{library}{'.python' if library == 'tensorflow' else ''}.saved_model.loader_impl"
        )
        parse = getattr(loader, "parse_saved_model", None) or loader._parse_saved_model
        tf.train.import_meta_graph(parse(os.path.dirname(path)).meta_graphs[0], clear_devices=True)
    elif "tfevents" in name:
        found = [event.graph_def for event in tf.train.summary_iterator(path) if event.graph_def]
        if not found:
            raise ValueError("this event file has no graph")
        graph_def = tf.GraphDef.FromString(found[0])
        for node in graph_def.node:
            node.device = ""
        tf.import_graph_def(graph_def, name="")
    elif name.endswith((".meta", "meta_graph.pb")):
        with open(path, "rb") as file:
            tf.train.import_meta_graph(tf.MetaGraphDef.FromString(file.read()), clear_devices=True)
    else:
        graph_def = tf.GraphDef()
        with open(path, "rb") as file:
            data = file.read()
        if name.endswith(".pbtxt"):
            from google.protobuf import text_format

            text_format.Merge(data.decode(), graph_def)
        else:
            graph_def.ParseFromString(data)
        for node in graph_def.node:
            node.device = ""
        tf.import_graph_def(graph_def, name="")


def _dims(tensor: Any) -> list[Any] | None:
    return None if tensor.shape.ndims is None else tensor.shape.as_list()


def known_shape(tensor: Any, side: int = 32) -> tuple[int, ...] | None:
    """A shape that fits what the graph says of a tensor and of what takes it; None where it says nothing.

    Images of which it says how many channels they have get `side` rows and columns.
    """
    dims = _dims(tensor)
    if dims is not None:
        rest = 2 if len(dims) < 4 else 32
        return tuple(d if d is not None else (2 if i == 0 else rest) for i, d in enumerate(dims))
    for op in tensor.consumers():
        if op.type == "MatMul" and op.inputs[0] is tensor and (_dims(op.inputs[1]) or [None])[0]:
            return (2, op.inputs[1].shape.as_list()[0])
        if op.type == "Conv2D" and op.inputs[0] is tensor and (_dims(op.inputs[1]) or [None] * 3)[2]:
            return (1, side, side, op.inputs[1].shape.as_list()[2])
        if (
            op.type == "SoftmaxCrossEntropyWithLogits"
            and op.inputs[1] is tensor
            and (_dims(op.inputs[0]) or [None])[-1]
        ):
            return (1, op.inputs[0].shape.as_list()[1])
        out = _dims(op.outputs[0]) if op.type == "Reshape" and op.inputs[0] is tensor else None
        if out and out[1:]:
            return (1, int(np.prod([d or 1 for d in out[1:]])))
    return None


def _dtype(tensor: Any) -> Any:
    return tensor.dtype.base_dtype.as_numpy_dtype


def choose_feeds(graph: Any, session: Any, unknown: tuple[int, ...]) -> dict[str, Any]:
    """Values for placeholders, variables and random numbers; `unknown` is the shape where nothing is known."""
    feeds: dict[str, Any] = {}
    later = []
    for op in graph.get_operations():
        if op.outputs and not op.outputs[0].consumers():
            continue
        if op.type in (*_GIVEN, *_VARIABLES):
            tensor = op.outputs[0]
            shape = known_shape(tensor, _side(unknown))
            feeds[tensor.name] = seeded(tensor.name, unknown if shape is None else shape, _dtype(tensor))
        elif op.type in _RANDOM:
            later.append(op)
    for op in later:
        try:
            shape = session.run(op.inputs[0], needed(op.inputs[0], feeds))
        except Exception:
            continue
        feeds[op.outputs[0].name] = seeded(op.outputs[0].name, tuple(int(d) for d in shape), _dtype(op.outputs[0]))
    return feeds


def _side(unknown: tuple[int, ...]) -> int:
    """Of the images that are tried together with that shape."""
    return unknown[1] if len(unknown) == 4 else 32


def needed(fetch: Any, feeds: dict[str, Any]) -> dict[str, Any]:
    """The feeds that a tensor depends on."""
    found: dict[str, Any] = {}
    seen: set[Any] = set()
    ops: list[Any] = []

    def take(tensors: Any) -> None:
        for tensor in tensors:
            if tensor.name in feeds:
                found[tensor.name] = feeds[tensor.name]
            else:
                ops.append(tensor.op)

    take([fetch])
    while ops:
        op = ops.pop()
        if op not in seen:
            seen.add(op)
            take(op.inputs)
            ops.extend(op.control_inputs)
    return found


def _stateless(graph: Any, feeds: dict[str, Any], stateful: Any) -> set[Any]:
    """The operations whose values the feeds settle."""
    clean: set[Any] = {graph.get_tensor_by_name(name).op for name in feeds}
    loops = {op for op in graph.get_operations() if op.type in ("NextIteration", "Enter", "Merge", "Exit", "LoopCond")}
    for op in graph.get_operations():
        if (
            op not in clean
            and (op in loops or not stateful(op))
            and all(t.op in clean or t.op in loops for t in op.inputs)
        ):
            clean.add(op)
    return clean


def choose_fetches(graph: Any, feeds: dict[str, Any], stateful: Any) -> list[str]:
    """Tensors at the end of what the feeds settle, the last of the graph first."""
    clean = _stateless(graph, feeds, stateful)
    found = []
    for op in reversed(graph.get_operations()):
        if op not in clean or op.type in _DULL or op.type in _RANDOM or not op.outputs:
            continue
        for tensor in op.outputs:
            if tensor.name in feeds or tensor.dtype.base_dtype.name in ("resource", "variant"):
                continue
            if not any(user in clean and user.type not in _DULL for user in tensor.consumers()):
                found.append(tensor.name)
    return found


def main() -> None:
    library, path, out = sys.argv[1:4]
    tf = importlib.import_module(library)
    version = getattr(tf, "__version__", "")
    if library == "tensorflow" and version.startswith("2"):
        tf = tf.compat.v1
        tf.disable_eager_execution()
    with tf.Graph().as_default() as graph:
        read_graph(tf, library, path)
        producer = graph.graph_def_versions.producer
        if len(sys.argv) > 4:
            with open(sys.argv[4], "rb") as file:
                feeds, wanted, _ = pickle.load(file)
            with tf.Session() as session:
                values = {name: _run(graph, session, name, feeds) for name in wanted}
            result = feeds, values, producer
        else:
            result = (*choose(tf, graph), producer)
    with open(out, "wb") as file:
        pickle.dump(result, file, 2)


def choose(tf: Any, graph: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """(feeds, values by fetch) of the shape for unknown placeholders with which most can be run."""
    best: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    with tf.Session() as session:
        for shape in _SHAPES:
            feeds = choose_feeds(graph, session, shape)
            values: dict[str, Any] = {}
            failed = 0
            for name in choose_fetches(graph, feeds, lambda op: op.op_def is None or op.op_def.is_stateful):
                if len(values) >= _MOST_FETCHES or failed >= 3 * _MOST_FETCHES:
                    break
                try:
                    value = np.asarray(_run(graph, session, name, feeds))
                except Exception:
                    failed += 1
                    continue
                if value.size <= 1 << 22:
                    values[name] = value
            if len(values) > len(best[1]):
                best = feeds, values
            # with another one nothing would be fed in another shape
            if all(
                known_shape(op.outputs[0], 1) == known_shape(op.outputs[0], 2) is not None
                for op in graph.get_operations()
                if op.type in _GIVEN and op.outputs[0].consumers()
            ):
                break
    return best


def _run(graph: Any, session: Any, name: str, feeds: dict[str, Any]) -> Any:
    return session.run(name, needed(graph.get_tensor_by_name(name), feeds))


if __name__ == "__main__":
    main()
