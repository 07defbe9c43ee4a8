"""Programs of one line for ops whose inputs chance does not hit: what their kernels are called with, by op.

Used by huge_numbers.py, which changes one number of such a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import tenfold as tf
from tenfold_kernels import registry

if TYPE_CHECKING:
    from collections.abc import Callable

_RAW = tf.raw_ops
_IMAGE = np.linspace(0, 1, 64, dtype=np.float32).reshape(1, 4, 4, 4)
_VOLUME = np.linspace(0, 1, 128, dtype=np.float32).reshape(1, 4, 4, 4, 2)
_BOXES = np.array([[0, 0, 1, 1], [0.1, 0.1, 0.9, 0.8]], np.float32)


def _fed(value: Any, dtype: Any = None) -> Any:
    """Not folded, and without a shape that building would check."""
    array = np.asarray(value, dtype)
    return tf.placeholder_with_default(array, [None] * array.ndim)


def _sparse(rows: int = 3) -> Any:
    return tf.SparseTensor(_fed([[0, 0], [1, 2]], np.int64), _fed([1.0, 2.0], np.float32), _fed([rows, 4], np.int64))


def _gradients(function: Callable[..., Any], *values: Any) -> Any:
    inputs = [_fed(each) for each in values]
    return tf.gradients(function(*inputs), inputs)


#: Each gives calls of the ops that are named, and of others.
PROGRAMS: dict[tuple[str, ...], Callable[[], Any]] = {
    ("Pad", "PadV2", "MirrorPad"): lambda: [
        tf.pad(_fed(_IMAGE[0, 0]), _fed([[1, 2], [0, 1]], np.int32)),
        tf.pad(_fed(_IMAGE[0, 0]), _fed([[1, 2], [0, 1]], np.int64), constant_values=1.0),
        tf.pad(_fed(_IMAGE[0, 0]), _fed([[1, 2], [0, 1]], np.int32), "REFLECT")],
    ("Roll", "SplitV", "ScatterNd", "SparseToDense"): lambda: [
        tf.roll(_fed([1, 2, 3]), _fed([1], np.int32), _fed([0], np.int32)),
        tf.split(_fed([1, 2, 3]), _fed([1, 2], np.int32), 0, num=2),
        tf.scatter_nd(_fed([[1], [2]], np.int32), _fed([1.0, 2.0]), _fed([4], np.int32)),
        tf.sparse_to_dense(_fed([1, 2], np.int64), _fed([4], np.int64), 1.0)],
    ("TensorScatterAdd", "TensorScatterSub", "TensorScatterMax", "TensorScatterMin"): lambda: [
        getattr(tf, f"tensor_scatter_nd_{name}", tf.tensor_scatter_nd_add)(
            _fed([1.0, 2.0, 3.0]), _fed([[1]], np.int32), _fed([1.0])) for name in ("add", "sub", "max", "min")],
    ("StridedSliceGrad", "SliceGrad"): lambda: _gradients(lambda x: tf.strided_slice(
        x, _fed([0, 1], np.int32), _fed([2, 3], np.int32), _fed([1, 2], np.int32)), _IMAGE[0, 0]),
    ("SparseReshape", "SparseReorder", "SparseSlice", "SparseConcat", "SparseAdd", "SparseSplit"): lambda: [
        tf.sparse_reshape(_sparse(), _fed([2, 6], np.int64)).indices, tf.sparse_reorder(_sparse()).indices,
        tf.sparse_slice(_sparse(), _fed([0, 0], np.int64), _fed([2, 3], np.int64)).values,
        tf.sparse_concat(0, [_sparse(), _sparse()]).indices, tf.sparse_add(_sparse(), _sparse()).values,
        tf.sparse_split(sp_input=_sparse(4), num_split=2, axis=0)[0].indices],
    ("SparseFillEmptyRows", "SparseReduceSum", "SparseReduceMax", "SparseTensorDenseMatMul", "SparseSoftmax"): lambda: [
        tf.sparse_fill_empty_rows(_sparse(), 0.0)[0].indices, tf.sparse_reduce_sum(_sparse(), _fed([1], np.int32)),
        tf.sparse_reduce_max(_sparse(), _fed([1], np.int32)), tf.sparse_softmax(_sparse()).values,
        tf.sparse_tensor_dense_matmul(_sparse(), _fed(np.ones((4, 2), np.float32)))],
    ("SparseDenseCwiseMul", "SparseDenseCwiseAdd", "SparseDenseCwiseDiv", "SparseTensorDenseAdd",
     "SparseSparseMaximum", "SparseSparseMinimum"): lambda: [
        (_sparse() * _fed(np.ones((3, 4), np.float32))).values, (_sparse() / _fed(np.ones((3, 4), np.float32))).values,
        tf.sparse_add(_sparse(), _fed(np.ones((3, 4), np.float32))), tf.sparse_maximum(_sparse(), _sparse()).values,
        tf.sparse_minimum(_sparse(), _sparse()).values],
    ("SparseCross", "SerializeManySparse", "DeserializeManySparse", "SerializeSparse", "DeserializeSparse"): lambda: [
        tf.serialize_many_sparse(_sparse()), tf.serialize_sparse(_sparse()),
        tf.deserialize_many_sparse(tf.serialize_many_sparse(_sparse()), tf.float32, 2).indices],
    ("SetSize", "DenseToDenseSetOperation", "DenseToSparseSetOperation", "SparseToSparseSetOperation"): lambda: [
        tf.sets.set_intersection(_fed([[1, 2]]), _fed([[2, 3]])).values,
        tf.sets.set_size(tf.SparseTensor(_fed([[0, 0], [1, 2]], np.int64), _fed([1, 2]), _fed([3, 4], np.int64)))],
    ("SegmentMaxV2", "SegmentMinV2", "SegmentProdV2", "SegmentSumV2"): lambda: [
        getattr(_RAW, f"Segment{name}V2")(data=_fed([1.0, 2.0]), segment_ids=_fed([0, 1], np.int32),
                                          num_segments=_fed(3, np.int32)) for name in ("Max", "Min", "Prod", "Sum")],
    ("SparseSegmentSumWithNumSegments", "SparseSegmentMeanWithNumSegments", "SparseSegmentSumGrad",
     "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad"): lambda: [
        *[getattr(_RAW, f"SparseSegment{name}WithNumSegments")(
            data=_fed([1.0, 2.0], np.float32), indices=_fed([0, 1], np.int32), segment_ids=_fed([0, 1], np.int32),
            num_segments=_fed(3, np.int32)) for name in ("Sum", "Mean", "SqrtN")],
        *[getattr(_RAW, f"SparseSegment{name}Grad")(
            grad=_fed([1.0, 2.0], np.float32), indices=_fed([0, 1], np.int32), segment_ids=_fed([0, 1], np.int32),
            output_dim0=_fed(3, np.int32)) for name in ("Sum", "Mean", "SqrtN")]],
    ("SparseBincount", "RaggedBincount"): lambda: [
        _RAW.SparseBincount(indices=_fed([[0], [2]], np.int64), values=_fed([1, 2], np.int32),
                            dense_shape=_fed([3], np.int64), size=_fed(4, np.int32), weights=_fed([], np.float32),
                            binary_output=False),
        _RAW.RaggedBincount(splits=_fed([0, 1, 2], np.int64), values=_fed([1, 2], np.int32), size=_fed(4, np.int32),
                            weights=_fed([], np.float32), binary_output=False)],
    ("RaggedTensorToSparse", "RaggedFillEmptyRows"): lambda: [
        _RAW.RaggedTensorToSparse(rt_nested_splits=[_fed([0, 1, 2], np.int64)], rt_dense_values=_fed([1.0, 2.0]))[0],
        _RAW.RaggedFillEmptyRows(value_rowids=_fed([0, 2], np.int64), values=_fed([1.0, 2.0]), nrows=_fed(4, np.int64),
                                 default_value=_fed(0.0))[0]],
    ("CropAndResize", "CropAndResizeGradImage", "CropAndResizeGradBoxes"): lambda: _gradients(
        lambda image, boxes: tf.image.crop_and_resize(image, boxes, _fed([0, 0], np.int32), _fed([2, 3], np.int32)),
        _IMAGE, _BOXES),
    ("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea", "ResizeBilinearGrad",
     "ResizeNearestNeighborGrad"): lambda: [
        tf.image.resize_area(_fed(_IMAGE), _fed([2, 3], np.int32)),
        *[_gradients(lambda x, f=function: f(x, _fed([2, 3], np.int32)), _IMAGE) for function in (
            tf.image.resize_bilinear, tf.image.resize_nearest_neighbor, tf.image.resize_bicubic)]],
    ("ScaleAndTranslate", "ScaleAndTranslateGrad"): lambda: _gradients(lambda x: _RAW.ScaleAndTranslate(
        images=x, size=_fed([3, 5], np.int32), scale=_fed([1.0, 2.0], np.float32),
        translation=_fed([0.0, 1.0], np.float32), kernel_type="lanczos3", antialias=True), _IMAGE),
    ("ExtractGlimpse", "ExtractGlimpseV2"): lambda: tf.image.extract_glimpse(
        _fed(_IMAGE), _fed([2, 2], np.int32), _fed([[0.1, 0.2]], np.float32)),
    ("NonMaxSuppression", "NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5",
     "NonMaxSuppressionWithOverlaps", "CombinedNonMaxSuppression"): lambda: [
        _RAW.NonMaxSuppression(boxes=_fed(_BOXES), scores=_fed([0.5, 0.6], np.float32),
                               max_output_size=_fed(2, np.int32)),
        *[getattr(_RAW, f"NonMaxSuppressionV{version}")(
            boxes=_fed(_BOXES), scores=_fed([0.5, 0.6], np.float32), max_output_size=_fed(2, np.int32),
            iou_threshold=_fed(0.5, np.float32), score_threshold=_fed(0.1, np.float32),
            **({"soft_nms_sigma": _fed(0.1, np.float32)} if version == 5 else {})) for version in (3, 4, 5)],
        _RAW.NonMaxSuppressionWithOverlaps(
            overlaps=_fed(np.eye(2), np.float32), scores=_fed([0.5, 0.6], np.float32),
            max_output_size=_fed(2, np.int32), overlap_threshold=_fed(0.5, np.float32),
            score_threshold=_fed(0.1, np.float32)),
        _RAW.CombinedNonMaxSuppression(
            boxes=_fed(_BOXES[None, :, None]), scores=_fed([[[0.5], [0.6]]], np.float32),
            max_output_size_per_class=_fed(2, np.int32), max_total_size=_fed(3, np.int32),
            iou_threshold=_fed(0.5, np.float32), score_threshold=_fed(0.1, np.float32))],
    ("DrawBoundingBoxes", "SampleDistortedBoundingBoxV2"): lambda: [
        tf.image.draw_bounding_boxes(_fed(_IMAGE[..., :3]), _fed(_BOXES[None])),
        tf.image.sample_distorted_bounding_box(_fed([40, 40, 3], np.int32), _fed(_BOXES[None]), seed=1)[0]],
    ("StatelessRandomUniformV2", "StatelessRandomNormalV2", "StatelessTruncatedNormalV2",
     "StatelessRandomUniformFullIntV2"): lambda: [
        getattr(_RAW, name)(shape=_fed([2], np.int32), key=_fed([1], np.uint64), counter=_fed([1, 2], np.uint64),
                            alg=_fed(1, np.int32), dtype=kind) for name, kind in (
            ("StatelessRandomUniformV2", tf.float32), ("StatelessRandomNormalV2", tf.float32),
            ("StatelessTruncatedNormalV2", tf.float32), ("StatelessRandomUniformFullIntV2", tf.int32))],
    ("ParameterizedTruncatedNormal", "StatelessRandomPoisson"): lambda: [
        _RAW.ParameterizedTruncatedNormal(
            shape=_fed([2], np.int32), means=_fed([0.0], np.float32), stdevs=_fed([1.0], np.float32),
            minvals=_fed([-1.0], np.float32), maxvals=_fed([1.0], np.float32), seed=1, seed2=2),
        _RAW.StatelessRandomPoisson(shape=_fed([2], np.int32), seed=_fed([1, 2], np.int32),
                                    lam=_fed([3.0, 20.0], np.float32), dtype=tf.int32)],
    ("FixedUnigramCandidateSampler", "LogUniformCandidateSampler", "LearnedUnigramCandidateSampler",
     "ThreadUnsafeUnigramCandidateSampler", "ComputeAccidentalHits"): lambda: [
        tf.nn.fixed_unigram_candidate_sampler(
            _fed([[0]], np.int64), 1, 2, True, 3, unigrams=[1.0, 2.0, 3.0], seed=1)[0],
        tf.nn.log_uniform_candidate_sampler(_fed([[0]], np.int64), 1, 2, True, 9, seed=1)[0],
        tf.nn.learned_unigram_candidate_sampler(_fed([[0]], np.int64), 1, 2, True, 9, seed=1)[0],
        tf.nn.compute_accidental_hits(_fed([[0]], np.int64), _fed([0, 1], np.int64), 1)[0]],
    ("InTopKV2", "GatherTree"): lambda: [
        _RAW.InTopKV2(predictions=_fed([[0.1, 0.2]], np.float32), targets=_fed([1], np.int32), k=_fed(1, np.int32)),
        _RAW.GatherTree(step_ids=_fed(np.ones((2, 1, 2)), np.int32), parent_ids=_fed(np.zeros((2, 1, 2)), np.int32),
                        max_sequence_lengths=_fed([2], np.int32), end_token=_fed(9, np.int32))],
    ("CTCLoss", "CTCBeamSearchDecoder", "CTCGreedyDecoder"): lambda: [
        tf.nn.ctc_loss(tf.SparseTensor(_fed([[0, 0]], np.int64), _fed([1], np.int32), _fed([1, 2], np.int64)),
                       _fed(np.zeros((3, 1, 4)), np.float32), _fed([3], np.int32)),
        tf.nn.ctc_beam_search_decoder(_fed(np.zeros((3, 1, 4)), np.float32), _fed([3], np.int32), 4, 2)[1],
        tf.nn.ctc_greedy_decoder(_fed(np.zeros((3, 1, 4)), np.float32), _fed([3], np.int32))[1]],
    ("DecodeRaw", "DecodePaddedRaw", "DecodeBase64", "DecodePng", "DecodeWav"): lambda: [
        tf.decode_raw(_fed(b"abcd", object), tf.int16), tf.decode_base64(_fed(b"YQ", object)),
        _RAW.DecodePaddedRaw(input_bytes=_fed([b"abcd"], object), fixed_length=_fed(8, np.int32), out_type=tf.int16),
        tf.image.decode_png(tf.image.encode_png(_fed((_IMAGE[0, ..., :3] * 255).astype(np.uint8)))),
        tf.audio.decode_wav(tf.audio.encode_wav(_fed(_IMAGE[0, 0]), _fed(8000, np.int32)), 4, 9)[0]],
    ("StringNGrams", "StringSplitV2", "UnsortedSegmentJoin"): lambda: [
        _RAW.StringNGrams(data=_fed([b"a", b"b", b"c"], object), data_splits=_fed([0, 3], np.int64), separator="-",
                          ngram_widths=[2], left_pad="l", right_pad="r", pad_width=1, preserve_short_sequences=True)[0],
        _RAW.StringSplitV2(input=_fed([b"a b"], object), sep=_fed(b" ", object), maxsplit=-1)[1],
        _RAW.UnsortedSegmentJoin(inputs=_fed([b"a", b"b"], object), segment_ids=_fed([0, 1], np.int32),
                                 num_segments=_fed(3, np.int32), separator="")],
    ("UnicodeDecode", "UnicodeDecodeWithOffsets", "UnicodeEncode", "UnicodeTranscode"): lambda: [
        _RAW.UnicodeDecode(input=_fed([b"ab"], object), input_encoding="UTF-8")[0],
        _RAW.UnicodeEncode(input_values=_fed([97, 98], np.int32), input_splits=_fed([0, 1, 2], np.int64),
                           output_encoding="UTF-8"),
        _RAW.UnicodeTranscode(input=_fed([b"ab"], object), input_encoding="UTF-8", output_encoding="UTF-16-BE")],
    ("Mfcc", "AudioSpectrogram"): lambda: _RAW.Mfcc(
        spectrogram=_fed(np.ones((1, 2, 17)), np.float32), sample_rate=_fed(8000, np.int32)),
    ("Conv2DBackpropInput", "Conv2DBackpropFilter", "DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput",
     "DepthwiseConv2dNativeBackpropFilter"): lambda: [
        _gradients(lambda x, f: tf.nn.conv2d(x, f, [1, 2, 2, 1], "SAME"), _IMAGE, np.ones((2, 2, 4, 2), np.float32)),
        _gradients(lambda x, f: tf.nn.depthwise_conv2d_native(x, f, [1, 1, 1, 1], "SAME"), _IMAGE,
                   np.ones((2, 2, 4, 2), np.float32))],
    ("Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2", "MaxPool3DGrad", "AvgPool3DGrad"): lambda: [
        _gradients(lambda x, f: tf.nn.conv3d(x, f, [1, 2, 2, 2, 1], "SAME"), _VOLUME,
                   np.ones((2, 2, 2, 2, 1), np.float32)),
        _gradients(lambda x: tf.nn.max_pool3d(x, [1, 2, 2, 2, 1], [1, 2, 2, 2, 1], "SAME"), _VOLUME),
        _gradients(lambda x: tf.nn.avg_pool3d(x, [1, 2, 2, 2, 1], [1, 2, 2, 2, 1], "SAME"), _VOLUME)],
    ("MaxPoolGrad", "AvgPoolGrad", "MaxPoolGradWithArgmax", "Dilation2DBackpropInput",
     "Dilation2DBackpropFilter"): lambda: [
        _gradients(lambda x: tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"), _IMAGE),
        _gradients(lambda x: tf.nn.avg_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"), _IMAGE),
        _gradients(lambda x: tf.nn.max_pool_with_argmax(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")[0], _IMAGE),
        _gradients(lambda x, f: tf.nn.dilation2d(x, f, [1, 1, 1, 1], [1, 1, 1, 1], "SAME"), _IMAGE,
                   np.ones((2, 2, 4), np.float32))],
    ("FusedPadConv2D", "FusedResizeAndPadConv2D"): lambda: [
        _RAW.FusedPadConv2D(input=_fed(_IMAGE), paddings=_fed([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32),
                            filter=_fed(np.ones((2, 2, 4, 1), np.float32)), mode="REFLECT", strides=[1, 1, 1, 1],
                            padding="VALID"),
        _RAW.FusedResizeAndPadConv2D(
            input=_fed(_IMAGE), size=_fed([5, 5], np.int32), paddings=_fed([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32),
            filter=_fed(np.ones((2, 2, 4, 1), np.float32)), mode="REFLECT", strides=[1, 1, 1, 1], padding="VALID")],
    ("MatrixSetDiagV2", "MatrixSetDiagV3", "QuantizeAndDequantizeV3", "IRFFT3D"): lambda: [
        _RAW.MatrixSetDiagV2(input=_fed(np.eye(3), np.float32), diagonal=_fed(np.ones((2, 3)), np.float32),
                             k=_fed([-1, 0], np.int32)),
        _RAW.QuantizeAndDequantizeV3(input=_fed([1.0, 2.0], np.float32), input_min=_fed(0.0, np.float32),
                                     input_max=_fed(1.0, np.float32), num_bits=_fed(8, np.int32)),
        _RAW.IRFFT3D(input=_fed(np.ones((2, 2, 2)), np.complex64), fft_length=_fed([2, 2, 2], np.int32),
                     Treal=tf.float32)],
    ("TensorListGather", "TensorListStack", "TensorListResize", "TensorListSplit", "TensorListScatterV2",
     "TensorListPopBack", "TensorListGetItem", "TensorListConcatV2", "TensorListPushBackBatch"): lambda: [
        _RAW.TensorListGather(input_handle=_list(), indices=_fed([1, 0], np.int32), element_shape=_fed([3], np.int32),
                              element_dtype=tf.float32),
        _RAW.TensorListStack(input_handle=_list(), element_shape=_fed([3], np.int32), element_dtype=tf.float32),
        _RAW.TensorListLength(input_handle=_RAW.TensorListResize(input_handle=_list(), size=_fed(4, np.int32))),
        _RAW.TensorListLength(input_handle=_RAW.TensorListSplit(
            tensor=_fed(np.ones((3, 2), np.float32)), element_shape=_fed([-1, 2], np.int64),
            lengths=_fed([1, 2], np.int64))),
        _RAW.TensorListLength(input_handle=_RAW.TensorListScatterV2(
            tensor=_fed(np.ones((2, 2), np.float32)), indices=_fed([0, 3], np.int32),
            element_shape=_fed([2], np.int64), num_elements=_fed(5, np.int32))),
        _RAW.TensorListPopBack(input_handle=_list(), element_shape=_fed([3], np.int32), element_dtype=tf.float32)[1],
        _RAW.TensorListGetItem(input_handle=_list(), index=_fed(1, np.int32), element_shape=_fed([3], np.int32),
                               element_dtype=tf.float32),
        _RAW.TensorListConcatV2(input_handle=_list(), element_shape=_fed([3], np.int64),
                                leading_dims=_fed([3, 3], np.int64), element_dtype=tf.float32)[0]],
    ("BlockLSTM", "LSTMBlockCell", "GRUBlockCell", "SparseCrossV2", "Fingerprint"): lambda: [
        _RAW.Fingerprint(data=_fed([[1, 2]], np.int32), method=_fed(b"farmhash64", object))],
    ("ParseExample", "ParseTensor", "ParseSingleExample"): lambda: [
        tf.parse_tensor(tf.serialize_tensor(_fed([1.0], np.float32)), tf.float32),
        tf.parse_example(_fed([b""], object), {
            "a": tf.FixedLenFeature([2], tf.float32, [1.0, 2.0]), "b": tf.VarLenFeature(tf.int64)})["a"]],
}  # fmt: skip


def _list() -> Any:
    return _RAW.TensorListFromTensor(tensor=_fed(np.ones((2, 3), np.float32)), element_shape=_fed([3], np.int32))


def recorded(op: str) -> list[tuple[dict[str, Any], list[Any]]]:
    """(attributes, inputs) of the calls of an op's kernel in the program that is there for it."""
    found: list[tuple[dict[str, Any], list[Any]]] = []
    lookup = registry.lookup

    def watched(node: registry.KernelNode, device: str) -> Any:
        build = lookup(node, device)

        def built(node: registry.KernelNode) -> Any:
            compute = build(node)
            if node.op != op:
                return compute

            def call(*inputs: Any) -> Any:
                found.append((dict(node.attrs), list(inputs)))
                return compute(*inputs)

            return call

        return built

    for ops, program in PROGRAMS.items():
        if op not in ops:
            continue
        registry.lookup = watched  # type: ignore[assignment]
        try:
            with tf.Graph().as_default(), tf.Session() as session:
                session.run(program())
        finally:
            registry.lookup = lookup
    return [(attrs, inputs) for attrs, inputs in found if all(isinstance(each, np.ndarray) for each in inputs)]
