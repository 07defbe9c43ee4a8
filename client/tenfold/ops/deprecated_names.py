"""Names of the releases before 1.0: `tf.pack`, `tf.sub`, `tf.select`, `tf.scalar_summary`, ….

Each works, and logs its new name once per process. The functions whose argument order changed, `tf.split` and
`tf.concat`, accept both orders themselves (slicing.py, array.py) where the types tell them apart.
"""

from __future__ import annotations

import functools
from importlib import import_module
from typing import Any

from tenfold.graph.collections import GraphKeys
from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.op_builder import tensor_op
from tenfold.ops.math import matmul
from tenfold.ops.spelling import warn_once

#: Old name = module:function that replaced it.
_TABLE = """
    pack=tenfold.ops.array:stack unpack=tenfold.ops.slicing:unstack sub=tenfold.ops.math:subtract
    mul=tenfold.ops.math:multiply neg=tenfold.ops.math:negative inv=tenfold.ops.math:reciprocal
    complex_abs=tenfold.ops.math:abs listdiff=tenfold.ops.slicing:setdiff1d
    select=tenfold.ops.slicing:where batch_matmul=tenfold.ops.deprecated_names:_batch_matmul
    batch_cholesky=tenfold.ops.generated_ops:cholesky batch_matrix_inverse=tenfold.ops.generated_ops:matrix_inverse
    batch_matrix_determinant=tenfold.ops.generated_ops:matrix_determinant
    batch_matrix_solve=tenfold.ops.generated_ops:matrix_solve
    batch_matrix_diag=tenfold.ops.array_diag:matrix_diag batch_matrix_diag_part=tenfold.ops.array_diag:matrix_diag_part
    batch_matrix_band_part=tenfold.ops.generated_ops:matrix_band_part
    batch_matrix_triangular_solve=tenfold.ops.generated_ops:matrix_triangular_solve
    batch_fft=tenfold.ops.generated_ops:fft batch_ifft=tenfold.ops.generated_ops:ifft
    scalar_summary=tenfold.ops.deprecated_names:_scalar_summary
    histogram_summary=tenfold.ops.deprecated_names:_histogram_summary
    image_summary=tenfold.ops.deprecated_names:_image_summary audio_summary=tenfold.ops.deprecated_names:_audio_summary
    merge_summary=tenfold.summary:merge merge_all_summaries=tenfold.summary:merge_all
    initialize_all_tables=tenfold.ops.lookup:tables_initializer
"""

ROWS = dict(row.split("=") for row in _TABLE.split())


def __getattr__(name: str) -> Any:
    if name not in ROWS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = ROWS[name].partition(":")
    function = getattr(import_module(module), attribute)
    new = _PUBLIC.get(attribute, f"tf.{attribute}")

    @functools.wraps(function)
    def early(*args: Any, **kwargs: Any) -> Any:
        warn_once(f"tf.{name}", new)
        return function(*args, **kwargs)

    globals()[name] = early
    return early


def __dir__() -> list[str]:
    return sorted(ROWS)


#: The new public name, where it is not `tf.` and the function's own name.
_PUBLIC = {
    "_batch_matmul": "tf.matmul",
    "_scalar_summary": "tf.summary.scalar",
    "_histogram_summary": "tf.summary.histogram",
    "_image_summary": "tf.summary.image",
    "_audio_summary": "tf.summary.audio",
    "merge": "tf.summary.merge",
    "merge_all": "tf.summary.merge_all",
}


def _batch_matmul(x: Any, y: Any, adj_x: bool = False, adj_y: bool = False, name: str | None = None) -> Any:
    return matmul(x, y, adjoint_a=adj_x, adjoint_b=adj_y, name=name)


def _summary(op_type: str, collections: Any, name: str | None, **inputs: Any) -> Any:
    """A summary whose tags the caller gives, as in the releases before 1.0."""
    value = tensor_op(op_type, name or op_type, **inputs)
    for key in [GraphKeys.SUMMARIES] if collections is None else collections:
        get_default_graph().add_to_collection(key, value)
    return value


def _scalar_summary(tags: Any, values: Any, collections: Any = None, name: str | None = None) -> Any:
    return _summary("ScalarSummary", collections, name, tags=tags, values=values)


def _histogram_summary(tag: Any, values: Any, collections: Any = None, name: str | None = None) -> Any:
    return _summary("HistogramSummary", collections, name, tag=tag, values=values)


def _image_summary(tag: Any, tensor: Any, max_images: int = 3, collections: Any = None, name: str | None = None) -> Any:
    return _summary("ImageSummary", collections, name, tag=tag, tensor=tensor, max_images=max_images)


def _audio_summary(
    tag: Any, tensor: Any, sample_rate: float, max_outputs: int = 3, collections: Any = None, name: str | None = None
) -> Any:
    return _summary(
        "AudioSummaryV2", collections, name, tag=tag, tensor=tensor, sample_rate=sample_rate,
        max_outputs=max_outputs,
    )  # fmt: skip
