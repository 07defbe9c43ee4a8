"""Shapes of the rarer array and math ops: what is known of the outputs, and each wrong input by itself."""

from __future__ import annotations

from typing import Any

import pytest

from support.inferred import shapes_of

S: list[Any] = []  # a scalar
NCHW = {"data_format": b"NCHW"}
TO_DEPTH, FROM_DEPTH = "SpaceToDepth", "DepthToSpace"
TO_BATCH, FROM_BATCH, TO_BATCH_ND, FROM_BATCH_ND = "SpaceToBatch", "BatchToSpace", "SpaceToBatchND", "BatchToSpaceND"
PATCHES = {"ksizes": [1, 3, 2, 1], "strides": [1, 2, 3, 1], "rates": [1, 2, 1, 1]}
VOLUMES = {"ksizes": [1, 3, 2, 4, 1], "strides": [1, 2, 3, 1, 1]}
DIAG_V2, PART_V2, SET_V2 = "MatrixDiagV2", "MatrixDiagPartV2", "MatrixSetDiagV2"
SAME, VALID = {"padding": b"SAME"}, {"padding": b"VALID"}


def block(size: int) -> dict[str, Any]:
    return {"block_size": size}


BLOCKS: list[Any] = [
    (TO_DEPTH, [[2, 6, 9, 5]], {}, block(3), [[2, 2, 3, 45]]),
    (TO_DEPTH, [[2, 5, 6, 9]], {}, block(3) | NCHW, [[2, 45, 2, 3]]),
    (TO_DEPTH, [[2, None, 9, None]], {}, block(3), [[2, None, 3, None]]),
    (FROM_DEPTH, [[2, 2, 3, 45]], {}, block(3), [[2, 6, 9, 5]]),
    (FROM_DEPTH, [[2, 45, 2, 3]], {}, block(3) | NCHW, [[2, 5, 6, 9]]),
    (FROM_DEPTH, [[2, None, 3, None]], {}, block(3), [[2, None, 9, None]]),
    (TO_BATCH, [[2, 5, 8, 7], [2, 2]], {1: [[1, 0], [0, 4]]}, block(3), [[18, 2, 4, 7]]),
    (TO_BATCH, [[None, 5, None, 7], [2, 2]], {1: [[1, 0], [0, 4]]}, block(3), [[None, 2, None, 7]]),
    (TO_BATCH, [[2, 5, 8, 7], [2, 2]], {}, block(3), [[18, None, None, 7]]),
    (FROM_BATCH, [[18, 2, 4, 7], [2, 2]], {1: [[1, 0], [0, 4]]}, block(3), [[2, 5, 8, 7]]),
    (FROM_BATCH, [[None, 2, None, 7], [2, 2]], {1: [[1, 0], [2, 4]]}, block(3), [[None, 5, None, 7]]),
    (TO_BATCH_ND, [[2, 5, 8, 7], [2], [2, 2]], {1: [3, 2], 2: [[1, 0], [0, 4]]}, {}, [[12, 2, 6, 7]]),
    (TO_BATCH_ND, [[2, 8, 7], [1], [1, 2]], {1: [1], 2: [[0, 0]]}, {}, [[2, 8, 7]]),
    (TO_BATCH_ND, [[2, 8], [1], [1, 2]], {1: [4], 2: [[0, 0]]}, {}, [[8, 2]]),
    (TO_BATCH_ND, [[2, 5, 8, 7], [2], [2, 2]], {}, {}, [[None, None, None, 7]]),
    (TO_BATCH_ND, [[2, 5, 8, 7], [1], [1, 2]], {}, {}, [[None, None, 8, 7]]),
    (TO_BATCH_ND, [[2, 5, 8, 7], [None], [1, 2]], {}, {}, [[None] * 4]),
    (TO_BATCH_ND, [[2, 5, 8], None, None], {}, {}, [[None] * 3]),
    (TO_BATCH_ND, [None, [2], [2, 2]], {1: [3, 2]}, {}, [None]),
    (TO_BATCH_ND, [None, [2], [2, 2]], {}, {}, [None]),
    (FROM_BATCH_ND, [[12, 2, 6, 7], [2], [2, 2]], {1: [3, 2], 2: [[1, 0], [0, 4]]}, {}, [[2, 5, 8, 7]]),
    (FROM_BATCH_ND, [[12, 2, 6, 7], [2], [2, 2]], {1: [3, 2]}, {}, [[2, None, None, 7]]),
    ("ExtractImagePatches", [[2, 9, 8, 5]], {}, PATCHES | SAME, [[2, 5, 3, 30]]),
    ("ExtractImagePatches", [[2, 9, 8, 5]], {}, PATCHES | VALID, [[2, 3, 3, 30]]),
    ("ExtractImagePatches", [[2, None, 9, None]], {}, PATCHES | VALID, [[2, None, 3, None]]),
    ("ExtractVolumePatches", [[2, 9, 8, 7, 5]], {}, VOLUMES | SAME, [[2, 5, 3, 7, 120]]),
    ("ExtractVolumePatches", [[2, 9, 8, 7, 5]], {}, VOLUMES | VALID, [[2, 4, 3, 4, 120]]),
]
DIAGONALS: list[Any] = [
    ("DiagPart", [[2, 3, None, 3]], {}, {}, [[2, 3]]),
    ("DiagPart", [[4, None]], {}, {}, [[4]]),
    ("DiagPart", [None], {}, {}, [None]),
    ("MatrixDiagPart", [[7, 4, 6]], {}, {}, [[7, 4]]),
    ("MatrixDiagPart", [[7, 6, 4]], {}, {}, [[7, 4]]),
    ("MatrixDiagPart", [[None, 4]], {}, {}, [[None]]),
    ("MatrixDiagPart", [[4, None]], {}, {}, [[None]]),
    ("MatrixDiagPart", [None], {}, {}, [None]),
    # a diagonal above the main one begins at a later column, one below at a later row
    (PART_V2, [[7, 4, 6], S, S], {1: 0}, {}, [[7, 4]]),
    (PART_V2, [[7, 4, 6], S, S], {1: 3}, {}, [[7, 3]]),
    (PART_V2, [[7, 4, 6], S, S], {1: -1}, {}, [[7, 3]]),
    (PART_V2, [[7, 4, 6], [2], S], {1: [2, 2]}, {}, [[7, 4]]),
    (PART_V2, [[7, 4, 6], [2], S], {1: [-3, -2]}, {}, [[7, 2, 2]]),
    (PART_V2, [[7, 4, 6], [2], S], {1: [3, 5]}, {}, [[7, 3, 3]]),
    (PART_V2, [[7, 4, 6], [2], S], {1: [-2, 3]}, {}, [[7, 6, 4]]),
    (PART_V2, [[7, None, 6], [2], S], {1: [-2, 3]}, {}, [[7, 6, None]]),
    (PART_V2, [[7, 4, None], [1], S], {1: [1]}, {}, [[7, None]]),
    (PART_V2, [[7, 4, 6], S, S], {}, {}, [None]),
    (PART_V2, [None, S, S], {1: 0}, {}, [None]),
    (DIAG_V2, [[7, 3], S, S, S, S], {1: 2, 2: -1, 3: -1}, {}, [[7, 5, 5]]),
    (DIAG_V2, [[7, 3], S, S, S, S], {1: -2, 2: -1, 3: -1}, {}, [[7, 5, 5]]),
    (DIAG_V2, [[7, 3], S, S, S, S], {1: 2, 2: 9, 3: -1}, {}, [[7, 9, 5]]),
    (DIAG_V2, [[7, 3], S, S, S, S], {1: -2, 2: -1, 3: 9}, {}, [[7, 5, 9]]),
    (DIAG_V2, [[7, 3], S, S, S, S], {1: 2, 2: 4, 3: 6}, {}, [[7, 4, 6]]),
    (DIAG_V2, [[7, 4, 3], [2], S, S, S], {1: [-2, 1], 2: -1, 3: -1}, {}, [[7, 3, 3]]),
    (DIAG_V2, [[7, 2, 3], [2], S, S, S], {1: [1, 2], 2: -1, 3: 5}, {}, [[7, 3, 5]]),
    (DIAG_V2, [[7, 3], S, S, S, S], {1: 2, 3: 6}, {}, [[7, None, 6]]),
    (DIAG_V2, [[7, 3], S, S, S, S], {1: 2, 2: 4}, {}, [[7, 4, None]]),
    (DIAG_V2, [[7, 3], S, S, S, S], {1: 2, 2: -1}, {}, [[7, None, None]]),
    (DIAG_V2, [[7, None], S, S, S, S], {1: 2, 2: 4, 3: -1}, {}, [[7, 4, None]]),
    (DIAG_V2, [[7, 3], S, S, S, S], {2: 4, 3: 6}, {}, [None]),
    (DIAG_V2, [None, S, S, S, S], {1: 0, 2: 4, 3: 6}, {}, [None]),
    ("MatrixSetDiag", [[None, 4, 6], [7, 4]], {}, {}, [[7, 4, 6]]),
    ("MatrixSetDiag", [None, [7, 4]], {}, {}, [[7, None, None]]),
    ("MatrixSetDiag", [[7, 4, 6], None], {}, {}, [[7, 4, 6]]),
    (SET_V2, [[None, 4, 6], [7, 4], S], {2: 0}, {}, [[7, 4, 6]]),
    (SET_V2, [[None, 4, 6], [7, 4], S], {}, {}, [[7, 4, 6]]),
    (SET_V2, [[None, 4, 6], [7, 3, 4], [2]], {2: [-1, 1]}, {}, [[7, 4, 6]]),
    (SET_V2, [[None, 4, 6], [7, 4], [2]], {2: [1, 1]}, {}, [[7, 4, 6]]),
    (SET_V2, [[None, 4, 6], [7, 3, 4], [2]], {}, {}, [[None, 4, 6]]),
    (SET_V2, [None, [7, 3, 4], [2]], {2: [-1, 1]}, {}, [[7, None, None]]),
    (SET_V2, [[5, 4, 6], None, S], {2: 0}, {}, [[5, 4, 6]]),
]
SEARCHES: list[Any] = [
    ("UniqueWithCounts", [[5]], {}, {}, [[None], [5], [None]]),
    ("UniqueV2", [[5, 6, 7], [1]], {1: [1]}, {}, [[None] * 3, [6]]),
    ("UniqueV2", [[5, 6, 7], [1]], {1: [-1]}, {}, [[None] * 3, [7]]),
    ("UniqueV2", [[5, 6, 7], [1]], {1: [-3]}, {}, [[None] * 3, [5]]),
    ("UniqueV2", [[5, 6, 7], [1]], {}, {}, [[None] * 3, [None]]),
    ("UniqueV2", [[5], [0]], {1: []}, {}, [[None], [5]]),
    ("UniqueWithCountsV2", [[5, 6], [1]], {1: [0]}, {}, [[None] * 2, [5], [None]]),
    ("UniqueWithCountsV2", [None, [1]], {1: [0]}, {}, [None, [None], [None]]),
    ("InvertPermutation", [[5]], {}, {}, [[5]]),
    ("ReverseSequence", [[5, None, 7], [6]], {}, {"seq_dim": 0, "batch_dim": 1}, [[5, 6, 7]]),
    ("ReverseSequence", [[5, 6, None], [7]], {}, {"seq_dim": 0, "batch_dim": -1}, [[5, 6, 7]]),
    ("ReverseSequence", [[None, 6, 7], [5]], {}, {"seq_dim": 1, "batch_dim": -3}, [[5, 6, 7]]),
    ("ReverseSequence", [None, [6]], {}, {"seq_dim": 0, "batch_dim": 1}, [None]),
    ("ReverseV2", [[5, 6], [2]], {1: [0, -1]}, {}, [[5, 6]]),
    ("ReverseV2", [[5, 6], [1]], {1: [-2]}, {}, [[5, 6]]),
    ("LowerBound", [[3, 8], [3, 5]], {}, {}, [[3, 5]]),
    ("UnravelIndex", [S, [4]], {}, {}, [[4]]),
    ("UnravelIndex", [[6], [4]], {}, {}, [[4, 6]]),
    ("UnravelIndex", [[6], None], {}, {}, [[None, 6]]),
    ("Fingerprint", [[6, 4], S], {}, {}, [[6, None]]),
    ("Fingerprint", [None, S], {}, {}, [[None, None]]),
    ("MirrorPadGrad", [[9, 8], [2, 2]], {1: [[1, 2], [0, 3]]}, {"mode": b"REFLECT"}, [[6, 5]]),
    ("MirrorPadGrad", [[None, 8], [2, 2]], {1: [[1, 2], [0, 0]]}, {"mode": b"REFLECT"}, [[None, 8]]),
    ("MirrorPadGrad", [None, [2, 2]], {1: [[1, 2], [0, 3]]}, {"mode": b"REFLECT"}, [[None] * 2]),
    ("MirrorPadGrad", [None, [3, 2]], {}, {"mode": b"REFLECT"}, [[None] * 3]),
    ("MirrorPadGrad", [None, None], {}, {"mode": b"REFLECT"}, [None]),
    ("EditDistance", [[9, 3], [9], [3], [8, 3], [8], [3]], {2: [4, 5, 6], 5: [7, 2, 9]}, {}, [[7, 5]]),
    ("EditDistance", [[9, 3], [9], [3], [8, 3], [8], [3]], {2: [4, 5, 6]}, {}, [None]),
    ("EditDistance", [[9, 3], [9], [3], [8, 3], [8], [3]], {5: [4, 5, 6]}, {}, [None]),
]
MATH: list[Any] = [
    ("Bincount", [[9], S, [9]], {1: 4}, {}, [[4]]),
    ("Bincount", [[9], S, [9]], {}, {}, [[None]]),
    ("DenseBincount", [[9], S, [9]], {1: 4}, {}, [[4]]),
    ("DenseBincount", [[3, 9], S, [3, 9]], {1: 4}, {}, [[3, 4]]),
    ("DenseBincount", [None, S, None], {1: 4}, {}, [None]),
    ("SparseBincount", [[9, 1], [9], [1], S, [9]], {3: 4}, {}, [[4]]),
    ("SparseBincount", [[9, 2], [9], [2], S, [9]], {2: [3, 8], 3: 4}, {}, [[3, 4]]),
    ("SparseBincount", [[9, 2], [9], [2], S, [9]], {3: 4}, {}, [[None, 4]]),
    ("SparseBincount", [None, [9], [None], S, [9]], {3: 4}, {}, [None]),
    ("RaggedBincount", [[6], [9], S, [9]], {2: 4}, {}, [[5, 4]]),
    ("RaggedBincount", [[None], [9], S, [9]], {2: 4}, {}, [[None, 4]]),
    ("HistogramFixedWidth", [[3, 9], [2], S], {2: 5}, {}, [[5]]),
    ("HistogramFixedWidth", [[3, 9], [2], S], {2: 1}, {}, [[1]]),
    ("HistogramFixedWidth", [None, None, S], {}, {}, [[None]]),
    ("RaggedRange", [[5], [5], S], {}, {}, [[6], [None]]),
    ("RaggedRange", [S, S, S], {}, {}, [[2], [None]]),
    ("RaggedRange", [S, [4], S], {}, {}, [[5], [None]]),
    ("RaggedRange", [None, S, S], {}, {}, [[None], [None]]),
    ("SparseSegmentSumWithNumSegments", [[8, 3], [4], [4], S], {3: 6}, {}, [[6, 3]]),
    ("SparseSegmentSumWithNumSegments", [None, [4], [4], S], {3: 6}, {}, [None]),
    ("SparseSegmentSumGradV2", [[8, 3], [4], [4], S], {}, {}, [[None, 3], [None]]),
    ("SparseSegmentSumGradV2", [None, [4], [4], S], {}, {}, [None, [None]]),
    ("Betainc", [[2, None], [None, 3], S], {}, {}, [[2, 3]]),
    ("Betainc", [S, [2, None], [2, 3]], {}, {}, [[2, 3]]),
    ("Betainc", [S, S, S], {}, {}, [[]]),
    ("Betainc", [None, [2], S], {}, {}, [[2]]),
    ("Betainc", [None, S, S], {}, {}, [None]),
    ("FakeQuantWithMinMaxVarsGradient", [[2, 3], [2, 3], S, S], {}, {}, [[2, 3], [], []]),
    ("FakeQuantWithMinMaxVarsPerChannelGradient", [[2, 3], [2, 3], [None], [3]], {}, {}, [[2, 3], [3], [3]]),
    ("FakeQuantWithMinMaxVarsPerChannelGradient", [None, None, [3], [None]], {}, {}, [None, [3], [None]]),
    ("QuantizeAndDequantizeV4Grad", [[2, 3], [2, 3], S, S], {}, {}, [[2, 3], [], []]),
    ("QuantizeAndDequantizeV4Grad", [[2, 3], [2, 3], [None], [3]], {}, {"axis": 1}, [[2, 3], [3], [3]]),
    ("RFFT", [[7, 9], [1]], {1: [8]}, {}, [[7, 5]]),
    ("RFFT", [[7, 9], [1]], {1: [1]}, {}, [[7, 1]]),
    ("RFFT", [[7, 9], [1]], {}, {}, [[7, None]]),
    ("RFFT2D", [[7, 6, 9], [2]], {1: [3, 7]}, {}, [[7, 3, 4]]),
    ("RFFT3D", [[7, 6, 9, 5], [3]], {1: [3, 7, 2]}, {}, [[7, 3, 7, 2]]),
    ("RFFT", [None, [1]], {1: [8]}, {}, [None]),
    ("IRFFT", [[7, 9], [1]], {1: [8]}, {}, [[7, 8]]),
    ("IRFFT2D", [[7, 6, 9], [2]], {1: [3, 7]}, {}, [[7, 3, 7]]),
]
EINSUMS: list[tuple[str, list[Any], Any]] = [
    ("ij,jk->ik", [[2, 3], [3, 4]], [2, 4]),
    ("i j, j k -> k i", [[2, 3], [3, 4]], [4, 2]),
    ("ij,jk->ji", [[2, None], [3, 4]], [3, 2]),
    ("ij->", [[2, 3]], []),
    ("ii->i", [[None, 3]], [3]),
    ("a...b->b...a", [[2, 5, 6, 3]], [3, 5, 6, 2]),
    ("...ij,jk->...ik", [[7, 8, 2, 3], [3, 4]], [7, 8, 2, 4]),
    ("...i,...i->...", [[7, 1, 3], [8, 3]], [7, 8]),
    ("...i,...i->i", [[7, 1, 3], [8, 3]], [3]),
    ("...ij->...ji", [None], None),
    ("ij->ji", [None], [None, None]),
    ("...i,i->...", [[5, 3], None], [5]),
    ("...i,ij->j", [None, [3, 4]], [4]),
]


@pytest.mark.parametrize(("op", "inputs", "values", "attrs", "outputs"), [*BLOCKS, *DIAGONALS, *SEARCHES, *MATH])
def test_what_is_known_of_the_outputs(op: str, inputs: Any, values: Any, attrs: Any, outputs: Any) -> None:
    assert shapes_of(op, inputs, values, attrs) == outputs


@pytest.mark.parametrize(("equation", "inputs", "output"), EINSUMS)
def test_labels_have_sizes_and_an_ellipsis_is_broadcast(equation: str, inputs: Any, output: Any) -> None:
    assert shapes_of("Einsum", inputs, {}, {"equation": equation.encode(), "N": len(inputs)}) == [output]


@pytest.mark.parametrize(
    ("equation", "inputs", "text"),
    [
        ("ij,jk", [[2, 3], [3, 4]], "exactly one '->'"),
        ("i->j->k", [[2]], "exactly one '->'"),
        ("i,i,i->i", [[2]] * 3, "but got: 3"),
        ("i,i->i", [[2]], "Got 1 inputs for the 2"),
        ("i..->i", [[2]], "at most one ellipsis"),
        (".i..->i", [[2]], "at most one ellipsis"),
        ("...i->...i...", [[2]], "at most one ellipsis"),
        ("ij->ik", [[2, 3]], "label 'k' which is not present"),
        ("ij->i", [[2, 3, 4]], "do not fit a shape of rank 3"),
        ("ij->i", [[2]], "do not fit a shape of rank 1"),
        ("i...j->i", [[2]], "do not fit a shape of rank 1"),
        ("ij,jk->ik", [[2, 3], [4, 5]], "must be equal, but are 3 and 4 for label 'j'"),
    ],
)
def test_a_wrong_equation_is_refused(equation: str, inputs: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        shapes_of("Einsum", inputs, {}, {"equation": equation.encode(), "N": len(inputs)})


@pytest.mark.parametrize(
    ("op", "inputs", "values", "attrs", "text"),
    [
        (TO_DEPTH, [[2, 7, 9, 5]], {}, block(3), "evenly divisible by 3 but is 7"),
        (TO_DEPTH, [[2, 6, 8, 5]], {}, block(3), "evenly divisible by 3 but is 8"),
        (FROM_DEPTH, [[2, 2, 3, 12]], {}, block(3), "evenly divisible by 9 but is 12"),
        (TO_BATCH, [[2, 5, 8, 7], [2, 2]], {1: [[1, 1], [0, 4]]}, block(3), "divisible by 3 but is 7"),
        (TO_BATCH, [[2, 5, 8, 7], [3, 2]], {1: [[1, 1]] * 3}, block(3), r"paddings should have shape \[2, 2\]"),
        (FROM_BATCH, [[18, 2, 4, 7], [3, 2]], {1: [[1, 1]] * 3}, block(3), r"crops should have shape \[2, 2\]"),
        (FROM_BATCH, [[12, 2, 4, 7], [2, 2]], {1: [[1, 0], [0, 4]]}, block(3), "divisible by 9 but is 12"),
        (TO_BATCH_ND, [[2, 5, 7], [1], [1, 2]], {1: [0]}, {}, "block sizes must be positive"),
        (TO_BATCH_ND, [[2, 5], [2], [2, 2]], {1: [3, 2]}, {}, "at least"),
        (TO_BATCH_ND, [[2, 5], [2], [2, 2]], {}, {}, "at least"),
        ("DiagPart", [[2, 3, 4]], {}, {}, "even and non-zero rank, input rank is 3"),
        ("DiagPart", [[2, 3, 2, 4]], {}, {}, "3"),
        (PART_V2, [[4, 6], [3], S], {1: [0, 1, 2]}, {}, "It has 3 elements"),
        (PART_V2, [[4, 6], [0], S], {1: []}, {}, "It has 0 elements"),
        (PART_V2, [[4, 6], [2], S], {1: [2, 1]}, {}, r"\(2\) must not be larger than diag_index\[1\] \(1\)"),
        ("UniqueV2", [[5, 6], [1]], {1: [2]}, {}, r"axis 2 is not in \[-2, 2\)"),
        ("UniqueV2", [[5, 6], [1]], {1: [-3]}, {}, r"axis -3 is not in \[-2, 2\)"),
        ("ReverseSequence", [[5, 6], [5]], {}, {"seq_dim": 0, "batch_dim": 2}, "batch_dim must be < input rank"),
        ("ReverseSequence", [[5, 6], [5]], {}, {"seq_dim": 0, "batch_dim": -3}, "batch_dim must be < input rank"),
        ("ReverseSequence", [[5, 6], [5]], {}, {"seq_dim": 0, "batch_dim": 1}, "6"),
        ("ReverseV2", [[5, 6], [1]], {1: [2]}, {}, r"'axis'\[0\] = 2 is out of valid range \[0, 1\]"),
        ("ReverseV2", [[5, 6], [2]], {1: [0, -3]}, {}, r"'axis'\[1\] = -3 is out"),
        ("ReverseV2", [[5, 6], [2]], {1: [1, -1]}, {}, "axis 1 specified more than once"),
        ("MirrorPadGrad", [[9], [1, 3]], {1: [[1, 2, 3]]}, {"mode": b"REFLECT"}, r"shape \[rank, 2\]"),
        ("MirrorPadGrad", [[9], [1, 2]], {1: [[-1, 2]]}, {"mode": b"REFLECT"}, "non-negative"),
        ("HistogramFixedWidth", [[9], [2], S], {2: 0}, {}, "Requires nbins > 0"),
        ("HistogramFixedWidth", [[9], [3], S], {2: 4}, {}, "3"),
    ],
)
def test_each_wrong_input_is_refused(op: str, inputs: Any, values: Any, attrs: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        shapes_of(op, inputs, values, attrs)


@pytest.mark.parametrize(("at", "stride"), [(1, 0), (2, -1)])
def test_windows_that_do_not_move_are_refused(at: int, stride: int) -> None:
    strides = list(PATCHES["strides"])
    strides[at] = stride
    with pytest.raises(ValueError, match=f"Stride must be > 0, but got {stride}"):
        shapes_of("ExtractImagePatches", [[2, 9, 8, 5]], {}, PATCHES | VALID | {"strides": strides})
