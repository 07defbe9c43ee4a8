"""Gradient rows of the math ops; the op definitions are in tenfold_core/opdefs/math.py.

Functions of one input are in math_unary.py, reductions in math_reduction.py.
Rules marked `broadcasts` return the shape of the output; registry.py sums over what was broadcast.
Rules follow TensorFlow's ops/math_grad.py: where a derivative does not exist (|x| at 0, ties of a maximum)
they use TensorFlow's value. `g` is the gradient of the output throughout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.broadcast import undo_batch_broadcast, undo_broadcast
from tenfold.gradients.registry import gradient, not_differentiable, not_implemented
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array as array_ops
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


def _zeros_like(x: Tensor) -> Any:
    return apply_op("ZerosLike", x=x)


def _unary(op_type: str, x: Any) -> Any:
    return apply_op(op_type, x=x)


# Arithmetic of two broadcast inputs.


@gradient("Add", "AddV2", broadcasts=True)
def _add(op: Operation, g: Tensor) -> Any:
    return g, g


@gradient("Sub", broadcasts=True)
def _sub(op: Operation, g: Tensor) -> Any:
    return g, _unary("Neg", g)


@gradient("Mul", broadcasts=True, holomorphic=True)
def _mul(op: Operation, g: Tensor) -> Any:
    x, y = op.inputs
    return apply_op("Mul", x=g, y=y), apply_op("Mul", x=x, y=g)


@gradient("RealDiv", "Div", broadcasts=True, holomorphic=True)
def _real_div(op: Operation, g: Tensor) -> Any:
    x, y = op.inputs
    grad_x = apply_op("RealDiv", x=g, y=y)
    minus_x = _unary("Neg", x)
    slope_y = apply_op("RealDiv", x=apply_op("RealDiv", x=minus_x, y=y), y=y)
    return grad_x, apply_op("Mul", x=g, y=slope_y)


@gradient("DivNoNan", broadcasts=True, holomorphic=True)
def _div_no_nan(op: Operation, g: Tensor) -> Any:
    x, y = op.inputs
    grad_x = apply_op("DivNoNan", x=g, y=y)
    minus_x = _unary("Neg", x)
    slope_y = apply_op("DivNoNan", x=apply_op("DivNoNan", x=minus_x, y=y), y=y)
    return grad_x, apply_op("Mul", x=g, y=slope_y)


@gradient("FloorDiv")
def _floor_div(op: Operation, g: Tensor) -> Any:
    return None, None


@gradient("FloorMod", broadcasts=True)
def _floor_mod(op: Operation, g: Tensor) -> Any:
    x, y = op.inputs
    return g, apply_op("Mul", x=g, y=_unary("Neg", apply_op("FloorDiv", x=x, y=y)))


@gradient("Maximum", broadcasts=True)
def _maximum(op: Operation, g: Tensor) -> Any:
    x_wins = apply_op("GreaterEqual", x=op.inputs[0], y=op.inputs[1])
    return _split_by(x_wins, g)


@gradient("Minimum", broadcasts=True)
def _minimum(op: Operation, g: Tensor) -> Any:
    x_wins = apply_op("LessEqual", x=op.inputs[0], y=op.inputs[1])
    return _split_by(x_wins, g)


def _split_by(condition: Tensor, g: Tensor) -> tuple[Any, Any]:
    zeros = _zeros_like(g)
    return apply_op("Select", condition=condition, t=g, e=zeros), apply_op("Select", condition=condition, t=zeros, e=g)


@gradient("SquaredDifference", broadcasts=True)
def _squared_difference(op: Operation, g: Tensor) -> Any:
    # of complex numbers the square of the distance, which is real
    x, y = op.inputs
    grad_x = (2 * g) * (x - y)
    return grad_x, _unary("Neg", grad_x)


@gradient("Pow", broadcasts=True, holomorphic=True)
def _pow(op: Operation, g: Tensor) -> Any:
    x, y = op.inputs
    z = op.outputs[0]
    grad_x = g * y * apply_op("Pow", x=x, y=y - 1)
    # log(x) has no useful value for x <= 0, and for a complex 0; there the exponent gets no gradient.
    has_log = apply_op("NotEqual" if x.dtype.is_complex else "Greater", x=x, y=_zeros_like(x))
    safe_x = apply_op("Select", condition=has_log, t=x, e=apply_op("OnesLike", x=x))
    log_x = apply_op("Select", condition=has_log, t=_unary("Log", safe_x), e=_zeros_like(x))
    return grad_x, g * z * log_x


@gradient("Atan2", broadcasts=True)
def _atan2(op: Operation, g: Tensor) -> Any:
    y, x = op.inputs
    over_square = g / (_unary("Square", x) + _unary("Square", y))
    return x * over_square, -y * over_square


@gradient("MulNoNan", broadcasts=True, holomorphic=True)
def _mul_no_nan(op: Operation, g: Tensor) -> Any:
    x, y = op.inputs
    return apply_op("MulNoNan", x=g, y=y), apply_op("MulNoNan", x=x, y=g)


@gradient("TruncateDiv")
def _truncate_div(op: Operation, g: Tensor) -> Any:
    return None, None


@gradient("AddN", "AccumulateNV2")
def _add_n(op: Operation, g: Tensor) -> Any:
    return [g] * len(op.inputs)


@gradient("Cast")
def _cast(op: Operation, g: Tensor) -> Any:
    source = op.inputs[0].dtype.base_dtype
    return apply_op("Cast", x=g, DstT=source) if source.is_floating or source.is_complex else None


@gradient("Select")
def _select(op: Operation, g: Tensor) -> Any:
    condition, x, _ = op.inputs
    zeros = _zeros_like(x)
    return (
        None,
        apply_op("Select", condition=condition, t=g, e=zeros),
        apply_op("Select", condition=condition, t=zeros, e=g),
    )


@gradient("SelectV2")
def _select_v2(op: Operation, g: Tensor) -> Any:
    # All three inputs broadcast, and the condition carries no gradient: each branch is undone against the output.
    condition, t, e = op.inputs
    zeros = _zeros_like(g)
    grad_t = apply_op("SelectV2", condition=condition, t=g, e=zeros)
    grad_e = apply_op("SelectV2", condition=condition, t=zeros, e=g)
    output = op.outputs[0]
    return None, undo_broadcast(t, output, grad_t, None)[0], undo_broadcast(e, output, grad_e, None)[0]


# Linear algebra.


def _matmul(a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False) -> Any:
    return apply_op("MatMul", a=a, b=b, transpose_a=transpose_a, transpose_b=transpose_b)


@gradient("MatMul", holomorphic=True)
def _mat_mul(op: Operation, g: Tensor) -> Any:
    a, b = op.inputs
    match op.get_attr("transpose_a"), op.get_attr("transpose_b"):
        case False, False:
            return _matmul(g, b, transpose_b=True), _matmul(a, g, transpose_a=True)
        case False, True:
            return _matmul(g, b), _matmul(g, a, transpose_a=True)
        case True, False:
            return _matmul(b, g, transpose_b=True), _matmul(a, g)
        case _:
            return _matmul(b, g, transpose_a=True, transpose_b=True), _matmul(g, a, transpose_a=True, transpose_b=True)


@gradient("BatchMatMul", "BatchMatMulV2")
def _batch_mat_mul(op: Operation, g: Tensor) -> Any:
    x, y = op.inputs

    def product(a: Any, b: Any, adj_x: bool = False, adj_y: bool = False) -> Any:
        return apply_op(op.type, x=a, y=b, adj_x=adj_x, adj_y=adj_y)

    match op.get_attr("adj_x"), op.get_attr("adj_y"):
        case False, False:
            grads = product(g, y, adj_y=True), product(x, g, adj_x=True)
        case False, True:
            grads = product(g, y), product(g, x, adj_x=True)
        case True, False:
            grads = product(y, g, adj_y=True), product(x, g)
        case _:
            grads = product(y, g, adj_x=True, adj_y=True), product(g, x, adj_x=True, adj_y=True)
    if op.type == "BatchMatMul":
        return grads
    return undo_batch_broadcast(op, *grads)


def _as_type(x: Tensor, like: Tensor) -> Tensor:
    wanted = like.dtype.base_dtype
    result: Tensor = x if x.dtype.base_dtype == wanted else apply_op("Cast", x=x, DstT=wanted)
    return result


@gradient("BatchMatMulV3")
def _batch_mat_mul_v3(op: Operation, g: Tensor) -> Any:
    # in the output's type, which may be wider than an operand's
    x, y = (_as_type(each, g) for each in op.inputs)
    adj_x, adj_y = op.get_attr("adj_x"), op.get_attr("adj_y")

    def product(a: Any, b: Any, adj_a: bool, adj_b: bool) -> Any:
        return apply_op("BatchMatMulV2", x=a, y=b, adj_x=adj_a, adj_y=adj_b)

    of_x = product(y, g, adj_y, True) if adj_x else product(g, y, False, not adj_y)
    of_y = product(g, x, True, adj_x) if adj_y else product(x, g, not adj_x, False)
    return [_as_type(part, each) for part, each in zip(undo_batch_broadcast(op, of_x, of_y), op.inputs, strict=True)]


@gradient("SparseMatMul")
def _sparse_mat_mul(op: Operation, g: Tensor) -> Any:
    # the product is float whatever the operands are; a gradient is sparse after a Relu only
    a, b = op.inputs
    turn_a, turn_b = op.get_attr("transpose_a"), op.get_attr("transpose_b")
    is_sparse = {a: op.get_attr("a_is_sparse"), b: op.get_attr("b_is_sparse"), g: g.op.type == "ReluGrad"}

    def product(x: Tensor, y: Tensor, turn_x: bool, turn_y: bool, like: Tensor) -> Any:
        made = apply_op("SparseMatMul", a=x, b=y, transpose_a=turn_x, transpose_b=turn_y,
                        a_is_sparse=is_sparse[x], b_is_sparse=is_sparse[y])  # fmt: skip
        return _as_type(made, like)

    of_a = product(b, g, turn_b, True, a) if turn_a else product(g, b, False, not turn_b, a)
    of_b = product(g, a, True, turn_a, b) if turn_b else product(a, g, not turn_a, False, b)
    return of_a, of_b


@gradient("BroadcastTo")
def _broadcast_to(op: Operation, g: Tensor) -> Any:
    x, shape = op.inputs
    x_shape = array_ops.shape(x)
    wanted = shape if shape.dtype.base_dtype == dtypes.int32 else apply_op("Cast", x=shape, DstT=dtypes.int32)
    _, axes = apply_op("BroadcastGradientArgs", s0=wanted, s1=x_shape)
    return apply_op("Reshape", tensor=apply_op("Sum", input=g, reduction_indices=axes), shape=x_shape), None


@gradient("CheckNumerics")
def _check_numerics(op: Operation, g: Tensor) -> Any:
    return apply_op(
        "CheckNumerics",
        tensor=g,
        message=f"Not a number (NaN) or infinity (Inf) values detected in gradient of {op.name}.",
    )


not_differentiable(
    "Less",
    "LessEqual",
    "Greater",
    "GreaterEqual",
    "Equal",
    "NotEqual",
    "ApproximateEqual",
    "LogicalAnd",
    "LogicalOr",
    "LogicalNot",
    "Range",
    "LinSpace",
    why="the result is a decision or an index, not a smooth function of the input",
)
not_differentiable("Bitcast", why="not smooth")


@gradient("NextAfter", broadcasts=True)
def _next_after(_: Operation, g: Tensor) -> Any:
    return g, apply_op("ZerosLike", x=g)


not_differentiable("HistogramFixedWidth", "RaggedRange", why="counts and ranges")
not_implemented(
    "Mod",
    "SegmentMaxV2",
    "SegmentMinV2",
    "SegmentProdV2",
    "SparseSegmentMeanGradV2",
    "SparseSegmentSqrtNGrad",
    "SparseSegmentSqrtNGradV2",
    "SparseSegmentSumGrad",
    "SparseSegmentSumGradV2",
    "TruncateMod",
)
not_differentiable("BroadcastArgs", "BroadcastGradientArgs", why="works on shapes")


@gradient("Cross")
def _cross(op: Operation, g: Tensor) -> Any:
    a, b = op.inputs
    return apply_op("Cross", a=b, b=g), apply_op("Cross", a=g, b=a)


def _not_zero(x: Tensor) -> Tensor:
    different = apply_op("NotEqual", x=x, y=apply_op("ZerosLike", x=x))
    result: Tensor = apply_op("Cast", x=different, DstT=x.dtype.base_dtype)
    return result


@gradient("Xlogy", broadcasts=True, holomorphic=True)
def _xlogy(op: Operation, g: Tensor) -> Any:
    x, y = op.inputs
    return apply_op("Xlogy", x=_not_zero(x), y=y) * g, apply_op("Xdivy", x=x, y=y) * g


@gradient("Xdivy", broadcasts=True, holomorphic=True)
def _xdivy(op: Operation, g: Tensor) -> Any:
    x, y = op.inputs
    minus = apply_op("Xdivy", x=apply_op("Neg", x=x), y=y * y)
    return apply_op("Xdivy", x=_not_zero(x), y=y) * g, minus * g


not_differentiable(
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "Bucketize",
    "DenseBincount",
    "Invert",
    "LeftShift",
    "PopulationCount",
    "RightShift",
    why="bits and counts",
)

not_differentiable("SparseBincount", "RaggedBincount")
