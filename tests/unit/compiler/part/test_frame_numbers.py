"""Numbers of loops' frames: those of TensorFlow's releases, and which of the two ways a graph uses."""

from __future__ import annotations

import pytest

from support.parts import PartBuilder
from tenfold_compiler.part import frame_numbers
from tenfold_compiler.part.frame_numbers import (
    NUMBERS_SINCE,
    OLD_NUMBERS,
    frame_id,
    has_old_numbers,
    hash64_combine,
    old_frame_id,
    set_numbers,
)
from tenfold_core import dtypes
from tenfold_kernels.hashes import hash64

MASK = (1 << 64) - 1


@pytest.mark.parametrize(
    ("producer", "is_old"), [(0, False), (1, True), (429, True), (NUMBERS_SINCE, False), (1000, False)]
)
def test_the_producer_says_how_frames_are_numbered(producer: int, is_old: bool) -> None:
    graph = PartBuilder().graph_def
    graph.versions.producer = producer
    assert has_old_numbers(graph) is is_old


def loop() -> PartBuilder:
    part = PartBuilder()
    part.feed("x")
    part.node("Neg", "neg", ["x"], T=dtypes.float32)
    part.node("Enter", "enter", ["neg"], T=dtypes.float32, frame_name="f")
    part.node("RefEnter", "other", ["neg"], T=dtypes.float32, frame_name="g")
    return part


@pytest.mark.parametrize("old", [True, False])
@pytest.mark.parametrize("producer", [100, 1000])
def test_what_our_master_says_comes_first(old: bool, producer: int) -> None:
    graph = loop().graph_def
    graph.versions.producer = producer
    set_numbers(graph, old)
    assert has_old_numbers(graph) is old
    assert [OLD_NUMBERS in node.attr for node in graph.node] == [False, False, True, True]
    assert {node.attr[OLD_NUMBERS].b for node in graph.node if OLD_NUMBERS in node.attr} == {old}


def test_an_enter_that_says_nothing_leaves_it_to_the_producer() -> None:
    graph = loop().graph_def
    graph.versions.producer = 100
    assert has_old_numbers(graph)


def test_an_old_number_is_the_hash_of_the_path() -> None:
    assert old_frame_id("é;3;f") == hash64("é;3;f".encode())


def test_a_number_is_combined_of_the_parent_the_turn_and_the_name() -> None:
    assert frame_id(5, 2, "é") == hash64_combine(5, hash64_combine(2, hash64("é".encode())))
    assert len({frame_id(1, 2, "f"), frame_id(1, 3, "f"), frame_id(1, 2, "g"), frame_id(0, 2, "f")}) == 4


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (0, 0, 0x9E3779B97F4A7800),
        (1, 0, 1 ^ (0x9E3779B97F4A7800 + (1 << 10))),
        (0, 7, 0x9E3779B97F4A7807),
        (16, 3, 16 ^ (3 + 0x9E3779B97F4A7800 + (16 << 10) + 1)),
        (MASK, MASK, (MASK ^ (MASK + 0x9E3779B97F4A7800 + (MASK << 10) + (MASK >> 4))) & MASK),
    ],
)
def test_hashes_are_combined_as_in_hash_cc(a: int, b: int, expected: int) -> None:
    assert hash64_combine(a, b) == expected
    assert 0 <= hash64_combine(a, b) <= MASK


def test_the_release_that_changed_the_numbers() -> None:
    assert frame_numbers.NUMBERS_SINCE == 430, "of TensorFlow 2.3"
