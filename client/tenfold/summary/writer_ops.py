"""The ops that write summaries on a task, through the default writer of task_writers.py: `tf.contrib.summary`.

Each gives the operation to run, and writes only where recording is on; without a default writer it does nothing.
Follows TF 1.15's ops/summary_ops_v2.py in graph mode; summary_ops.py has the ops whose values a client writes.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tenfold.graph import (
    add_to_collection,
    control_dependencies,
    convert_to_tensor,
    device,
    get_collection,
    get_default_graph,
    get_default_session,
    name_scope,
)
from tenfold.graph.op_builder import apply_op
from tenfold.graph.tensor import Tensor
from tenfold.ops import array
from tenfold.ops.control_flow import no_op
from tenfold.ops.control_flow_cond import smart_cond
from tenfold.summary.summary_ops import _scope
from tenfold.summary.task_writers import defaults, summary_writer_initializer_op
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable

#: Collection of the ops made here.
_SUMMARIES_KEY = "_SUMMARY_V2"


def _written(name: str, tensor: Any, family: str | None, write: Callable[[Any, str, str], Any]) -> Any:
    """The op that writes a summary where recording is on. `write` gets the writer's handle, the tag, a name."""
    writer = defaults.writer
    if writer is None:
        return no_op()
    outer = get_default_graph().get_name_scope()

    def record() -> Tensor:
        with name_scope(f"{outer}/" if outer else None), _scope(name, family, [tensor]) as (tag, scope):
            written = write(writer._resource, tag, scope)
            with control_dependencies([written]):
                return array.constant(True)

    with device("cpu:0"):
        wanted = defaults.recording
        given = wanted() if callable(wanted) else wanted
        op = smart_cond(bool(given) if given is None else given, record, lambda: array.constant(False), name="")
    add_to_collection(_SUMMARIES_KEY, op)
    return op


def _step(step: Any) -> Any:
    if step is None:
        from tenfold.train.training_util import get_or_create_global_step

        return get_or_create_global_step()
    return step if isinstance(step, Tensor) else convert_to_tensor(step, dtypes.int64)


def _writes(op_type: str, name: str, tensor: Any, value: str, family: str | None, step: Any, **more: Any) -> Any:
    def write(writer: Any, tag: str, scope: str) -> Any:
        return apply_op(
            op_type, scope, writer=writer, step=_step(step), tag=tag, **{value: array.identity(tensor)}, **more
        )

    return _written(name, tensor, family, write)


def scalar(name: str, tensor: Any, family: str | None = None, step: Any = None) -> Any:
    """Writes one number; `step` is the global step by default. Gives the op to run."""
    return _writes("WriteScalarSummary", name, tensor, "value", family, step)


def histogram(name: str, tensor: Any, family: str | None = None, step: Any = None) -> Any:
    """Writes the distribution of a real tensor."""
    return _writes("WriteHistogramSummary", name, tensor, "values", family, step)


def image(
    name: str, tensor: Any, bad_color: Any = None, max_images: int = 3, family: str | None = None, step: Any = None
) -> Any:
    """Writes pictures of [batch, height, width, channels]; what is not finite has the colour `bad_color` (red)."""
    color = convert_to_tensor([255, 0, 0, 255] if bad_color is None else bad_color, dtypes.uint8)
    return _writes("WriteImageSummary", name, tensor, "tensor", family, step, bad_color=color, max_images=max_images)


def audio(
    name: str, tensor: Any, sample_rate: Any, max_outputs: int, family: str | None = None, step: Any = None
) -> Any:
    """Writes sounds of [batch, frames] or [batch, frames, channels]."""
    rate = convert_to_tensor(sample_rate, dtypes.float32)
    return _writes("WriteAudioSummary", name, tensor, "tensor", family, step, sample_rate=rate, max_outputs=max_outputs)


def generic(name: str, tensor: Any, metadata: Any = None, family: str | None = None, step: Any = None) -> Any:
    """Writes any tensor, with a SummaryMetadata, serialized or not."""
    text = b"" if metadata is None else metadata
    text = text.SerializeToString() if hasattr(text, "SerializeToString") else text
    return _writes("WriteSummary", name, tensor, "tensor", family, step, summary_metadata=text)


def graph(param: Any, step: Any = None, name: str | None = None) -> Any:
    """Writes the serialized GraphDef in the string tensor `param`. Raises TypeError for anything else."""
    if not isinstance(param, Tensor):
        raise TypeError(f"graph() needs a tf.Tensor (e.g. tf.placeholder) in graph mode, but was: {type(param)}")
    if defaults.writer is None:
        return no_op()
    with device("cpu:0"):
        return apply_op(
            "WriteGraphSummary",
            name,
            writer=defaults.writer._resource,
            step=_step(step),
            tensor=array.identity(param),
        )


def import_event(tensor: Any, name: str | None = None) -> Any:
    """Writes the serialized Event in a string tensor as it is. Raises RuntimeError without a default writer."""
    if defaults.writer is None:
        raise RuntimeError("No default tf.contrib.summary.SummaryWriter found")
    return apply_op("ImportEvent", name, writer=defaults.writer._resource, event=tensor)


def eval_dir(model_dir: str, name: str | None = None) -> str:
    """The folder for the summaries of an evaluation."""
    return os.path.join(model_dir, "eval" if not name else f"eval_{name}")


def all_v2_summary_ops() -> list[Any]:
    """The ops of this graph that write summaries, without those of `graph` and `import_event`."""
    return get_collection(_SUMMARIES_KEY)


all_summary_ops = all_v2_summary_ops


def initialize(graph: Any = None, session: Any = None) -> None:
    """Opens the writers of this graph, and writes `graph`, a Graph or a GraphDef, if given.

    Raises RuntimeError without a default writer, ValueError without a session.
    """
    if defaults.writer is None:
        raise RuntimeError("No default tf.contrib.summary.SummaryWriter found")
    session = get_default_session() if session is None else session
    if session is None:
        raise ValueError("session must be passed if no default session exists")
    session.run(summary_writer_initializer_op())
    if graph is not None:
        definition = graph.as_graph_def(add_shapes=True) if hasattr(graph, "as_graph_def") else graph
        holder = array.placeholder(dtypes.string, [])
        session.run(_write_graph(holder, 0), feed_dict={holder: definition.SerializeToString()})


_write_graph = graph
