"""Caches in files: written by one pass, read by later ones, saved half-way, and taken away where they are given up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.dataset_machines import ANY, INT, drained, numbers, plain, result
from tenfold_core import errors
from tenfold_kernels.resources.datasets.core import Run
from tenfold_kernels.resources.datasets.file_caches import FileCache
from tenfold_kernels.resources.datasets.iterators import DatasetIterator

if TYPE_CHECKING:
    from pathlib import Path


def test_a_cache_in_a_file_outlives_its_dataset_and_is_written_once(tmp_path: Path) -> None:
    name = str(tmp_path / "cache")
    assert drained(FileCache(numbers(3), name)) == [0, 1, 2]
    assert drained(FileCache(numbers(9), name)) == [0, 1, 2], "it is read from the file"


def files_of(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_two_iterators_do_not_write_one_cache_and_one_that_is_left_leaves_nothing(tmp_path: Path) -> None:
    dataset = FileCache(numbers(3), str(tmp_path / "cache"))
    first, second = dataset.iterate(Run()), dataset.iterate(Run())
    assert first() is not None
    with pytest.raises(errors.AlreadyExistsError, match="concurrent caching iterator"):
        second()
    assert files_of(tmp_path) == ["cache_0.lockfile", "cache_0.unfinished"]

    del first

    assert files_of(tmp_path) == []
    assert drained(second) == [0, 1, 2]
    assert files_of(tmp_path) == ["cache"]


def test_a_cache_that_is_half_written_goes_on_from_its_checkpoints(tmp_path: Path) -> None:
    dataset = FileCache(numbers(6), str(tmp_path / "cache"))
    machine = dataset.iterate(Run())
    assert [plain(machine()) for _ in range(2)] == [0, 1]
    state = machine.save()
    assert plain(machine()) == 2
    del machine
    with pytest.raises(errors.AlreadyExistsError, match="Existing cache files found"):
        dataset.iterate(Run())()

    machine = dataset.iterate(Run())
    machine.restore(state)
    assert plain(machine()) == 2
    state = machine.save()
    machine = dataset.iterate(Run())
    machine.restore(state)

    assert drained(machine) == [3, 4, 5]
    assert files_of(tmp_path) == ["cache"]
    assert drained(dataset) == [0, 1, 2, 3, 4, 5]


def test_an_iterator_that_is_started_anew_or_is_over_leaves_no_half_written_cache(tmp_path: Path) -> None:
    iterator = DatasetIterator(INT, ANY)
    dataset = FileCache(numbers(3), str(tmp_path / "cache"))

    for _ in range(2):
        iterator.start(dataset)
        assert files_of(tmp_path) == []
        assert result(iterator.get_next(lambda e: e[0].item())) == 0
        assert files_of(tmp_path) == ["cache_0.lockfile", "cache_0.unfinished"]
    iterator.end_work()

    assert files_of(tmp_path) == []


def test_a_checkpoint_of_a_half_written_cache_reads_it_once_it_is_whole(tmp_path: Path) -> None:
    dataset = FileCache(numbers(4), str(tmp_path / "cache"))
    machine = dataset.iterate(Run())
    assert plain(machine()) == 0
    state = machine.save()
    assert drained(machine) == [1, 2, 3]
    ended = machine.save()

    for saved, rest in ((state, [1, 2, 3]), (ended, [])):
        other = dataset.iterate(Run())
        other.restore(saved)
        assert drained(other) == rest
