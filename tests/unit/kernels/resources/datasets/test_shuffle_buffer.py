"""The buffers of shuffles: the numbers that draw, elements by their places, rows that are drawn for whole blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.dataset_machines import ints, one, plain
from tenfold_kernels.cpu._compiled import drawing
from tenfold_kernels.philox import Philox
from tenfold_kernels.resources.datasets import shuffle_buffer
from tenfold_kernels.resources.datasets.shuffle_buffer import Elements, Numbers, Rows, Uneven

# ---- numbers ---------------------------------------------------------------------------------------------------------


def words(count: int, seeds: tuple[int, int] = (7, 11)) -> list[int]:
    single = Philox(seeds[0] % (1 << 64), (seeds[1] % (1 << 64)) << 64).single()
    return [next(single) for _ in range(count)]


@pytest.mark.parametrize("seeds", [(7, 11), (0, 0), (-1, -2), ((1 << 64) + 5, 1 << 70)])
def test_numbers_are_those_of_the_generator(seeds: tuple[int, int]) -> None:
    numbers = Numbers(seeds)
    assert [numbers.one() for _ in range(70)] == words(70, seeds)
    assert (numbers.seeds, numbers.drawn) == (seeds, 70)


@pytest.mark.parametrize("drawn", [0, 1, 3, 4, 5, 63, 64, 65])
def test_numbers_go_on_behind_those_that_were_drawn(drawn: int) -> None:
    whole = words(drawn + 80)
    numbers = Numbers((7, 11), drawn)
    assert [numbers.one() for _ in range(80)] == whole[drawn:]
    some = Numbers((7, 11), drawn).some(80)
    assert (some.tolist(), some.dtype) == (whole[drawn:], np.uint32)


@pytest.mark.parametrize("sizes", [[1] * 9, [64, 1, 64], [63, 2], [3, 61, 1, 300], [500, 3], [0, 5, 0], [5000, 5000]])
def test_several_numbers_at_once(sizes: list[int]) -> None:
    numbers, found = Numbers((7, 11)), list[int]()
    for size in sizes:
        part = numbers.some(size)
        assert part.dtype == np.uint32
        found += part.tolist()
        assert numbers.drawn == len(found)
    found.append(numbers.one())
    assert found == words(len(found))


def test_how_many_numbers_are_made_at_a_time() -> None:
    """As many as are asked for, and a growing number ahead."""
    assert (shuffle_buffer._LEAST, shuffle_buffer._MOST) == (16, 1024)
    numbers, made = Numbers((7, 11)), list[int]()
    blocks_of = numbers._words

    def noted(blocks: int) -> Any:
        made.append(blocks)
        return blocks_of(blocks)

    numbers._words = noted  # type: ignore[method-assign]
    numbers.some(64)
    assert made == [16]
    numbers.some(1)
    assert made == [16, 32]
    numbers.some(127)
    assert made == [16, 32]
    numbers.some(10001)
    assert made == [16, 32, 2501], "as many as are needed"


# ---- elements --------------------------------------------------------------------------------------------------------


def test_elements_by_their_places() -> None:
    buffer = Elements([(3, (one(30),))])
    assert len(buffer) == 1
    for place in (4, 5):
        buffer.put(place, (one(place * 10),))
    assert [(place, plain(element)) for place, element in buffer.items()] == [(3, 30), (4, 40), (5, 50)]
    assert plain(buffer.take(4, 3)) == 40
    assert [(place, plain(element)) for place, element in buffer.items()] == [(5, 50), (4, 30)]
    assert plain(buffer.take(5, 5)) == 50
    assert plain(buffer.take(4, 4)) == 30
    assert (len(buffer), len(Elements())) == (0, 0)


# ---- rows ------------------------------------------------------------------------------------------------------------


def rows(ring: int = 5) -> Rows:
    return Rows(ring, drawing.exchange())


def held(buffer: Rows, *places: int) -> list[Any]:
    return [plain(element) for _, element in buffer.items_at(places)]


def test_rows_have_places_on_a_ring() -> None:
    buffer = rows()
    buffer.put_rows(3, (ints(30, 40, 0), ints([3, 3], [4, 4], [0, 0])))
    assert len(buffer) == 3
    assert held(buffer, 3, 4, 0) == [(30, [3, 3]), (40, [4, 4]), (0, [0, 0])]
    buffer.put(1, (one(10), ints(1, 1)))
    assert (len(buffer), held(buffer, 1, 3)) == (4, [(10, [1, 1]), (30, [3, 3])])
    ((place, element),) = buffer.items_at([4])
    assert place == 4
    assert not any(array.flags.writeable for array in element)


def test_a_row_that_is_taken_is_used_again() -> None:
    buffer = rows()
    buffer.put_rows(0, (ints(0, 10, 20, 30),))
    assert plain(buffer.take(2, 0)) == 20
    assert (len(buffer), held(buffer, 1, 2, 3)) == (3, [10, 0, 30]), "the first moves to its place"
    assert plain(buffer.take(1, 1)) == 10
    assert len(buffer) == 2
    buffer.put_rows(4, (ints(40, 50, 60),))
    assert len(buffer) == 5
    assert held(buffer, 2, 3, 4, 0, 1) == [0, 30, 40, 50, 60]
    assert (buffer._count, len(buffer._columns[0])) == (5, 8)


@pytest.mark.parametrize("free", range(5))
@pytest.mark.parametrize("count", range(1, 6))
def test_rows_that_are_free_are_filled_first(free: int, count: int) -> None:
    buffer = rows(20)
    buffer.put_rows(0, (np.arange(4),))
    for place in range(free):
        buffer.take(place, place)
    buffer.put_rows(10, (np.arange(count) + 100,))
    assert held(buffer, *range(10, 10 + count)) == list(range(100, 100 + count))
    assert held(buffer, *range(free, 4)) == list(range(free, 4))
    assert (buffer._count, len(buffer)) == (4 + max(0, count - free), 4 - free + count)


@pytest.mark.parametrize(
    "part", [(ints([1, 2]),), (np.zeros(1, np.int32),), (np.zeros(1, np.float64),), (np.array([b"a"], object),)]
)
def test_rows_of_another_shape_or_type(part: Any) -> None:
    buffer = rows()
    buffer.put_rows(0, (ints(1, 2),))
    single = tuple(np.array(array[0], array.dtype) for array in part)
    for put in (lambda: buffer.put_rows(2, part), lambda: buffer.put(2, single), lambda: buffer.check(part)):
        with pytest.raises(Uneven):
            put()
    assert (len(buffer), held(buffer, 0, 1)) == (2, [1, 2])
    buffer.check((ints(5, 6, 7),))


def test_texts_that_were_taken_are_not_kept_alive() -> None:
    buffer = rows()
    buffer.put_rows(0, (np.array([b"a", b"b"], object), ints(1, 2)))
    assert plain(buffer.take(0, 0)) == (b"a", 1)
    assert buffer._columns[0][:2].tolist() == [None, b"b"]
    assert buffer._columns[1][:2].tolist() == [1, 2]


def drawn_one_by_one(words: list[int], start: int, end: int, fresh: list[int], grows: bool, ring: int) -> Any:
    """The same with elements by their places."""
    buffer = Elements((place % ring, (one(place),)) for place in range(start, end))
    out = []
    left = list(fresh)
    last = end
    for word in words:
        place = start + word % (last - start if grows else end - start)
        out.append(plain(buffer.take(place % ring, start % ring)))
        start += 1
        if left:
            buffer.put(last % ring, (one(left.pop(0)),))
            last += 1
    return out, sorted((place, plain(element)) for place, element in buffer.items())


@pytest.mark.parametrize("grows", [True, False])
@pytest.mark.parametrize("fresh", [0, 1, 3])
@pytest.mark.parametrize("start", [0, 3])
def test_whole_blocks_are_drawn_as_elements_are(grows: bool, fresh: int, start: int) -> None:
    ring, words_ = 6, [5, 17, 3, 11][: fresh + 1]
    buffer = rows(ring)
    end = start + ring
    buffer.put_rows(start, (np.arange(start, end),))
    part = (np.arange(100, 100 + fresh),) if fresh else None
    found = buffer.draw(np.array(words_, np.uint32), start, end, part, grows)
    wanted, left = drawn_one_by_one(words_, start, end, list(range(100, 100 + fresh)), grows, ring)
    assert found[0].tolist() == wanted
    assert len(buffer) == len(left)
    places = [place for place, _ in left]
    assert sorted(zip(places, held(buffer, *places), strict=True)) == left


def test_a_block_of_several_components_is_drawn_together() -> None:
    buffer = rows(4)
    texts = np.array([b"a", b"b", b"c", b"d"], object)
    buffer.put_rows(0, (ints(0, 1, 2, 3), texts, np.arange(8).reshape(4, 2)))
    part = (ints(4, 5), np.array([b"e", b"f"], object), np.arange(8, 12).reshape(2, 2))
    numbers_, words_, pairs = buffer.draw(np.array([1, 3, 2], np.uint32), 0, 4, part, True)
    for number, word, pair in zip(numbers_.tolist(), words_.tolist(), pairs.tolist(), strict=True):
        assert (word, pair) == (b"abcdef"[number : number + 1], [2 * number, 2 * number + 1])
    assert len(buffer) == 3


def test_rows_of_another_number_of_components_are_not_cut_short() -> None:
    buffer = rows()
    buffer.put_rows(0, (ints(1, 2),))
    for attempt in (
        lambda: buffer.put_rows(2, (ints(3), ints(4))),
        lambda: buffer.draw(np.array([0, 0], np.uint32), 0, 2, (ints(3), ints(4)), True),
    ):
        with pytest.raises(ValueError, match=r"zip\(\)"):
            attempt()
