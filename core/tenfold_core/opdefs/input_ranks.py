"""How many dimensions each input of an op must have: what TensorFlow refuses while the graph is built.

A line says for a group of ops what their inputs need, in order, the rest may be anything: a number, with + at least so
many dimensions, with - at most, * any. A list has it for each of its tensors. Inputs that are handles are left out, and
ops where the number depends on the value (lists of tensors take -1 for a shape) or on the other inputs.
The ranks are what releases 1.15 and 2.21 say when they are asked; read by shape_inference.py, before the shape function
of the op, which checks what goes beyond ranks.
"""

from __future__ import annotations

import functools

_TABLE = """
0: DecodeBmp DecodeGif DecodeImage DecodeJpeg DecodePng DecodeWav ExtractJpegShape LoopCond ParseSingleExample PrintV2
    ReadFile RefSelect TensorArrayV3
0 1: DecodeAndCropJpeg
2 0: EncodeWav
3 0: Mfcc
1: AvgPool3DGrad AvgPoolGrad Conv2DBackpropInput Conv3DBackpropInputV2 DepthwiseConv2dNativeBackpropInput Empty
    InvertPermutation RandomGamma RandomPoissonV2 RandomStandardNormal RandomUniform SdcaFprint StatelessRandomGetKeyCounter
    StatelessRandomGetKeyCounterAlg StridedSliceGrad TakeManySparseFromTensorsMap TruncatedNormal Unique
1+: DeserializeSparse Diag FFT Gather HSVToRGB IFFT LogSoftmax MatrixDiag NthElement RGBToHSV Softmax SplitV TopKV2
    Unpack
1-: AnonymousMutableDenseHashTable MatchingFiles MutableDenseHashTableV2
2: AllCandidateSampler AudioSpectrogram DeserializeManySparse FixedUnigramCandidateSampler
    LearnedUnigramCandidateSampler LogUniformCandidateSampler SparseDenseCwiseAdd SparseDenseCwiseDiv SparseDenseCwiseMul
    ThreadUnsafeUnigramCandidateSampler UniformCandidateSampler
2+: BiasAddGrad Cholesky CholeskyGrad Eig FFT2D IFFT2D LogMatrixDeterminant Lu MatrixDeterminant MatrixDiagPart
    MatrixInverse MatrixSquareRoot Qr SelfAdjointEigV2 Svd
3: EncodeJpeg
3+: AdjustHue AdjustSaturation EncodePng FFT3D IFFT3D
4: AvgPool DepthToSpace ExtractImagePatches LRN MaxPool MaxPoolGrad MaxPoolGradV2 MaxPoolGradWithArgmax
    MaxPoolWithArgmax SpaceToDepth
5: AvgPool3D ExtractVolumePatches MaxPool3D MaxPool3DGrad
* 0: AccumulatorApplyGradient AccumulatorSetGlobalStep AccumulatorTakeGradient ApplyGradientDescent ArgMax ArgMin
    AssertCardinalityDataset BatchDataset Bincount BytesProducedStatsDataset CacheDataset CacheDatasetV2
    InitializeTableFromTextFile InitializeTableFromTextFileV2 LatencyStatsDataset LoadAndRemapMatrix PaddedBatchDataset PrefetchDataset ReaderRestoreState
    ReaderRestoreStateV2 RefSwitch RegexFullMatch RepeatDataset ResourceAccumulatorApplyGradient
    ResourceAccumulatorSetGlobalStep ResourceAccumulatorTakeGradient ResourceApplyGradientDescent ShuffleDatasetV2
    SkipDataset SparseAccumulatorApplyGradient SparseAccumulatorTakeGradient Switch TakeDataset TensorArrayConcatV2
    TensorArrayConcatV3
* 1: BroadcastTo Conv2DBackpropFilter Conv3DBackpropFilterV2 DepthwiseConv2dNativeBackpropFilter Reshape Reverse
    ReverseV2 SparseToDense Tile UnravelIndex
* 1+: GatherNd LookupTableRemoveV2 ResourceGatherNd
* 1-: All Any DecodeCSV EuclideanNorm Max Mean Min Prod ReduceJoin Sum
* 2: MirrorPad MirrorPadGrad Pad PadV2 SparseSliceGrad
0 0: GenerateVocabRemapping Restore ShardedFilespec WriteFile
0 1: ParseSingleSequenceExample Save
0 1+: Concat
1 0: Fill MergeV2Checkpoints StringSplit StringSplitV2
1 1: BroadcastArgs BroadcastGradientArgs ListDiff ParseExample ParseSequenceExample RaggedFillEmptyRowsGrad
    SparseFillEmptyRowsGrad StatelessParameterizedTruncatedNormal StatelessRandomGammaV2 StatelessRandomNormal
    StatelessRandomPoisson StatelessRandomUniform StatelessRandomUniformFullInt StatelessTruncatedNormal StringNGrams
    UnicodeEncode
1 1+: RaggedTensorToSparse
1+ 0: ConcatV2 Fingerprint
1+ 1: IRFFT RFFT ReverseSequence SegmentMax SegmentMean SegmentMin SegmentProd SegmentSum
1+ 1+: Cross ScatterNdNonAliasingAdd TensorScatterAdd TensorScatterMax TensorScatterMin TensorScatterSub
    TensorScatterUpdate
1- 1-: ParseExampleV2 ParseSequenceExampleV2
2 0: Multinomial
2 1: ComputeAccidentalHits InTopK InTopKV2 SparseSoftmaxCrossEntropyWithLogits
2 2: LowerBound MatMul SparseMatMul UpperBound
2+ 1: BiasAdd BiasAddV1 IRFFT2D RFFT2D
2+ 1+: MatrixSetDiag
2+ 2+: BatchMatMul BatchMatMulV2 BatchMatMulV3 DenseToDenseSetOperation MatrixSolve MatrixTriangularSolve
    TridiagonalSolve
2- 0: DenseBincount
3+ 0: AdjustContrastv2
3+ 1: IRFFT3D RFFT3D
4 1: ResizeArea ResizeBicubic ResizeBilinear ResizeNearestNeighbor ResizeNearestNeighborGrad
4 2: BatchToSpace SpaceToBatch
4 3: Dilation2D DrawBoundingBoxes
4 4: Conv2D DepthwiseConv2dNative MaxPoolGradGrad
5 5: Conv3D MaxPool3DGradGrad
* * 0: ApplyAdagrad ReaderReadUpTo ReaderReadUpToV2 ResourceApplyAdagrad SegmentMaxV2 SegmentMinV2 SegmentProdV2
    SegmentSumV2 UnsortedSegmentJoin UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd UnsortedSegmentSum
* * 1: SparseAdd
* * 1-: LookupTableFind
* 0 0: BatchDatasetV2 FakeQuantWithMinMaxVars RegexReplace ShardDataset TensorArrayReadV3
* 1 0: HistogramFixedWidth TensorArrayGatherV3
* 1 1: FusedBatchNormV3 InitializeTable InitializeTableV2 Slice
* 1 1+: BarrierInsertMany LookupTableImportV2
* 1+ 1+: ResourceScatterNdAdd ResourceScatterNdMax ResourceScatterNdMin ResourceScatterNdSub ResourceScatterNdUpdate
    ScatterNdAdd ScatterNdMax ScatterNdMin ScatterNdSub ScatterNdUpdate
* 1- 1-: QuantizeAndDequantizeV2 QuantizeAndDequantizeV4
* 2 2: SparseAddGrad
0 0 0: LinSpace Range RangeDataset RestoreSlice ShardedFilename
0 1 1: RestoreV2 SaveSlices SaveV2
1 0 0: RandomUniformInt
1+ * 0: GatherV2
1+ 1 1: FakeQuantWithMinMaxVarsPerChannel SparseSegmentMean SparseSegmentSqrtN SparseSegmentSum
1+ 1+ 1: ScatterNd
1+ 1- 1-: Roll
1- 0 0: TFRecordDataset TextLineDataset
1- 1- 1-: RaggedRange
2 0 1: StatelessMultinomial
2 1 0: NonMaxSuppression
2 1 1: AddManySparseToTensorsMap AddSparseToTensorsMap SerializeManySparse SerializeSparse SparseConcat SparseReorder
    SparseReshape SparseSoftmax
2+ 1+ 1-: MatrixSetDiagV2 MatrixSetDiagV3
2+ 1- 0: MatrixDiagPartV2 MatrixDiagPartV3
2+ 2+ 0: MatrixSolveLs
4 * 4: MaxPoolGradGradWithArgmax
4 1 1: FusedBatchNorm FusedBatchNormV2 MaxPoolV2
4 4 4: LRNGrad
* * * 1: CropAndResizeGradImage
* * 0 0: ApplyAdagradV2 FakeQuantWithMinMaxVarsGradient ResourceApplyAdagradV2
* * 1 0: TensorArraySplitV3
* 0 * 0: TensorArrayWriteV3
* 0 0 0: ApplyProximalGradientDescent ResourceApplyProximalGradientDescent ShuffleDataset ShuffleDatasetV3
* 1 1 1: StridedSlice
* 1 1+ 0: TensorArrayScatterV3
* 1- 1- 0: QuantizeAndDequantizeV3
1 1 0 0: RaggedFillEmptyRows StatelessRandomUniformInt
1 1 1 0: StatelessRandomNormalV2 StatelessRandomUniformFullIntV2 StatelessRandomUniformV2 StatelessTruncatedNormalV2
* * 1- 1-: QuantizeAndDequantizeV4Grad
1+ 1 1 0: SparseSegmentMeanGrad SparseSegmentMeanGradV2 SparseSegmentMeanWithNumSegments SparseSegmentSqrtNGrad
    SparseSegmentSqrtNGradV2 SparseSegmentSqrtNWithNumSegments SparseSegmentSumGrad SparseSegmentSumGradV2
    SparseSegmentSumWithNumSegments
1- 0 0 1-: TFRecordDatasetV2
2 1 0 0: NonMaxSuppressionV2
2 1 1 0: SparseFillEmptyRows
2 1 1 2: SparseTensorDenseMatMul
2+ 2+ 2+ 2+: TridiagonalMatMul
4 2 1 1: CropAndResize
* * 0 * 0: ApplyMomentum ResourceApplyKerasMomentum ResourceApplyMomentum
* * 0 * 1: ResourceSparseApplyAdagrad
* * 0 0 0: ApplyProximalAdagrad MapAndBatchDataset ResourceApplyProximalAdagrad
* * 0 1+ 1: SparseApplyAdagrad
* 0 * * 0: PaddedBatchDatasetV2
* 0 0 0 0: ShuffleAndRepeatDataset ShuffleAndRepeatDatasetV2 WindowDataset
1 1- 1- 1- 1-: ParameterizedTruncatedNormal
1+ 1- 0 0 0: MatrixDiagV2 MatrixDiagV3
1- 0 0 0 0: FixedLengthRecordDataset FixedLengthRecordDatasetV2
2 1 0 0 0: NonMaxSuppressionV3
4 * * 1 1: MaxPoolGradGradV2
4 4 1 1 1: FusedBatchNormGrad FusedBatchNormGradV2
* * 1 1 1: FusedBatchNormGradV3
* * * 0 0 0: ApplyAdadelta ResourceApplyAdadelta
* * 0 * 1 0: ResourceSparseApplyKerasMomentum ResourceSparseApplyMomentum
* * 0 0 * 1: ResourceSparseApplyAdagradV2
* * 0 0 0 0: ApplyAddSign ApplyPowerSign
* * 0 0 1+ 1: SparseApplyAdagradV2
* * 0 1+ 1 0: SparseApplyMomentum
* 0 0 0 * 1: ResourceSparseApplyProximalGradientDescent
* 0 0 0 1+ 1: SparseApplyProximalGradientDescent
1 1 1 0 0 0: StatelessRandomUniformIntV2
2 1 1 2 1 1: EditDistance SparseSparseMaximum SparseSparseMinimum
* * * 0 0 0 0: ApplyRMSProp ResourceApplyRMSProp
* * 0 0 0 * 1: ResourceSparseApplyProximalAdagrad
* * 0 0 0 1+ 1: SparseApplyProximalAdagrad
* * * * 0 0 0 0: ApplyAdagradDA ApplyCenteredRMSProp ApplyFtrl ApplyFtrlV2 ResourceApplyAdagradDA
    ResourceApplyCenteredRMSProp ResourceApplyFtrl ResourceApplyFtrlV2
* * * 0 0 0 * 1: ResourceSparseApplyAdadelta
* * * 0 0 0 0 0: ApplyAdaMax ResourceApplyAdaMax
* * * 0 0 0 1+ 1: SparseApplyAdadelta
* * * * 1 0 0 0 0: ResourceSparseApplyAdagradDA ResourceSparseApplyFtrl ResourceSparseApplyFtrlV2
* * * 0 0 0 0 * 1: ResourceSparseApplyRMSProp
* * * 0 0 0 0 0 0: ApplyAdam ResourceApplyAdam
* * * 0 0 0 0 1+ 1: SparseApplyRMSProp
* * * 1+ 1 0 0 0 0: SparseApplyAdagradDA SparseApplyFtrl SparseApplyFtrlV2
1- 0 0 0 0 0 0 1 1-: CSVDataset ExperimentalCSVDataset
* * * * 0 0 0 0 * 1: ResourceSparseApplyCenteredRMSProp
* * * * 0 0 0 0 0 0: ResourceApplyAdamWithAmsgrad
* * * * 0 0 0 0 1+ 1: SparseApplyCenteredRMSProp
"""

#: The least and the most dimensions of an input; None for any.
Bounds = tuple[int, int] | None
#: More dimensions than a tensor may have.
_ANY_NUMBER = 255


def _bounds(text: str) -> Bounds:
    if text == "*":
        return None
    number = int(text.rstrip("+-"))
    return (0 if text.endswith("-") else number, _ANY_NUMBER if text.endswith("+") else number)


@functools.cache
def _rows() -> dict[str, tuple[Bounds, ...]]:
    rows: dict[str, tuple[Bounds, ...]] = {}
    needs: tuple[Bounds, ...] = ()
    for line in _TABLE.strip().splitlines():
        words = line
        if not line.startswith(" "):
            left, _, words = line.partition(":")
            needs = tuple(_bounds(each) for each in left.split())
        rows |= dict.fromkeys(words.split(), needs)
    return rows


def needed_ranks(op: str) -> tuple[Bounds, ...]:
    """The bounds of the first inputs of an op, one for each argument of its definition; () if it takes any."""
    return _rows().get(op, ())


def check_rank(bounds: tuple[int, int], rank: int) -> None:
    """Raises ValueError, in TensorFlow's words, for a rank outside of the bounds."""
    least, most = bounds
    if least <= rank <= most:
        return
    if least == most:
        raise ValueError(f"Shape must be rank {least} but is rank {rank}")
    word, bound = ("least", least) if rank < least else ("most", most)
    raise ValueError(f"Shape must be at {word} rank {bound} but is rank {rank}")
