"""What the version of a GraphDef's producer means: one table of what changed, and the operations that went.

A GraphDef says which release wrote it (`versions.producer`), and TensorFlow reads some things by that. Asked by the
client's importer (client/tenfold/graph/importer.py), by shape functions (`ShapeContext.producer`) and by the master
(compiler/graph/runtime_graph.py). docs/graph_versions.md shows both tables. Follows TensorFlow's core/public/version.h,
framework/versions.cc and op_def_util.cc: the number is TensorFlow's, not Tenfold's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenfold_core import errors
from tenfold_core.build_info import build_info

if TYPE_CHECKING:
    from tenfold_protos.versions_pb2 import VersionDef

#: What Tenfold's own graphs say: that of TensorFlow 1.15, whose meaning they have.
WRITTEN = 134
#: The version up to which a graph means here what it means to TensorFlow: that of TensorFlow 2.21, from which the op
#: definitions are. A graph that wants a newer reader (`min_consumer`), or not this one (`bad_consumers`), is refused.
READ = 2474
#: The oldest producer that is read.
OLDEST = 0

#: Producers up to this one wrote an empty shape for a Placeholder whose shape they did not know.
LAST_WITH_PLACEHOLDERS_WITHOUT_SHAPE = 21
#: From this producer on the axes of a reduction are a scalar or a vector; before, of any rank.
FIRST_WITH_FLAT_AXES = 21


@dataclass(frozen=True, slots=True)
class Change:
    """What a producer of `version` and later writes in another way, and what reading makes of it."""

    version: int
    #: The first release of TensorFlow that wrote this version or a later one.
    release: str
    change: str
    reading: str


CHANGES = (
    Change(1, "0.6", "graphs say a version", "a graph without versions counts as version 0"),
    Change(2, "0.7", "AdjustContrast takes floats and does not clamp", "AdjustContrast below 2 only"),
    Change(3, "0.7", "TileGrad is a sum", "TileGrad below 3 only"),
    Change(
        5,
        "0.7",
        "TensorFlow checks all nodes of a graph when a session begins, needed or not",
        "nodes of operations that are not here are checked when a step needs them, in graphs of every version",
    ),
    Change(
        6,
        "0.7",
        "scalars and vectors of one element are two things within Google",
        "nothing: TensorFlow's releases never asked the version, each operation takes what it takes in TensorFlow",
    ),
    Change(7, "0.7", "TopKV2 for TopK", "TopK below 7 only"),
    Change(8, "0.7", "RandomCrop is a function of Python", "RandomCrop below 8 only"),
    Change(
        9, "0.8", "batch normalization is made of small operations", "BatchNormWithGlobalNormalization below 9 only"
    ),
    Change(10, "0.10", "gradients of conv3d know their shapes", "Conv3DBackpropInput and …Filter below 10 only"),
    Change(11, "0.10", "SelfAdjointEigV2 for {Batch}SelfAdjointEig", "the older below 11 only"),
    Change(12, "0.11", "a function's body is in `node_def`", "the older form (`node`) is not read, as by TensorFlow"),
    Change(13, "0.11", "linear algebra takes batches", "BatchCholesky, BatchMatrixSolve and kin below 13 only"),
    Change(14, "0.11", "operations on matrices take batches", "BatchMatrixDiag and kin below 14 only"),
    Change(
        15, "0.11", "Fourier transforms take batches; AudioSummaryV2", "BatchFFT and kin, AudioSummary below 15 only"
    ),
    Change(16, "0.12", "TensorArrayV2 for TensorArray", "TensorArray… of the first kind below 16 only"),
    Change(17, "0.12", "Reciprocal for Inv; ReverseV2", "Inv, InvGrad and Reverse still work in every version"),
    Change(18, "1.0", "VariableV2, which is never of unknown shape by an empty one", "Variable keeps its rule"),
    Change(19, "1.0", "word2vec's operations went", "Skipgram and NegTrain below 19 only"),
    Change(20, "1.0", "SplitV, ConcatV2, floored division; TensorArrayV3", "the older operations still work"),
    Change(
        21,
        "1.0",
        "axes of reductions are a scalar or a vector; a function's body is in `node_def` only",
        "below 21 axes may have any rank: [[0, 1]] means [0, 1]",
    ),
    Change(
        22,
        "1.2",
        "a Placeholder's shape is what it says, the empty one that of a scalar",
        "up to 21 an empty shape, and a scalar's, means that nothing is known",
    ),
    Change(23, "1.3", "Placeholder for PlaceholderV2; NonMaxSuppressionV2", "PlaceholderV2 below 23 only"),
    Change(24, "1.3", "tables, stacks and more are resources (V2)", "the older operations still work"),
    Change(25, "1.6", "RandomPoissonV2 for RandomPoisson", "RandomPoisson below 25 only"),
    Change(
        26,
        "1.6",
        "attributes at their defaults may be left out; TensorArrayV3 and readers as resources",
        "defaults are filled in for graphs of every version; TensorArrayV2 and TextLineReader and kin below 26 only",
    ),
    Change(27, "1.11", "the matrix exponential is a function of Python", "MatrixExponential below 27 only"),
    Change(29, "1.14", "StatefulStandardNormalV2", "StatefulStandardNormal below 29 only"),
    Change(30, "1.14", "versions count days from 9 May 2019 on: 1.15 is 134, 2.21 is 2474", "nothing"),
)

#: Operations that graphs of a version and later may not have: (version, what TensorFlow says of each).
_REMOVED: tuple[tuple[int, dict[str, str]], ...] = (
    (2, {"AdjustContrast": "Use AdjustContrastv2 instead"}),
    (3, {"TileGrad": "TileGrad has been replaced with reduce_sum"}),
    (7, {"TopK": "Use TopKV2 instead"}),
    (8, {"RandomCrop": "Random crop is now pure Python"}),
    (
        9,
        dict.fromkeys(
            ("BatchNormWithGlobalNormalization", "BatchNormWithGlobalNormalizationGrad"),
            "Use tf.nn.batch_normalization()",
        ),
    ),
    (10, {op: f"Use {op}V2" for op in ("Conv3DBackpropFilter", "Conv3DBackpropInput")}),
    (11, dict.fromkeys(("BatchSelfAdjointEig", "SelfAdjointEig"), "Use SelfAdjointEigV2 instead.")),
    (
        13,
        {
            f"Batch{op}": f"Use {op} instead."
            for op in (
                *("Cholesky", "CholeskyGrad", "MatrixDeterminant", "MatrixInverse", "MatrixSolve", "MatrixSolveLs"),
                *("MatrixTriangularSolve", "SelfAdjointEigV2", "Svd"),
            )
        },
    ),
    (14, {f"Batch{op}": f"Use {op}" for op in ("MatrixBandPart", "MatrixDiag", "MatrixDiagPart", "MatrixSetDiag")}),
    (15, {"AudioSummary": "Use AudioSummaryV2."}),
    (15, {f"Batch{op}": f"Use {op}" for op in ("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D")}),
    (
        16,
        {
            f"TensorArray{part}": f"Use TensorArray{successor}"
            for part, successor in {
                **{part: f"{part}V3" for part in ("", "Close", "Gather", "Grad", "Read", "Size", "Split", "Write")},
                "Concat": "GradV3",
                "Pack": "GatherV3 with RangeOp",
            }.items()
        },
    ),
    (
        19,
        dict.fromkeys(
            ("NegTrain", "Skipgram"),
            "Moving word2vec into tensorflow_models/tutorials and deprecating its ops here as a result",
        ),
    ),
    (19, {"TensorArrayScatter": "Use TensorArrayGradV3"}),
    (20, {"TensorArrayUnpack": "Use TensorArrayScatterV3 with RangeOp"}),
    (22, {"QuantizeAndDequantize": "Replaced by QuantizeAndDequantizeV2"}),
    (23, {"PlaceholderV2": "Placeholder now behaves the same as PlaceholderV2."}),
    (25, {"RandomPoisson": "Replaced by RandomPoissonV2"}),
    (
        26,
        {op: f"Use {op}V2" for op in ("FixedLengthRecordReader", "IdentityReader", "TFRecordReader", "TextLineReader")},
    ),
    (
        26,
        {
            f"TensorArray{part}V2": f"Use TensorArray{part}V3"
            for part in ("", "Close", "Gather", "Grad", "Read", "Scatter", "Size", "Split", "Write")
        },
    ),
    (27, {"MatrixExponential": "Use Python implementation tf.linalg.matrix_exponential instead."}),
    (29, {"StatefulStandardNormal": "Use StatefulStandardNormalV2 instead"}),
)

#: Op → (the first version whose graphs may not have it, what they have instead).
REMOVED: dict[str, tuple[int, str]] = {op: (version, why) for version, ops in _REMOVED for op, why in ops.items()}


def check_op(op: str, producer: int) -> None:
    """Raises UnimplementedError, in TensorFlow's words, for an operation that was gone when the graph was written."""
    version, instead = REMOVED.get(op, (producer + 1, ""))
    if producer >= version:
        raise errors.UnimplementedError(
            None,
            None,
            f"Op {op} is not available in GraphDef version {producer}. It has been removed in version {version}. "
            f"{instead}.",
        )


def check_versions(versions: VersionDef) -> None:
    """Raises InvalidArgumentError for a graph that its producer did not mean for this reader, or that is too old."""
    reader = f"Tenfold {build_info()['version']}"
    if versions.producer < OLDEST:
        problem = (
            f"producer version {versions.producer} below min producer {OLDEST} supported by {reader}.  "
            "Please regenerate your graph."
        )
    elif versions.min_consumer > READ:
        problem = (
            f"min consumer version {versions.min_consumer} above current version {READ} for {reader}.  "
            "Please upgrade Tenfold."
        )
    elif READ in versions.bad_consumers or WRITTEN in versions.bad_consumers:
        bad = READ if READ in versions.bad_consumers else WRITTEN
        problem = f"disallows consumer version {bad}.  Please upgrade Tenfold: this version is likely buggy."
    else:
        return
    raise errors.InvalidArgumentError(None, None, f"GraphDef {problem}")


def join(versions: VersionDef, added: VersionDef) -> None:
    """Makes `versions`, of a graph, those of the graph with another's nodes: the older producer, the pickier reader.

    So it is in TensorFlow: what is added to a graph of today after a graph of 2016 is read as that one's nodes are.
    """
    versions.producer = min(versions.producer, added.producer)
    versions.min_consumer = max(versions.min_consumer, added.min_consumer)
    bad = sorted({*versions.bad_consumers, *added.bad_consumers})
    del versions.bad_consumers[:]
    versions.bad_consumers.extend(bad)
