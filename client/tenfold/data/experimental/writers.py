"""`tf.data.experimental.TFRecordWriter`: a dataset of strings, written to a file by an operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.data import structure
from tenfold.data.node import DatasetNode
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.op_builder import apply_op
from tenfold.ops.type_specs import TensorSpec
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation


class TFRecordWriter:
    """Writes one file on the task where `write` runs."""

    def __init__(self, filename: Any, compression_type: Any = None) -> None:
        """`compression_type` is "", "ZLIB" or "GZIP"."""
        self._filename = convert_to_tensor(filename, dtypes.string, name="filename")
        self._compression_type = convert_to_tensor(compression_type or "", dtypes.string, name="compression_type")

    def write(self, dataset: DatasetNode) -> Operation:
        """An operation that writes all elements. Raises TypeError for anything but a dataset of scalar strings."""
        if not isinstance(dataset, DatasetNode):
            raise TypeError("`dataset` must be a `tf.data.Dataset` object.")
        spec = dataset.element_spec
        if not isinstance(spec, TensorSpec) or not spec.is_compatible_with(TensorSpec([], dtypes.string)):
            raise TypeError(
                "`dataset` must produce scalar `DT_STRING` tensors whereas it produces shape "
                f"{structure.legacy_shapes(spec)} and types {structure.legacy_types(spec)}"
            )
        made: Operation = apply_op(
            "DatasetToTFRecord",
            input_dataset=dataset._variant_tensor,
            filename=self._filename,
            compression_type=self._compression_type,
        )
        return made
