"""Which programs' running time is settled by the shapes of what they are fed: the rest never runs on the event loop.

`VALUE_SIZED` is the table of ops whose work comes from a value: a step that took a microsecond may take a minute for
another number in the same place. `sized_by_values` says whether some such value of a part may come from outside: from a
feed, another task, a variable, a file. Values made of constants and shapes do not: shapes that were not measured are
seen at run time (program.py). Called once per program; decision 0025 has the whole rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core import dtypes, opdefs

from .part import ALIAS_OPS, MERGE_OPS, NEXT_ITERATION_OPS, RECV_OPS, SWITCH_N_OPS, SWITCH_OPS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from .part import Part, PartNode

#: Stands for "whatever its inputs are": a file, a function's body, a script's function.
ALWAYS: tuple[int, ...] = (-1,)

#: Ops whose work or whose outputs' sizes come from values, and the inputs that hold these.
VALUE_SIZED: dict[str, tuple[int, ...]] = {
    # made from a shape or a count
    **dict.fromkeys(("Fill", "Empty", "StridedSliceGrad"), (0,)),
    **dict.fromkeys(("Range", "RaggedRange"), (0, 1, 2)),
    "LinSpace": (2,),
    **dict.fromkeys(("Tile", "BroadcastTo", "OneHot", "SparseToDense", "DecodePaddedRaw"), (1,)),
    "ScatterNd": (2,),
    **dict.fromkeys(("Bincount", "DenseBincount"), (1,)),
    "HistogramFixedWidth": (2,),
    **dict.fromkeys(("MatrixDiagV2", "MatrixDiagV3"), (1, 2, 3)),
    **dict.fromkeys(("MatrixDiagPartV2", "MatrixDiagPartV3"), (1,)),
    **dict.fromkeys(("RFFT", "RFFT2D", "RFFT3D", "IRFFT", "IRFFT2D", "IRFFT3D"), (1,)),
    # padding
    **dict.fromkeys(("Pad", "PadV2", "MirrorPad", "SpaceToBatch"), (1,)),
    "SpaceToBatchND": (1, 2),
    # random numbers
    **dict.fromkeys(
        (
            "ParameterizedTruncatedNormal",
            "RandomGamma",
            "RandomPoisson",
            "RandomPoissonV2",
            "RandomStandardNormal",
            "RandomUniform",
            "RandomUniformInt",
            "StatelessParameterizedTruncatedNormal",
            "StatelessRandomGammaV2",
            "StatelessRandomNormal",
            "StatelessRandomNormalV2",
            "StatelessRandomPoisson",
            "StatelessRandomUniform",
            "StatelessRandomUniformFullInt",
            "StatelessRandomUniformFullIntV2",
            "StatelessRandomUniformInt",
            "StatelessRandomUniformIntV2",
            "StatelessRandomUniformV2",
            "StatelessTruncatedNormal",
            "StatelessTruncatedNormalV2",
            "TruncatedNormal",
        ),
        (0,),
    ),
    **dict.fromkeys(("Multinomial", "StatelessMultinomial"), (1,)),
    # segments: so many as the last number, or a count, says
    **dict.fromkeys(("SegmentMax", "SegmentMean", "SegmentMin", "SegmentProd", "SegmentSum"), (1,)),
    **dict.fromkeys(("SegmentMaxV2", "SegmentMinV2", "SegmentProdV2", "SegmentSumV2"), (2,)),
    **dict.fromkeys(("SparseSegmentMean", "SparseSegmentSqrtN", "SparseSegmentSum"), (2,)),
    **dict.fromkeys(
        (
            "SparseSegmentMeanGrad",
            "SparseSegmentMeanWithNumSegments",
            "SparseSegmentSqrtNGrad",
            "SparseSegmentSqrtNWithNumSegments",
            "SparseSegmentSumGrad",
            "SparseSegmentSumWithNumSegments",
        ),
        (3,),
    ),
    **dict.fromkeys(
        (
            "UnsortedSegmentJoin",
            "UnsortedSegmentMax",
            "UnsortedSegmentMin",
            "UnsortedSegmentProd",
            "UnsortedSegmentSum",
        ),
        (2,),
    ),
    # dense sizes of sparse tensors
    **dict.fromkeys(
        (
            "RaggedFillEmptyRows",
            "SparseFillEmptyRows",
            "SparseReduceMax",
            "SparseReduceMaxSparse",
            "SparseReduceSum",
            "SparseReduceSumSparse",
            "SparseTensorDenseMatMul",
        ),
        (2,),
    ),
    "EditDistance": (2, 5),
    "SparseCross": ALWAYS,  # of indices: values of one row are multiplied, of several rows added
    **dict.fromkeys(("DeserializeSparse", "DeserializeManySparse", "ParseTensor"), (0,)),
    # sizes of images and of what convolutions go back to
    **dict.fromkeys(
        (
            "ResizeArea",
            "ResizeBicubic",
            "ResizeBilinear",
            "ResizeNearestNeighbor",
            "ResizeNearestNeighborGrad",
            "FusedPadConv2D",
            "Conv2DBackpropFilter",
            "Conv3DBackpropFilterV2",
            "DepthwiseConv2dNativeBackpropFilter",
        ),
        (1,),
    ),
    **dict.fromkeys(
        (
            "AvgPoolGrad",
            "AvgPool3DGrad",
            "Conv2DBackpropInput",
            "Conv3DBackpropInputV2",
            "DepthwiseConv2dNativeBackpropInput",
        ),
        (0,),
    ),
    "FusedResizeAndPadConv2D": (1, 2),
    **dict.fromkeys(("CropAndResize", "CropAndResizeGradImage"), (3,)),
    # a few bytes unfold to many
    **dict.fromkeys(("DecodePng", "DecodeJpeg", "DecodeCompressed"), (0,)),
    # lists and arrays
    **dict.fromkeys(("TensorArray", "TensorArrayV2", "TensorArrayV3"), (0,)),
    **dict.fromkeys(("TensorListReserve", "TensorListResize", "TensorListScatter"), (1,)),
    "TensorListScatterV2": (1, 3),
    # files are as long as they are
    **dict.fromkeys(
        (
            "InitializeTableFromTextFile",
            "InitializeTableFromTextFileV2",
            "MatchingFiles",
            "MergeV2Checkpoints",
            "ReadFile",
            "RecordInput",
            "Restore",
            "RestoreSlice",
            "RestoreV2",
            "Save",
            "SaveSlices",
            "SaveV2",
            "WriteFile",
        ),
        ALWAYS,
    ),
    # bodies that may loop, and a script's own code
    **dict.fromkeys(
        (
            "Case",
            "EagerPyFunc",
            "For",
            "If",
            "PartitionedCall",
            "PyFunc",
            "PyFuncStateless",
            "RemoteCall",
            "StatefulPartitionedCall",
            "StatelessCase",
            "StatelessIf",
            "StatelessWhile",
            "SymbolicGradient",
            "While",
        ),
        ALWAYS,
    ),
}
#: Ops that put their inputs where the first of them, a list of `N` index tensors, says: as long as the largest index.
_STITCHES = frozenset(("DynamicStitch", "ParallelDynamicStitch"))
#: Ops that hand out nothing but shapes, counts and positions of what they are given.
_OF_SHAPES = frozenset(
    (
        "ArgMax",
        "ArgMin",
        "BroadcastGradientArgs",
        "ConcatOffset",
        "Rank",
        "Shape",
        "ShapeN",
        "Size",
        "TensorArraySize",
        "TensorArraySizeV2",
        "TensorArraySizeV3",
        "TensorListLength",
        "VariableShape",
        "Where",
    )
)
#: Ops whose outputs are elements of one input, whatever the others say. Of Unique only the first output is.
_OF_ELEMENTS: dict[str, int] = {
    **dict.fromkeys(
        (
            "DynamicPartition",
            "Gather",
            "GatherNd",
            "GatherV2",
            "RandomShuffle",
            "Reshape",
            "Slice",
            "StridedSlice",
            "Transpose",
        ),
        0,
    ),
}
_UNIQUES = frozenset(("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2"))


def sized_by_values(part: Part, constants: Collection[int]) -> bool:
    """Whether the work of some node comes from a value that is not made of constants and shapes alone.

    `constants` are the nodes whose values are known. One pass: nodes come in topological order.
    """
    #: Nodes with an output that somebody outside can choose, and of Unique that only its first output is so.
    loose: set[int] = set()
    elements_only: set[int] = set()

    def is_loose(edge: tuple[int, int]) -> bool:
        return edge[0] in loose and not (edge[0] in elements_only and edge[1] > 0)

    for node in part.nodes:
        if node.index in constants:
            continue
        if any(is_loose(edge) for edge in _size_inputs(node)) or _is_always(node):
            return True
        if _loosens(node, is_loose):
            loose.add(node.index)
            if node.op in _UNIQUES:
                elements_only.add(node.index)
    return False


def _is_always(node: PartNode) -> bool:
    if VALUE_SIZED.get(node.op) is ALWAYS:
        return True
    return node.op.startswith("TensorArray") and bool(node.attrs.get("dynamic_size"))


def _size_inputs(node: PartNode) -> Iterable[tuple[int, int]]:
    """The edges that bring sizes."""
    if node.op in _STITCHES:
        return node.inputs[: int(node.attrs["N"])]
    positions = VALUE_SIZED.get(node.op)
    if positions is None or positions is ALWAYS:
        return ()
    return [node.inputs[position] for position in positions if position < len(node.inputs)]


def _loosens(node: PartNode, is_loose: Callable[[tuple[int, int]], bool]) -> bool:
    """Whether somebody outside can choose what the node puts out."""
    op = node.op
    if op in _OF_SHAPES or all(dtype.base_dtype is dtypes.bool_ for dtype in node.output_types):
        return False
    if op in RECV_OPS or op in NEXT_ITERATION_OPS or node.blocking:
        return True
    if op in MERGE_OPS and _closes_a_loop(node):
        return True  # a loop's variable is as large as the loop is long
    if op in ALIAS_OPS or op in SWITCH_OPS or op in SWITCH_N_OPS or op in _OF_ELEMENTS:
        return is_loose(node.inputs[_OF_ELEMENTS.get(op, 0)]) if node.inputs else True
    if not opdefs.has(op) or opdefs.get(op).is_stateful:
        return True
    if any(dtype.is_ref_dtype for dtype in node.input_types):
        return True
    return any(is_loose(edge) for edge in node.inputs)


def _closes_a_loop(node: PartNode) -> bool:
    """Whether some input comes from a node that stands behind the Merge: the order leaves back edges out."""
    return any(source >= node.index for source, _ in node.inputs)
