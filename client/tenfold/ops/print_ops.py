"""`tf.print`: formats tensors and Python values when the graph runs and writes them where the operation runs.

The text is made by StringFormat from a template in which every tensor is a placeholder. The older `tf.Print` is in
control_flow.py. Follows print_v2 of TensorFlow 1.15's logging_ops.py.
"""

from __future__ import annotations

import logging as python_logging
import pprint
import random
import sys
from typing import TYPE_CHECKING, Any

from tenfold import logging, nest
from tenfold.graph.op_builder import apply_op, tensor_op
from tenfold.graph.tensor import Tensor
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation

__all__ = ["print"]


def print(
    *inputs: Any,
    output_stream: Any = None,
    name: str | None = None,
    summarize: int = 3,
    sep: str = " ",
    end: str = "\n",
) -> Operation:
    """An operation that writes `inputs` (tensors, structures of them, Python values), `sep` between them.

    `output_stream` is sys.stderr (default), sys.stdout, a function or level of tf.logging, or "file://path".
    `summarize` elements of each dimension are shown at either end; -1 for all. Raises ValueError for another stream.
    """
    where = _stream(sys.stderr if output_stream is None else output_stream)
    if len(inputs) == 1 and isinstance(inputs[0], Tensor) and _is_scalar_string(inputs[0]):
        text = inputs[0]
    else:
        text = _formatted(inputs, sep, summarize, f"{name}_format" if name else None)
    op: Operation = apply_op("PrintV2", name, input=text, output_stream=where, end=end)
    return op


def _is_scalar_string(tensor: Tensor) -> bool:
    return tensor.shape.ndims == 0 and tensor.dtype == dtypes.string


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor) or hasattr(type(value), "_as_graph_element")


def _formatted(inputs: tuple[Any, ...], sep: str, summarize: int, name: str | None) -> Tensor:
    tensors: list[Any] = []
    plain = nest.map_structure(lambda leaf: "" if _is_tensor(leaf) or nest.is_composite(leaf) else leaf, list(inputs))
    placeholder = _placeholder(" ".join(pprint.pformat(each) for each in plain))

    def shown(leaf: Any) -> Any:
        if nest.is_composite(leaf):
            parts = (leaf.indices, leaf.values, leaf.dense_shape)
            tensors.extend(part for part in parts if part is not None)
            return f"{type(leaf).__name__}(indices={placeholder}, values={placeholder}, shape={placeholder})"
        if _is_tensor(leaf):
            tensors.append(leaf)
            return placeholder
        return leaf

    pieces = []
    for value in inputs:
        # In the order of flattening, which is that of the placeholders in the text.
        packed = nest.pack_sequence_as(value, [shown(leaf) for leaf in nest.flatten(value)])
        pieces.append(packed if isinstance(packed, str) else pprint.pformat(packed))
    template = sep.join(pieces).replace(f"'{placeholder}'", placeholder)
    return tensor_op(
        "StringFormat", name, inputs=tensors, template=template, placeholder=placeholder, summarize=summarize
    )


def _placeholder(text: str) -> str:
    """A text that does not occur in `text`."""
    placeholder, digits = "{}", random.Random(5)
    while placeholder in text:
        placeholder += str(digits.randint(0, 9))
    return placeholder


def _stream(stream: Any) -> str:
    if isinstance(stream, str) and stream.startswith("file://"):
        return stream
    known = (
        (sys.stdout, "stdout"),
        (sys.stderr, "stderr"),
        (logging.info, "log(info)"),
        (logging.INFO, "log(info)"),
        (logging.warning, "log(warning)"),
        (logging.warn, "log(warning)"),
        (logging.WARN, "log(warning)"),
        (logging.error, "log(error)"),
        (logging.ERROR, "log(error)"),
        (python_logging.info, "log(info)"),
        (python_logging.warning, "log(warning)"),
        (python_logging.error, "log(error)"),
    )
    for candidate, text in known:
        if stream is candidate or (isinstance(stream, int) and stream == candidate):
            return text
    raise ValueError(
        f"Unsupported output stream, logging level, or file.{stream}. Supported streams are sys.stdout, sys.stderr, "
        "tf.logging.info, tf.logging.warning, tf.logging.error. File needs to be in the form of 'file://<filepath>'."
    )
