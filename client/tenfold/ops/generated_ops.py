"""Public functions that are exactly one operation: `tf.cholesky` is Cholesky, with the op's own arguments.

A row is `function=OpType`; the function is built from the op definition at its first use: inputs in order, then the
attributes that the inputs do not decide, those without a default first, as TensorFlow generates them. What needs more
than one operation, or checks of its own, is written out in the family's other files. ops/raw_ops.py gives every op
under its own name.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from tenfold.graph.op_builder import apply_op
from tenfold_core import opdefs

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_core.op_def import OpDef

_TABLE = """
    batch_to_space_nd=BatchToSpaceND betainc=Betainc bitwise_and=BitwiseAnd bitwise_or=BitwiseOr
    bitwise_xor=BitwiseXor check_numerics=CheckNumerics cholesky=Cholesky cross=Cross
    decode_compressed=DecodeCompressed decode_json_example=DecodeJSONExample decode_png=DecodePng
    depthwise_conv2d_native=DepthwiseConv2dNative
    depthwise_conv2d_native_backprop_filter=DepthwiseConv2dNativeBackpropFilter
    depthwise_conv2d_native_backprop_input=DepthwiseConv2dNativeBackpropInput
    diag=Diag diag_part=DiagPart encode_png=EncodePng ensure_shape=EnsureShape
    fake_quant_with_min_max_args=FakeQuantWithMinMaxArgs
    fake_quant_with_min_max_args_gradient=FakeQuantWithMinMaxArgsGradient
    fake_quant_with_min_max_vars=FakeQuantWithMinMaxVars
    fake_quant_with_min_max_vars_gradient=FakeQuantWithMinMaxVarsGradient
    fake_quant_with_min_max_vars_per_channel=FakeQuantWithMinMaxVarsPerChannel
    fake_quant_with_min_max_vars_per_channel_gradient=FakeQuantWithMinMaxVarsPerChannelGradient
    fft=FFT fft2d=FFT2D fft3d=FFT3D guarantee_const=GuaranteeConst hsv_to_rgb=HSVToRGB ifft=IFFT ifft2d=IFFT2D
    ifft3d=IFFT3D igamma=Igamma igammac=Igammac invert=Invert left_shift=LeftShift
    log_matrix_determinant=LogMatrixDeterminant matrix_band_part=MatrixBandPart
    matrix_determinant=MatrixDeterminant matrix_inverse=MatrixInverse matrix_solve=MatrixSolve
    matrix_triangular_solve=MatrixTriangularSolve next_after=NextAfter parse_tensor=ParseTensor polygamma=Polygamma
    qr=Qr quantize_and_dequantize_v2=QuantizeAndDequantizeV2 resize_area=ResizeArea rgb_to_hsv=RGBToHSV
    right_shift=RightShift roll=Roll segment_max=SegmentMax segment_mean=SegmentMean segment_min=SegmentMin
    segment_prod=SegmentProd serialize_tensor=SerializeTensor space_to_batch_nd=SpaceToBatchND
    string_to_hash_bucket_strong=StringToHashBucketStrong tensor_scatter_add=TensorScatterAdd
    tensor_scatter_sub=TensorScatterSub tensor_scatter_update=TensorScatterUpdate
    unicode_transcode=UnicodeTranscode unravel_index=UnravelIndex unsorted_segment_join=UnsortedSegmentJoin
    unsorted_segment_max=UnsortedSegmentMax unsorted_segment_min=UnsortedSegmentMin
    unsorted_segment_prod=UnsortedSegmentProd xdivy=Xdivy zeta=Zeta
"""

ROWS = dict(row.split("=") for row in _TABLE.split())

#: Attributes that ops got after TensorFlow 1.15; by keyword only, so that positions stay what they were.
_LATER = ("explicit_paddings",)


def signature_of(op_def: OpDef, *, keyword_only: bool = False) -> inspect.Signature:
    """The arguments of the Python function of an op: its inputs, the attributes to give, `name`."""
    inferred = {attr for arg in op_def.inputs for attr in (arg.type_attr, arg.number_attr, arg.type_list_attr) if attr}
    attrs = [attr for attr in op_def.attrs if attr.name not in inferred]
    free = inspect.Parameter.KEYWORD_ONLY
    place = free if keyword_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(arg.name, place) for arg in op_def.inputs]
    parameters += [inspect.Parameter(attr.name, place) for attr in attrs if not attr.has_default]
    parameters += [
        inspect.Parameter(attr.name, place, default=attr.default)
        for attr in attrs
        if attr.has_default and attr.name not in _LATER
    ]
    parameters.append(inspect.Parameter("name", place, default=None))
    parameters += [inspect.Parameter(attr.name, free, default=attr.default) for attr in attrs if attr.name in _LATER]
    return inspect.Signature(parameters)


def function_of(public: str, op_type: str, *, keyword_only: bool = False) -> Callable[..., Any]:
    """The function `public` that adds an operation of type `op_type`. Raises NotFoundError for an unknown op."""
    signature = signature_of(opdefs.get(op_type), keyword_only=keyword_only)

    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{public}() {error}; its arguments are {signature}") from None
        name = given.pop("name", None)
        return apply_op(op_type, name, **given)

    function.__name__ = function.__qualname__ = public
    function.__doc__ = f"The operation {op_type}; outputs as its definition says, several of them as a named tuple."
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def __getattr__(name: str) -> Any:
    if name not in ROWS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    function = function_of(name, ROWS[name])
    globals()[name] = function
    return function


def __dir__() -> list[str]:
    return sorted(ROWS)
