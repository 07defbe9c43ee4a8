"""Caches in files: written by one pass, read by later ones, saved half-way, and taken away where they are given up."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.dataset_machines import ANY, INT, drained, numbers, one, plain, result
from tenfold_core import errors
from tenfold_kernels.resources.datasets import file_caches
from tenfold_kernels.resources.datasets.core import Run
from tenfold_kernels.resources.datasets.file_caches import FileCache, _Part
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


# ---- parts -----------------------------------------------------------------------------------------------------------


def test_a_part_is_there_when_it_is_opened_and_whole_when_it_is_finished(tmp_path: Path) -> None:
    part = _Part(str(tmp_path / "c"), 3)
    assert (part.path, part.lock) == (f"{tmp_path}/c_3", f"{tmp_path}/c_3.lockfile")
    assert not part.is_open
    part.open()
    assert part.is_open
    assert files_of(tmp_path) == ["c_3.lockfile", "c_3.unfinished"]
    part.write((one(7), np.array([b"a"], object)))
    part.finish()
    assert not part.is_open
    assert files_of(tmp_path) == ["c_3", "c_3.lockfile"], "the lock stays"
    (element,) = file_caches._elements(part.path)
    assert [array.tolist() for array in element] == [7, [b"a"]]
    assert type(element) is tuple
    part.give_up()
    assert files_of(tmp_path) == ["c_3", "c_3.lockfile"], "what is finished stays, and a checkpoint may know of it"


def test_a_part_that_is_given_up_is_taken_away_and_nothing_more_is_written(tmp_path: Path) -> None:
    part = _Part(str(tmp_path / "c"), 0)
    part.give_up()
    assert files_of(tmp_path) == []
    opened = _Part(str(tmp_path / "c"), 0)
    opened.open()
    opened.write((one(1),))
    for _ in range(2):
        opened.give_up()
        assert files_of(tmp_path) == []
    for each in (part, opened):
        for call in (each.open, lambda each=each: each.write((one(1),)), each.finish):
            with pytest.raises(errors.CancelledError, match=r"^The iterator was deleted\.$"):
                call()  # type: ignore[operator]
    assert files_of(tmp_path) == []


def test_a_part_is_opened_by_one(tmp_path: Path) -> None:
    part = _Part(str(tmp_path / "c"), 0)
    (tmp_path / "c_0.lockfile").touch()
    with pytest.raises(errors.AlreadyExistsError, match=r"lockfile already exists \('.*/c_0\.lockfile'\)\. If you"):
        part.open()
    (tmp_path / "c_0").touch()
    with pytest.raises(errors.AlreadyExistsError, match=r"^Existing cache files found: \n.*/c_0\nTo continue delete"):
        part.open()
    assert not part.is_open
    missing = _Part(str(tmp_path / "none" / "c"), 0)
    with pytest.raises(errors.NotFoundError, match=r"c_0\.lockfile"):
        missing.open()


def test_finished_parts_become_one_file(tmp_path: Path) -> None:
    for count in (1, 2, 3):
        name = str(tmp_path / f"n{count}")
        for number in range(count):
            part = _Part(name, number)
            part.open()
            for n in range(2):
                part.write((one(10 * number + n),))
            part.finish()
        file_caches._join(name, count)
        assert [int(element[0]) for element in file_caches._elements(name)] == [
            10 * number + n for number in range(count) for n in range(2)
        ]
    assert files_of(tmp_path) == ["n1", "n2", "n3"]
    with pytest.raises(errors.NotFoundError):
        file_caches._join(str(tmp_path / "none"), 1)
    with pytest.raises(errors.NotFoundError):
        file_caches._join(str(tmp_path / "none"), 2)


# ---- passes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("saves", [(0,), (1,), (4,), (0, 1, 2, 3, 4), (2, 2, 2), (1, 3)])
def test_a_pass_that_is_saved_now_and_then_writes_the_whole(tmp_path: Path, saves: tuple[int, ...]) -> None:
    dataset = FileCache(numbers(4), str(tmp_path / "c"))
    machine, found = dataset.iterate(Run()), list[Any]()
    states = []
    for taken in range(5):
        for _ in range(saves.count(taken)):
            states.append((taken, machine.save()))
        element = machine()
        if element is not None:
            found.append(plain(element))
    assert found == [0, 1, 2, 3]
    assert machine() is None
    assert files_of(tmp_path) == ["c"]
    for taken, state in states:
        other = dataset.iterate(Run())
        other.restore(state)
        assert drained(other) == [0, 1, 2, 3][taken:]


def test_what_a_pass_remembers(tmp_path: Path) -> None:
    """A part for each save behind new elements; none for one behind nothing."""
    machine = FileCache(numbers(3), str(tmp_path / "c")).iterate(Run())
    assert machine.save() == (False, (0, 0, (0,)))
    machine()
    assert machine.save() == (False, (1, 1, (1,)))
    assert machine.save() == (False, (1, 1, (1,)))
    assert files_of(tmp_path) == ["c_0", "c_0.lockfile"]
    machine()
    assert files_of(tmp_path) == ["c_0", "c_0.lockfile", "c_1.lockfile", "c_1.unfinished"]
    assert drained(machine) == [2]
    assert machine.save() == (False, (3, 1, None))
    reading = FileCache(numbers(9), str(tmp_path / "c")).iterate(Run())
    reading()
    assert reading.save() == (True, 1)
    assert drained(reading) == [1, 2]
    assert reading.save() == (True, 3)


def test_an_end_is_remembered_where_the_file_is_gone(tmp_path: Path) -> None:
    dataset = FileCache(numbers(2), str(tmp_path / "c"))
    machine = dataset.iterate(Run())
    drained(machine)
    state = machine.save()
    (tmp_path / "c").unlink()
    other = dataset.iterate(Run())
    other.restore(state)
    assert drained(other) == []
    assert files_of(tmp_path) == []


def test_a_saved_pass_goes_on_in_the_next_part(tmp_path: Path) -> None:
    dataset = FileCache(numbers(3), str(tmp_path / "c"))
    machine = dataset.iterate(Run())
    machine()
    state = machine.save()
    other = dataset.iterate(Run())
    other.restore(state)
    assert files_of(tmp_path) == ["c_0", "c_0.lockfile"]
    other()
    assert files_of(tmp_path) == ["c_0", "c_0.lockfile", "c_1.lockfile", "c_1.unfinished"]
    assert other.save() == (False, (2, 2, (2,)))


@pytest.mark.parametrize("how", ["close", "forget"])
def test_a_pass_that_is_given_up_leaves_what_a_checkpoint_knows(tmp_path: Path, how: str) -> None:
    run = Run()
    machine = FileCache(numbers(4), str(tmp_path / "c")).iterate(run)
    machine()
    machine.save()
    machine()
    if how == "close":
        run.close()
        with pytest.raises(errors.CancelledError, match="The step that waited for a dataset's element has ended"):
            machine()
    else:
        del machine
        gc.collect()
    assert files_of(tmp_path) == ["c_0", "c_0.lockfile"]


def test_a_run_that_is_closed_does_not_read_to_where_it_was(tmp_path: Path) -> None:
    dataset = FileCache(numbers(4), str(tmp_path / "c"))
    drained(dataset)
    run = Run()
    machine = dataset.iterate(run)
    run.close()
    with pytest.raises(errors.CancelledError):
        machine.restore((True, 2))


def test_a_cache_has_as_many_elements_as_its_input_and_is_slow(tmp_path: Path) -> None:
    dataset = FileCache(numbers(4), str(tmp_path / "c"))
    assert (dataset.cardinality(), dataset.is_slow) == (4, True)
    empty = FileCache(numbers(0), str(tmp_path / "none"))
    assert drained(empty) == drained(empty) == []
    assert files_of(tmp_path) == ["none"]
