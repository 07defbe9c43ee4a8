"""Which inputs of an op steer where its kernel reads and writes: those are copied where others may write to them.

A reference variable's value is one memory that every reader sees; another step may assign to it while a kernel that has
checked its indices uses them. Compiled loops read each index once (cpu/_compiled/reading.py). NumPy checks all of an
index array and then reads it again, sorts by comparing keys twice, counts and then fills; kernels ask for a size and
then for the values. So the worker gives such inputs to kernels as copies of their own
(tenfold_compiler/part/node_facts.py), and a kernel may believe what it has seen. Decision 0131.

An input steers unless it is known to be numbers only: a new op is safe, and slower where it reads a large variable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core import dtypes, opdefs
from tenfold_core.opdefs.runtime_ops import CUT_OPS
from tenfold_kernels import registry
from tenfold_kernels.fusion import expressions

if TYPE_CHECKING:
    from tenfold_core.dtypes import DType

#: Arguments that hold what is moved, whatever the op.
_MOVED = frozenset(("data", "params", "tensor", "updates"))
#: … and those of ops that give views of them.
_VIEWED = frozenset(("input", "inputs", "tensor", "value", "values", "x"))
#: Ops that compute each output element from elements at places that shapes say: the value of none is a place.
_NUMBERS_ONLY = frozenset(expressions.OPS) | frozenset(
    ("All", "Any", "Assign", "AssignAdd", "AssignSub", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Bitcast",
     "Cast", "ClipByValue", "Conv2D", "FloorDiv", "FloorMod", "MatMul", "Max", "Mean", "Min", "Mod", "OnesLike", "Pack",
     "Prod",
     "Rank", "Shape", "ShapeN", "Size", "Sum", "TruncateDiv", "TruncateMod", "ZerosLike")
)  # fmt: skip
#: What reductions reduce by, of ops in `_NUMBERS_ONLY`.
_AXES = frozenset(("reduction_indices",))
#: Ops that take places, counts or an order from floating-point numbers: by sorting, by comparing, by rounding.
_BY_FLOATS = frozenset(
    ("Bucketize", "CombinedNonMaxSuppression", "CropAndResize", "CropAndResizeGradBoxes", "CropAndResizeGradImage",
     "CTCBeamSearchDecoder", "CTCGreedyDecoder", "CTCLoss", "DenseBincount", "DrawBoundingBoxes", "DrawBoundingBoxesV2",
     "ExtractGlimpse", "ExtractGlimpseV2", "HistogramFixedWidth", "InTopK", "InTopKV2", "LinSpace", "ListDiff",
     "LowerBound", "MaxPoolGrad", "MaxPoolGradGrad", "MaxPoolGradV2", "MaxPoolWithArgmax", "Multinomial",
     "NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5",
     "NonMaxSuppressionWithOverlaps", "NthElement", "RaggedRange", "Range", "RandomPoisson", "RandomPoissonV2",
     "RandomGamma", "ParameterizedTruncatedNormal", "SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2",
     "ScaleAndTranslate", "ScaleAndTranslateGrad", "SdcaOptimizer", "SdcaOptimizerV2", "StatelessMultinomial",
     "StatelessSampleDistortedBoundingBox", "TopK", "TopKV2", "Unique", "UniqueV2", "UniqueWithCounts",
     "UniqueWithCountsV2", "UpperBound", "Where")
)  # fmt: skip
#: Families whose ops keep what they are given, or hand it to somebody: nobody knows there that it may change.
_KEEPING = frozenset(("control_flow", "data_flow", "dataset", "list", "lookup", "script"))


def argument_names(op: str, count: int, attrs: object) -> list[str]:
    """The argument of the op's definition that each of `count` inputs belongs to; `attrs` as a node has them."""
    names: list[str] = []
    for argument in opdefs.get(op).inputs:
        number = 1
        if argument.number_attr:
            number = int(attrs[argument.number_attr])  # type: ignore[index]
        elif argument.type_list_attr:
            number = len(attrs[argument.type_list_attr])  # type: ignore[index]
        names += [argument.name] * number
    return names if len(names) == count else [""] * count


def steers(op: str, argument: str, dtype: DType) -> bool:
    """Whether an input of that argument and type must stay as it is while the kernel of the op runs."""
    if dtype.is_ref_dtype or dtype in (dtypes.resource, dtypes.variant):
        return False
    if op in CUT_OPS and argument == "tensors":
        return False  # read again at the moment of the cut, which a copy would be before
    if opdefs.family_of(op) in _KEEPING:
        return True
    if argument in _MOVED and op not in _BY_FLOATS:
        return False
    if op in _NUMBERS_ONLY:
        return argument in _AXES
    if argument in _VIEWED and registry.may_view_input(op):
        return False
    if dtype.is_floating or dtype.is_complex:
        return op in _BY_FLOATS
    return True
