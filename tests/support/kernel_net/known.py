"""Where Tenfold differs from TensorFlow on purpose, or TensorFlow's own answer is no rule: the op, what, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from support.kernel_net.draw import objects
from tenfold_core import dtypes
from tenfold_protos import summary_pb2

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Known:
    """Of one op."""

    why: str
    #: Outputs that are not compared.
    outputs: tuple[int, ...] = ()
    #: Of which attributes that holds.
    when: Callable[[dict[str, Any]], bool] = lambda attrs: True
    #: Times the usual tolerance.
    slack: float = 1.0
    #: Tenfold refuses what TensorFlow takes.
    is_stricter: bool = False
    #: What an output says, where its bytes are the library's.
    reading: Callable[[Any], Any] | None = None
    #: Inputs and attributes of cases that are left out.
    leaves: Callable[[Any], bool] = lambda case: False
    #: Words of TensorFlow's refusals of what Tenfold accepts.
    accepts: tuple[str, ...] = ()

    def compares(self, output: int, attrs: dict[str, Any]) -> bool:
        return output not in self.outputs or not self.when(attrs)


def _stricter(why: str, *ops: str) -> dict[str, Known]:
    return {op: Known(why, is_stricter=True) for op in ops}


def _inference(attrs: dict[str, Any]) -> bool:
    return not attrs["is_training"]


def _no_peephole(attrs: dict[str, Any]) -> bool:
    return not attrs["use_peephole"]


def _texts(attrs: dict[str, Any]) -> bool:
    return bool(attrs["T"] is dtypes.string)


def _pixels(files: np.ndarray) -> np.ndarray:
    """All pixels of PNG files, with their shapes before them."""
    from tenfold_kernels.cpu._png import decode_png

    made = [np.zeros(0, np.int64)]
    for file in files.ravel().tolist():
        pixels = decode_png(file, 0, np.uint16 if file[24] == 16 else np.uint8)
        made += [np.array(pixels.shape), pixels.ravel()]
    return np.concatenate(made).astype(np.int64)


def _pixels_of_summary(value: np.ndarray) -> np.ndarray:
    """Of each image its sizes, the length of its tag, and its pixels."""
    found = [np.zeros(0, np.int64)]
    for each in summary_pb2.Summary.FromString(value.item()).value:
        image = each.image
        file = objects([image.encoded_image_string])
        found += [np.array([image.height, image.width, image.colorspace, len(each.tag)]), _pixels(file)]
    return np.concatenate(found)


_VECTORS = "of several vectors that are as good, each library gives others"
_FILES = "the bytes of a compressed file are the library's; tests of their own decode them"

KNOWN: dict[str, Known] = {
    **_stricter(
        "sizes that do not belong together: TensorFlow reads what is behind the end, or looks at the first alone",
        *(
            "BatchNormWithGlobalNormalization",
            "FractionalAvgPoolGrad",
            "TensorStridedSliceUpdate",
            "SdcaOptimizer",
            "SdcaOptimizerV2",
        ),
        *("RaggedBincount", "ParseExample", "GRUBlockCell", "GRUBlockCellGrad"),
        *("StatelessRandomNormalV2", "StatelessRandomUniformFullIntV2", "StatelessTruncatedNormalV2"),
        *(
            "SparseReduceMax",
            "SparseReduceMaxSparse",
            "SparseReduceSum",
            "SparseReduceSumSparse",
            "SparseSegmentSumGrad",
        ),
        *("EncodeJpeg", "ScaleAndTranslate", "SegmentSumV2", "SegmentProdV2", "SegmentMaxV2", "SegmentMinV2"),
        *("StatelessRandomUniformV2", "StatelessRandomUniformIntV2", "StatelessRandomGammaV3"),
    ),
    **_stricter(
        "indices and shapes out of bounds: TensorFlow hands them on or drops them",
        *("SparseConcat", "SparseCross", "SparseCrossHashed", "SparseCrossV2", "SparseReorder", "SparseReshape"),
        *("SparseSoftmax", "DataFormatDimMap", "SparseFillEmptyRows", "BroadcastArgs", "SparseSlice", "SparseSplit"),
        *("SparseSparseMinimum", "SparseSparseMaximum", "SparseAdd", "SparseDenseCwiseAdd"),
    ),
    **_stricter(
        "windows, strides and rates below 1, or of a batch: TensorFlow computes something where it can",
        *("AvgPool3DGrad", "MaxPoolGrad", "MaxPoolGradGrad", "MaxPoolV2", "MaxPoolGradV2", "MaxPoolGradGradV2"),
        *(
            "MaxPool3DGradGrad",
            "ResizeNearestNeighborGrad",
            "Mfcc",
            "ScaleAndTranslateGrad",
            "MaxPool3DGrad",
            "AvgPoolGrad",
            "MaxPool3D",
            "AvgPool3D",
        ),
    ),
    **_stricter(
        "a matrix without an inverse, or with nan",
        "MatrixTriangularSolve",
        "BatchMatrixTriangularSolve",
        "Cholesky",
        "BatchCholesky",
    ),
    **_stricter("as above, in the gradient", "CholeskyGrad", "BatchCholeskyGrad", "TridiagonalSolve"),
    **dict.fromkeys(("Svd", "BatchSvd"), Known(_VECTORS, outputs=(1, 2), slack=8)),
    **dict.fromkeys(("SelfAdjointEigV2", "BatchSelfAdjointEigV2"), Known(_VECTORS, outputs=(1,), slack=8)),
    "Eig": Known("the order of values is the library's, too", outputs=(0, 1)),
    **dict.fromkeys(("SelfAdjointEig", "BatchSelfAdjointEig"), Known(_VECTORS, outputs=(0,))),
    "EncodePng": Known(_FILES, reading=_pixels),
    "ImageSummary": Known(_FILES, reading=_pixels_of_summary),
    "DecodeJSONExample": Known("numbers stand packed in Tenfold's message, one by one in TensorFlow's", outputs=(0,)),
    **dict.fromkeys(
        ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"),
        Known(
            "what only a gradient of training reads",
            outputs=(3, 4, 5),
            when=_inference,
            leaves=lambda case: not case.inputs[0].size,
        ),
    ),
    **dict.fromkeys(
        ("BlockLSTMGrad", "BlockLSTMGradV2"),
        Known(
            "TensorFlow sets no gradients of peepholes that there are not",
            outputs=(4, 5, 6),
            when=_no_peephole,
            is_stricter=True,
        ),
    ),
    "LSTMBlockCellGrad": Known("as above", outputs=(2, 3, 4), when=_no_peephole, is_stricter=True),
    **dict.fromkeys(
        ("BlockLSTM", "BlockLSTMV2", "LSTMBlockCell"),
        Known("peepholes that are not used may have any size", accepts=("cell_size",), is_stricter=True),
    ),
    "Round": Known("TensorFlow gives zeros for integers", outputs=(0,), when=lambda attrs: attrs["T"].is_integer),
    **dict.fromkeys(
        ("DecodeJpeg", "DecodeAndCropJpeg"),
        Known(
            "of pictures smaller than a block the library takes another mean",
            leaves=lambda case: case.attrs["ratio"] > 1,
        ),
    ),
    "ExtractJpegShape": Known("the shape is known before the end of the file", accepts=("Invalid JPEG data",)),
    "StringNGrams": Known("no splits at all", leaves=lambda case: not case.inputs[1].size, is_stricter=True),
    "TensorSummaryV2": Known(
        "no metadata", leaves=lambda case: len(case.inputs) == 3 and b"n" not in case.inputs[2].ravel()[0]
    ),
    **dict.fromkeys(
        ("Conv2DBackpropInput", "Conv2DBackpropFilter"),
        Known("TensorFlow's CPU has no gradient of a dilated convolution", accepts=("dilation rates larger",)),
    ),
    "DepthwiseConv2dNativeBackpropFilter": Known(
        "TensorFlow's CPU leaves dilations out of the gradient", is_stricter=True, accepts=("doesn't match computed",)
    ),
    "DepthwiseConv2dNativeBackpropInput": Known(
        "TensorFlow's CPU leaves dilations out of the gradient", is_stricter=True, accepts=("doesn't match computed",)
    ),
    "QuantizeAndDequantizeV2": Known(
        "ends of each channel are of use here too; one bit has no step",
        accepts=("must be a scalar",),
        leaves=lambda case: case.attrs["num_bits"] == 1,
    ),
    "ParseSequenceExample": Known(
        "no sequence at all has no elements that differ", accepts=("Inconsistent max number",)
    ),
    "ParseSequenceExampleV2": Known("as above", accepts=("Inconsistent max number",)),
    "SplitV": Known("one part may be the rest", accepts=("there is only one output",)),
    "BatchNormWithGlobalNormalizationGrad": Known("sums of halves in another order", slack=8, is_stricter=True),
    "ResizeBicubicGrad": Known("in float32 on both sides", slack=100),
    "StatelessShuffle": Known("there is nothing to shuffle", accepts=("counter must be", "Unsupported algorithm")),
    "Where": Known("a scalar has one place, of no numbers", accepts=("Unhandled input dimensions: 0",)),
    "ArgMax": Known("TensorFlow reads an axis of 16 bits as 32", accepts=("Expected dimension",)),
    "ArgMin": Known("TensorFlow reads an axis of 16 bits as 32", accepts=("Expected dimension",)),
    **dict.fromkeys(
        ("Conv3DBackpropInput", "Conv3DBackpropInputV2"),
        Known("images of no channels have none in their gradient", accepts=("same number of channels",)),
    ),
    "Conv3DBackpropFilter": Known("convolutions of groups have gradients here", accepts=("same number of channels",)),
    "Conv3DBackpropFilterV2": Known("convolutions of groups have gradients here", accepts=("same number of channels",)),
    "FractionalMaxPoolGrad": Known(
        "where the outputs say what the maxima are, no window is searched again",
        accepts=("tensor_out", "Pooling region"),
        is_stricter=True,
    ),
    **dict.fromkeys(
        (
            "TensorScatterMax",
            "TensorScatterMin",
            "TensorScatterSub",
            "TensorScatterAdd",
            "TensorScatterUpdate",
            "ScatterNdNonAliasingAdd",
        ),
        Known("a vector of indices is one place, as in ScatterNd", accepts=("of indices", "does not index")),
    ),
    "SparseSliceGrad": Known("places that nothing leads to are left out", accepts=("aren't all propagated",)),
    **dict.fromkeys(
        ("SerializeSparse", "SerializeManySparse"),
        Known("texts have another field", outputs=(0,), when=_texts, is_stricter=True),
    ),
}
