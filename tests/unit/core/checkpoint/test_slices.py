"""Parts of tensors: their text, their proto, their key, where they lie, and what is none."""

from __future__ import annotations

import pytest

from tenfold_core import errors
from tenfold_core.checkpoint import coding
from tenfold_core.checkpoint.slices import MAX_RANK, TensorSlice, overlap, parse_shape_and_slice
from tenfold_protos import tensor_slice_pb2

LARGEST = 2**63 - 1
PART = TensorSlice(((0, 5), None, (3, 1)))


def test_text_proto_and_key_say_the_same() -> None:
    assert str(PART) == "0,5:-:3,1"
    assert TensorSlice.parse("0,5:-:3,1") == PART
    assert TensorSlice.from_proto(PART.to_proto()) == PART
    assert TensorSlice.from_key(PART.key(b"name")) == (b"name", PART)
    assert TensorSlice.parse("") == TensorSlice(())
    assert TensorSlice.parse(":0,5:") == TensorSlice(((0, 5),))
    assert TensorSlice.parse("0,,5") == TensorSlice(((0, 5),))


def test_a_key_is_tensorflows() -> None:
    expected = coding.put_ordered_number(0) + coding.put_ordered_string(b"n") + coding.put_ordered_number(2)
    expected += coding.put_signed(2) + coding.put_signed(3) + coding.put_signed(0) + coding.put_signed(-1)
    assert TensorSlice(((2, 3), None)).key(b"n") == expected


@pytest.mark.parametrize("text", ["1", "1,2,3", "a,b", "1,b", ",", f"{LARGEST + 1},1", f"{-LARGEST - 2},1"])
def test_an_extent_is_two_numbers_or_a_dash(text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError) as raised:
        TensorSlice.parse(text)
    assert raised.value.message == f"Expected a pair of numbers or '-' but got '{text}': string = {text}"


@pytest.mark.parametrize(("start", "length"), [(-1, 1), (0, 0), (0, -1), (5, -2)])
def test_an_extent_begins_at_zero_and_has_a_length(start: int, length: int) -> None:
    with pytest.raises(errors.InvalidArgumentError) as raised:
        TensorSlice.parse(f"{start},{length}")
    assert raised.value.message == (
        f"Expected non-negative start and positive length but got start = {start}, length = {length}: "
        f"string = {start},{length}"
    )


def test_an_extent_ends_where_sizes_end() -> None:
    assert TensorSlice.parse(f"1,{LARGEST - 1}").extents == ((1, LARGEST - 1),)
    with pytest.raises(errors.InvalidArgumentError) as raised:
        TensorSlice.parse(f"2,{LARGEST - 1}")
    assert raised.value.message == f"Extent end exceeds the maximum possible size: string = 2,{LARGEST - 1}"


def test_an_extent_of_a_proto_without_a_length_is_all() -> None:
    proto = tensor_slice_pb2.TensorSliceProto()
    proto.extent.add()
    proto.extent.add(start=0, length=2)
    assert TensorSlice.from_proto(proto) == TensorSlice((None, (0, 2)))
    for extent in ({"start": 1}, {"start": 0, "length": 0}, {"start": -1, "length": 1}):
        wrong = tensor_slice_pb2.TensorSliceProto()
        wrong.extent.add(**extent)
        with pytest.raises(errors.InvalidArgumentError, match=r"positive length but got start = .*: extent = "):
            TensorSlice.from_proto(wrong)


def test_an_endless_proto_is_all() -> None:
    proto = tensor_slice_pb2.TensorSliceProto()
    proto.extent.add(start=0, length=-1)
    assert TensorSlice.from_proto(proto).is_full


def test_a_part_that_is_all() -> None:
    assert TensorSlice.full(2) == TensorSlice((None, None))
    assert TensorSlice.full(2).is_full
    assert not PART.is_full
    assert TensorSlice.full(2).covers((3, 4))
    assert TensorSlice(((0, 3), None)).covers((3, 4))
    for extents, shape in ((((0, 2), None), (3, 4)), (((1, 2), None), (3, 4)), ((None,), (3, 4))):
        assert not TensorSlice(extents).covers(shape)


def test_a_part_has_bounds_and_a_shape_in_its_tensor() -> None:
    assert PART.bounds((5, 7, 4)) == ((0, 5), (0, 7), (3, 4))
    assert PART.shape_in((5, 7, 4)) == (5, 7, 1)


def test_a_part_must_fit_its_tensor() -> None:
    with pytest.raises(errors.InternalError) as raised:
        PART.bounds((5, 7))
    assert raised.value.message == "Mismatching ranks: shape = [5,7], slice = 0,5:-:3,1"
    with pytest.raises(errors.InternalError) as raised:
        PART.bounds((5, 7, 3))
    assert raised.value.message == "Extent in dimension 2 out of bounds: shape = [5,7,3], slice = 0,5:-:3,1"


def test_a_key_of_another_kind_is_none() -> None:
    with pytest.raises(ValueError, match="a slice key starts with 0"):
        TensorSlice.from_key(coding.put_ordered_number(1) + PART.key(b"n")[1:])
    for rank, good in ((0, False), (1, True), (MAX_RANK, True), (MAX_RANK + 1, False)):
        key = TensorSlice.full(rank).key(b"n")
        if good:
            assert TensorSlice.from_key(key) == (b"n", TensorSlice.full(rank))
        else:
            with pytest.raises(ValueError, match=f"a slice key of rank {rank}"):
                TensorSlice.from_key(key)


def test_a_key_keeps_a_length_of_zero() -> None:
    assert TensorSlice.from_key(TensorSlice(((4, 0),)).key(b"n"))[1] == TensorSlice(((4, 0),))


@pytest.mark.parametrize(
    ("a", "b", "meeting"),
    [
        (((0, 4),), ((2, 6),), ((slice(2, 4),), (slice(0, 2),))),
        (((2, 6),), ((0, 4),), ((slice(0, 2),), (slice(2, 4),))),
        (((0, 9),), ((3, 5),), ((slice(3, 5),), (slice(0, 2),))),
        (((0, 4),), ((4, 6),), None),
        (((4, 6),), ((0, 4),), None),
        (((0, 4), (0, 2)), ((3, 9), (1, 2)), ((slice(3, 4), slice(1, 2)), (slice(0, 1), slice(0, 1)))),
        (((0, 4), (0, 2)), ((3, 9), (2, 3)), None),
        ((), (), ((), ())),
    ],
)
def test_where_two_boxes_meet(a: tuple[tuple[int, int], ...], b: tuple[tuple[int, int], ...], meeting: object) -> None:
    assert overlap(a, b) == meeting


def test_a_specification_has_a_shape_and_a_part() -> None:
    assert parse_shape_and_slice("10 4 0,5:-") == ((10, 4), TensorSlice(((0, 5), None)), (5, 4))
    dims = " ".join(["1"] * MAX_RANK)
    assert parse_shape_and_slice(f"{dims} {':'.join('-' * MAX_RANK)}")[2] == (1,) * MAX_RANK
    assert parse_shape_and_slice("0 -") == ((0,), TensorSlice((None,)), (0,))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("-", "Need least two elements in shape_and_slice specification: -"),
        ("a -", "Non numerical dimension in shape_and_slice: a -"),
        (f"{LARGEST + 1} -", f"Non numerical dimension in shape_and_slice: {LARGEST + 1} -"),
        ("-1 -", "Bad dimensions in shape_and_slice: -1 -"),
        (" ".join(["1"] * (MAX_RANK + 1)) + " -", "Bad dimensions in shape_and_slice: 1 1"),
    ],
)
def test_what_is_no_specification_says_why(text: str, words: str) -> None:
    with pytest.raises(errors.InvalidArgumentError) as raised:
        parse_shape_and_slice(text)
    assert raised.value.message.startswith(words)
