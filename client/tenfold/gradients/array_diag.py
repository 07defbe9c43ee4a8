"""Gradient rows of the ops that take, set and make diagonals. Follows TensorFlow's ops/array_grad.py.

Definitions in tenfold_core/opdefs/array.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.registry import gradient
from tenfold.graph.op_builder import apply_op

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


@gradient("Diag")
def _diag(op: Operation, g: Tensor) -> Any:
    return apply_op("DiagPart", input=g)


@gradient("DiagPart")
def _diag_part(op: Operation, g: Tensor) -> Any:
    return apply_op("Diag", diagonal=g)


@gradient("MatrixDiag", "BatchMatrixDiag")
def _matrix_diag(op: Operation, g: Tensor) -> Any:
    return apply_op("MatrixDiagPart", input=g)


@gradient("MatrixDiagV3", "MatrixDiagV2")
def _matrix_diag_v3(op: Operation, g: Tensor) -> Any:
    k, padding = op.inputs[1], apply_op("ZerosLike", x=op.inputs[4])
    align = op.get_attr("align") if op.type == "MatrixDiagV3" else b"LEFT_LEFT"
    return apply_op("MatrixDiagPartV3", input=g, k=k, padding_value=padding, align=align), None, None, None, None


@gradient("MatrixSetDiag", "BatchMatrixSetDiag")
def _matrix_set_diag(op: Operation, g: Tensor) -> Any:
    nothing = apply_op("ZerosLike", x=op.inputs[1])
    return apply_op("MatrixSetDiag", input=g, diagonal=nothing), apply_op("MatrixDiagPart", input=g)


@gradient("MatrixSetDiagV3", "MatrixSetDiagV2")
def _matrix_set_diag_v3(op: Operation, g: Tensor) -> Any:
    diagonal, k = op.inputs[1:]
    align = op.get_attr("align") if op.type == "MatrixSetDiagV3" else b"LEFT_LEFT"
    zero = apply_op("Cast", x=0, DstT=g.dtype.base_dtype)
    return (
        apply_op("MatrixSetDiagV3", input=g, diagonal=apply_op("ZerosLike", x=diagonal), k=k, align=align),
        apply_op("MatrixDiagPartV3", input=g, k=k, padding_value=zero, align=align),
        None,
    )


@gradient("MatrixDiagPart")
def _matrix_diag_part(op: Operation, g: Tensor) -> Any:
    return apply_op("MatrixSetDiag", input=apply_op("ZerosLike", x=op.inputs[0]), diagonal=g)


@gradient("MatrixDiagPartV2")
def _matrix_diag_part_v2(op: Operation, g: Tensor) -> Any:
    zeros = apply_op("ZerosLike", x=op.inputs[0])
    return apply_op("MatrixSetDiagV2", input=zeros, diagonal=g, k=op.inputs[1]), None, None


@gradient("MatrixDiagPartV3")
def _matrix_diag_part_v3(op: Operation, g: Tensor) -> Any:
    zeros = apply_op("ZerosLike", x=op.inputs[0])
    align = op.get_attr("align")
    return apply_op("MatrixSetDiagV3", input=zeros, diagonal=g, k=op.inputs[1], align=align), None, None
