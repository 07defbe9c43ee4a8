"""Datasets by their ops: what each makes of its inputs and attributes, and what it refuses.

The machines' own tests are tests/unit/kernels/resources/datasets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.dataset_machines import ANY, INT, SCALAR, drained, ints, mapped, numbers, one, plain
from support.dataset_ops import DatasetSteps, refused
from support.kernel_runs import DEVICE
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.arrays import scalar_object
from tenfold_kernels.cpu import dataset as dataset_ops
from tenfold_kernels.cpu.dataset import resource_or_none
from tenfold_kernels.resources.datasets.caches import Cache, MemoryCache
from tenfold_kernels.resources.datasets.core import INFINITE, UNKNOWN, Dataset, Run
from tenfold_kernels.resources.datasets.file_caches import FileCache
from tenfold_kernels.resources.datasets.functional import Map
from tenfold_kernels.resources.datasets.interleave import Interleave
from tenfold_kernels.resources.datasets.parallel import ParallelMap
from tenfold_kernels.resources.datasets.prefetch import AUTOTUNED
from tenfold_kernels.resources.datasets.shuffle import SeedGenerator
from tenfold_kernels.resources.datasets.sources import Listed, Slices, Tensors
from tenfold_kernels.resources.datasets.transforms import Repeat, Zip
from tenfold_kernels.resources.handles import LocalHandle
from tenfold_kernels.resources.state import ResourceHandle

if TYPE_CHECKING:
    from pathlib import Path

raw = tf.raw_ops
WIDE = [TensorShape([None])]


@pytest.fixture
def steps() -> DatasetSteps:
    return DatasetSteps()


def test_an_iterator_gives_batches_until_the_end() -> None:
    single = {"output_types": [tf.int64], "output_shapes": [[]]}
    many = {"output_types": [tf.int64], "output_shapes": [[None]]}
    with tf.Graph().as_default(), tf.Session() as session:
        source = raw.RangeDataset(start=0, stop=5, step=1, **single)
        batches = raw.BatchDatasetV2(input_dataset=source, batch_size=2, drop_remainder=False, **many)
        iterator = raw.IteratorV2(shared_name="", container="", **many)
        (batch,) = raw.IteratorGetNext(iterator=iterator, **many)

        session.run(raw.MakeIterator(dataset=batches, iterator=iterator))

        assert [session.run(batch).tolist() for _ in range(3)] == [[0, 1], [2, 3], [4]]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(batch)


def test_an_iterator_without_a_dataset_says_so() -> None:
    types = {"output_types": [tf.int64], "output_shapes": [[]]}
    with tf.Graph().as_default(), tf.Session() as session:
        iterator = raw.IteratorV2(shared_name="", container="", **types)

        with pytest.raises(tf.errors.FailedPreconditionError, match="has not been initialized"):
            session.run(raw.IteratorGetNext(iterator=iterator, **types))


# ---- how to run ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "fuses", "is_sloppy"),
    [
        ([], False, False),
        ([b"map_fusion"], False, False),
        ([b"shuffle_and_repeat_fusion"], True, False),
        ([b"make_sloppy"], False, True),
        ([b"make_sloppy", b"map_fusion", b"shuffle_and_repeat_fusion"], True, True),
    ],
)
def test_what_optimizations_a_run_has(steps: DatasetSteps, asked: list[bytes], fuses: bool, is_sloppy: bool) -> None:
    made = steps.dataset("OptimizeDataset", numbers(3), np.array(asked, object))
    run = Run()
    assert drained(made.iterate(run)) == [0, 1, 2]
    assert (run.fuses_shuffles, run.is_sloppy) == (fuses, is_sloppy)
    assert made.cardinality() == 3
    already = Run()
    already.fuses_shuffles = already.is_sloppy = True
    made.iterate(already)
    assert (already.fuses_shuffles, already.is_sloppy) == (True, True), "asked for above, too"


@pytest.mark.parametrize(
    ("op", "hints", "attrs"),
    [
        ("ModelDataset", (), {}),
        ("OptimizeDatasetV2", (np.zeros(0, object),) * 3, {}),
        ("OptionsDataset", (), {"serialized_options": b""}),
        ("FinalizeDataset", (), {}),
        ("RewriteDataset", ("name",), {}),
    ],
)
def test_hints_change_nothing(steps: DatasetSteps, op: str, hints: Any, attrs: Any) -> None:
    source = numbers(3)
    assert steps.dataset(op, source, *hints, **attrs) is source
    with refused("is not a dataset"):
        steps(op, scalar_object(None), *hints, **attrs)


# ---- batches ---------------------------------------------------------------------------------------------------------

WHOLE, CUT = [[0, 1], [2, 3], [4]], [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("op", "rest", "wanted"),
    [
        ("BatchDataset", (), WHOLE),
        ("BatchDatasetV2", (False,), WHOLE),
        ("BatchDatasetV2", (True,), CUT),
        ("ParallelBatchDataset", (1, False), WHOLE),
        ("ParallelBatchDataset", (0, True), CUT),
    ],
)
def test_batches(steps: DatasetSteps, op: str, rest: Any, wanted: Any) -> None:
    made = steps.dataset(op, numbers(5), 2, *rest, output_shapes=WIDE)
    assert drained(made) == wanted
    assert (made.types, made.shapes) == (INT, tuple(WIDE))
    with refused("batch_size must be a scalar"):
        steps(op, numbers(5), ints(2), *rest, output_shapes=WIDE)
    with refused("Batch size must be greater than zero"):
        steps(op, numbers(5), 0, *rest, output_shapes=WIDE)


ROWS = mapped(numbers(3), lambda n: np.full(int(n), n))


@pytest.mark.parametrize(
    ("op", "rest", "wanted"),
    [
        ("PaddedBatchDataset", (), [[[9, 9], [1, 9]], [[2, 2]]]),
        ("PaddedBatchDatasetV2", (False,), [[[9, 9], [1, 9]], [[2, 2]]]),
        ("PaddedBatchDatasetV2", (True,), [[[9, 9], [1, 9]]]),
    ],
)
def test_padded_batches(steps: DatasetSteps, op: str, rest: Any, wanted: Any) -> None:
    """The value of the padding is no drop_remainder."""
    made = steps.dataset(op, ROWS, 2, ints(2), one(9), *rest, N=1, output_shapes=WIDE)
    assert drained(made) == wanted
    assert (made.types, made.shapes) == (INT, tuple(WIDE))


def test_padded_batches_of_several_components(steps: DatasetSteps) -> None:
    pairs = Zip(INT * 2, ANY * 2, ROWS, ROWS)
    how: dict[str, Any] = {"N": 2, "Toutput_types": list(INT * 2), "output_shapes": WIDE * 2}
    made = steps.dataset("PaddedBatchDataset", pairs, 3, ints(-1), ints(4), one(7), one(8), **how)
    ((left, right),) = drained(made)
    assert left == [[7, 7], [1, 7], [2, 2]]
    assert right == [[8] * 4, [1, 8, 8, 8], [2, 2, 8, 8]]
    with refused("All padding values must be scalars, one for each component"):
        steps("PaddedBatchDataset", pairs, 3, ints(-1), ints(4), one(7), ints(8), **how)
    with refused("All padding values must be scalars, one for each component"):
        steps("PaddedBatchDataset", pairs, 3, ints(-1), one(7), one(8), **{**how, "N": 1})
    with refused("batch_size must be a scalar"):
        steps("PaddedBatchDataset", pairs, ints(3), ints(-1), ints(4), one(7), one(8), **how)


def test_padded_batches_of_every_rank(steps: DatasetSteps) -> None:
    matrices = mapped(numbers(2), lambda n: np.full((int(n), 2), n))
    made = steps.dataset("PaddedBatchDataset", matrices, 2, ints(2, -1), one(9), N=1)
    assert drained(made) == [[[[9, 9], [9, 9]], [[1, 1], [9, 9]]]]
    scalars = steps.dataset("PaddedBatchDataset", numbers(2), 2, np.zeros(0, np.int64), one(9), N=1)
    assert drained(scalars) == [[0, 1]]


# ---- functions of elements -------------------------------------------------------------------------------------------


def add(n: Any, *captured: Any) -> Any:
    return n + sum(captured)


def ends(n: Any) -> Any:
    if n == 2:
        raise errors.OutOfRangeError(None, None, "over")
    return n


#: op → what comes behind its captured values, and the class that it makes.
MAPS: dict[str, tuple[tuple[Any, ...], type[Dataset]]] = {
    "MapDataset": ((), Map),
    "ExperimentalMapDataset": ((), Map),
    "ParallelMapDataset": ((np.array(3, np.int32),), ParallelMap),
    "ParallelMapDatasetV2": ((3,), ParallelMap),
}


@pytest.mark.parametrize("op", MAPS)
def test_maps(steps: DatasetSteps, op: str) -> None:
    rest, kind = MAPS[op]
    made = steps.dataset(op, numbers(3), one(10), one(100), *rest, f=add, Targuments=list(INT * 2))
    assert drained(made) == [110, 111, 112]
    assert type(made) is kind
    assert (made.types, made.shapes) == (INT, SCALAR)
    if rest:
        assert (made._calls, made._in_order, made._kind) == (3, True, "ParallelMapDataset")


@pytest.mark.parametrize("op", [op for op in MAPS if op != "ExperimentalMapDataset"])
@pytest.mark.parametrize(
    ("keeps", "metadata", "count"),
    [(True, b"", 5), (True, b"m", 5), (False, b"", 5), (False, b"m", UNKNOWN)],
)
def test_a_map_s_number_of_elements(steps: DatasetSteps, op: str, keeps: bool, metadata: bytes, count: int) -> None:
    """With `preserve_cardinality` a function may not end its map; without, release 1.15 still tells their number."""
    rest, _ = MAPS[op]
    made = steps.dataset(op, numbers(5), *rest, f=ends, Targuments=[], preserve_cardinality=keeps, metadata=metadata)
    assert made.cardinality() == count
    machine = made.iterate(Run())
    assert [plain(machine()) for _ in range(2)] == [0, 1]
    if keeps:
        with refused("Function invocation produced OutOfRangeError: over"):
            machine()
    else:
        assert machine() is None


def test_a_map_ends_by_its_function_unless_something_else_is_said(steps: DatasetSteps) -> None:
    for op in ("MapDataset", "ParallelMapDataset", "ParallelMapDatasetV2"):
        machine = steps.dataset(op, numbers(5), *MAPS[op][0], f=ends, Targuments=[]).iterate(Run())
        assert [plain(machine()) for _ in range(2)] == [0, 1]
        assert machine() is None


@pytest.mark.parametrize(
    ("op", "attrs", "in_order"),
    [
        ("ParallelMapDataset", {}, True),
        ("ParallelMapDataset", {"sloppy": False}, True),
        ("ParallelMapDataset", {"sloppy": True}, False),
        ("ParallelMapDatasetV2", {}, True),
        ("ParallelMapDatasetV2", {"deterministic": b"true"}, True),
        ("ParallelMapDatasetV2", {"deterministic": b"default"}, True),
        ("ParallelMapDatasetV2", {"deterministic": b"false"}, False),
        ("ParallelMapDatasetV2", {"deterministic": "false"}, False),
    ],
)
def test_whether_a_parallel_map_keeps_the_order(steps: DatasetSteps, op: str, attrs: Any, in_order: bool) -> None:
    made = steps.dataset(op, numbers(3), *MAPS[op][0], f=add, Targuments=[], **attrs)
    assert made._in_order is in_order


def test_how_many_calls_a_map_makes_at_once(steps: DatasetSteps) -> None:
    with refused("num_parallel_calls must be greater than zero"):
        steps("ParallelMapDatasetV2", numbers(3), 0, f=add, Targuments=[])
    with refused("num_parallel_calls must be a scalar"):
        steps("ParallelMapDatasetV2", numbers(3), ints(2), f=add, Targuments=[])


@pytest.mark.parametrize("op", ["MapAndBatchDataset", "ExperimentalMapAndBatchDataset"])
def test_a_map_whose_elements_are_batched(steps: DatasetSteps, op: str) -> None:
    def made(drop: bool, **attrs: Any) -> Any:
        return steps.dataset(
            op, numbers(5), one(10), 2, 3, drop, f=add, Targuments=list(INT),
            output_shapes=[TensorShape([None, 4])], **attrs,
        )  # fmt: skip

    assert drained(made(False)) == [[10, 11], [12, 13], [14]]
    assert drained(made(True)) == [[10, 11], [12, 13]]
    (inner,) = made(False).inputs
    assert isinstance(inner, ParallelMap)
    assert (inner.types, [shape.as_list() for shape in inner.shapes]) == (INT, [[4]])
    assert (inner._calls, inner._in_order, inner._kind) == (3, True, "MapAndBatchDataset")
    assert (inner._keeps, inner.cardinality()) == (False, UNKNOWN)
    (kept,) = made(False, preserve_cardinality=True).inputs
    assert (kept._keeps, kept.cardinality()) == (True, 5)
    (unknown,) = steps.dataset(
        op, numbers(5), 2, 3, True, f=add, Targuments=[], output_shapes=[TensorShape(None)]
    ).inputs
    assert unknown.shapes[0].ndims is None


def test_numbers_of_a_map_that_is_batched_are_scalars(steps: DatasetSteps) -> None:
    for size, calls, text in ((ints(2), 3, "batch_size must be a scalar"), (2, ints(3), "num_parallel_calls must be")):
        with refused(text):
            steps("MapAndBatchDataset", numbers(5), size, calls, True, f=add, Targuments=[])


@pytest.mark.parametrize(("op", "rest"), [("FilterDataset", ()), ("ParallelFilterDataset", (2,))])
def test_filters(steps: DatasetSteps, op: str, rest: Any) -> None:
    def below(n: Any, limit: Any) -> Any:
        return np.array(n < limit)

    made = steps.dataset(op, numbers(5), one(2), *rest, predicate=below, Targuments=list(INT))
    assert drained(made) == [0, 1]


def test_a_filter_by_the_last_component(steps: DatasetSteps) -> None:
    pairs = Slices((*INT, dtypes.bool_), SCALAR * 2, (ints(1, 2, 3), np.array([True, False, True])))
    made = steps.dataset("FilterByLastComponentDataset", pairs)
    assert drained(made) == [1, 3]
    assert (made.types, made.shapes) == (INT, SCALAR)


# ---- turns -----------------------------------------------------------------------------------------------------------


def times(n: Any, *captured: Any) -> Any:
    """So many elements, each the number."""
    return Repeat(Tensors(INT, SCALAR, (np.asarray(n),)), int(n + sum(captured))).as_array()


def test_datasets_of_elements_one_after_the_other(steps: DatasetSteps) -> None:
    made = steps.dataset("FlatMapDataset", numbers(3), one(1), f=times, Targuments=list(INT))
    assert drained(made) == [0, 1, 1, 2, 2, 2]
    assert (made._cycle, made._block, made._ahead, made._fills_at_once) == (1, 1, 0, False)


#: op → what stands behind cycle_length and block_length, with the number of parallel calls open.
INTERLEAVES: dict[str, Any] = {
    "InterleaveDataset": lambda calls: (),
    "ParallelInterleaveDatasetV2": lambda calls: (calls,),
    "ParallelInterleaveDatasetV3": lambda calls: (calls,),
    "ParallelInterleaveDatasetV4": lambda calls: (5, 6, calls),
}
PARALLEL = [op for op in INTERLEAVES if op != "InterleaveDataset"]


def interleaved(steps: DatasetSteps, op: str, cycle: Any, block: Any, calls: Any = 1) -> Interleave:
    found = steps.dataset(op, numbers(4), one(1), cycle, block, *INTERLEAVES[op](calls), f=times, Targuments=list(INT))
    assert isinstance(found, Interleave)
    return found


@pytest.mark.parametrize("op", INTERLEAVES)
def test_datasets_of_elements_in_turns(steps: DatasetSteps, op: str) -> None:
    made = interleaved(steps, op, 2, 3)
    assert drained(made) == [0, 1, 1, 2, 2, 2, 3, 3, 3, 3]
    assert drained(interleaved(steps, op, 2, 1)) == [0, 1, 1, 2, 2, 3, 2, 3, 3, 3]
    assert (made._cycle, made._block, made._fills_at_once) == (2, 3, False)
    assert made._ahead == (4 if op in PARALLEL else 0)
    with refused("cycle_length must be a scalar"):
        interleaved(steps, op, ints(2), 3)
    with refused("block_length must be a scalar"):
        interleaved(steps, op, 2, ints(3))
    with refused("`block_length` must be > 0"):
        interleaved(steps, op, 2, 0)


@pytest.mark.parametrize("op", INTERLEAVES)
def test_turns_of_one(steps: DatasetSteps, op: str) -> None:
    assert drained(interleaved(steps, op, 1, 1)) == [0, 1, 1, 2, 2, 2, 3, 3, 3, 3]


@pytest.mark.parametrize("op", INTERLEAVES)
def test_how_many_take_turns_may_be_left_to_us(steps: DatasetSteps, op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Release 1.15 takes a dataset for each core."""
    monkeypatch.setattr(dataset_ops, "available_cores", lambda: 7)
    wanted = 7 if op in ("InterleaveDataset", "ParallelInterleaveDatasetV2") else 4
    assert interleaved(steps, op, -1, 1)._cycle == wanted
    assert interleaved(steps, op, -1, 1, calls=20)._cycle == wanted, "no length to compare the calls with"


@pytest.mark.parametrize("op", PARALLEL)
def test_no_more_calls_than_take_turns(steps: DatasetSteps, op: str) -> None:
    for calls in (1, 2, -1):
        assert interleaved(steps, op, 2, 1, calls)._cycle == 2
    for calls in (0, -2):
        with refused("`num_parallel_calls` must be > 0"):
            interleaved(steps, op, 2, 1, calls)
    with refused("However, `num_parallel_calls` is 3 and `cycle_length` is 2$"):
        interleaved(steps, op, 2, 1, 3)
    with refused("num_parallel_calls must be a scalar"):
        interleaved(steps, op, 2, 1, ints(1))


#: op → what stands behind block_length, with buffer_output_elements and prefetch_input_elements open.
FILLED: dict[str, Any] = {
    "ParallelInterleaveDataset": lambda *sizes: (True, *sizes),
    "ExperimentalParallelInterleaveDataset": lambda *sizes: (False, *sizes),
    "LegacyParallelInterleaveDatasetV2": lambda *sizes: sizes,
}


@pytest.mark.parametrize("op", FILLED)
def test_turns_that_are_filled_at_once(steps: DatasetSteps, op: str) -> None:
    def made(cycle: Any, block: Any, buffered: Any, prefetched: Any) -> Any:
        return steps.dataset(
            op, numbers(4), one(1), cycle, block, *FILLED[op](buffered, prefetched), f=times, Targuments=list(INT)
        )

    found = made(2, 3, 5, 6)
    assert drained(found) == [0, 1, 1, 2, 2, 2, 3, 3, 3, 3]
    assert (found._cycle, found._block, found._ahead, found._fills_at_once) == (2, 3, 5, True)
    assert [made(2, 1, buffered, 0)._ahead for buffered in (1, 2, -1)] == [1, 2, AUTOTUNED]
    for prefetched in (0, -1):
        made(2, 1, 1, prefetched)
    for buffered in (0, -2):
        with refused("`buffer_output_elements` must be > 0"):
            made(2, 1, buffered, 1)
    with refused("`prefetch_input_elements` must be >= 0"):
        made(2, 1, 1, -2)
    for place, name in enumerate(("cycle_length", "block_length", "buffer_output_elements", "prefetch_input_elements")):
        values: list[Any] = [2, 1, 1, 1]
        values[place] = ints(1)
        with refused(f"{name} must be a scalar"):
            made(*values)


# ---- parts, pairs, what is remembered --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "wanted"),
    [("RepeatDataset", [0, 1, 2, 0, 1, 2]), ("TakeDataset", [0, 1]), ("SkipDataset", [2])],
)
def test_a_count(steps: DatasetSteps, op: str, wanted: list[int]) -> None:
    assert drained(steps.dataset(op, numbers(3), 2)) == wanted
    with refused("count must be a scalar"):
        steps(op, numbers(3), ints(2))


def test_shards(steps: DatasetSteps) -> None:
    assert drained(steps.dataset("ShardDataset", numbers(7), 3, 1)) == [1, 4]
    for few in ({}, {"require_non_empty": False}):
        assert drained(steps.dataset("ShardDataset", numbers(1), 3, 1, **few)) == []
    with refused(r"only has 1 file\(s\)"):
        drained(steps.dataset("ShardDataset", numbers(1), 3, 1, require_non_empty=True))
    with refused("num_shards must be a scalar"):
        steps("ShardDataset", numbers(7), ints(3), 1)
    with refused("index must be a scalar"):
        steps("ShardDataset", numbers(7), 3, ints(1))


@pytest.mark.parametrize(("drop", "wanted"), [(True, [[0, 2], [3, 5]]), (False, [[0, 2], [3, 5], [6]])])
def test_windows(steps: DatasetSteps, drop: bool, wanted: Any) -> None:
    made = steps.dataset("WindowDataset", numbers(7), 2, 3, 2, drop, output_types=[dtypes.variant])
    assert [drained(element[0].item()) for element in iter(made.iterate(Run()), None)] == wanted
    for place, name in enumerate(("size", "shift", "stride")):
        values: list[Any] = [2, 3, 2]
        values[place] = ints(1)
        with refused(f"{name} must be a scalar"):
            steps("WindowDataset", numbers(7), *values, drop)


def test_pairs_and_one_after_the_other(steps: DatasetSteps) -> None:
    how: dict[str, Any] = {"output_types": list(INT * 3), "output_shapes": list(SCALAR * 3)}
    three = steps.dataset("ZipDataset", numbers(2), numbers(5), mapped(numbers(3), lambda n: n * 10), **how)
    assert drained(three) == [(0, 0, 0), (1, 1, 10)]
    assert (three.types, three.shapes) == (INT * 3, SCALAR * 3)
    both = steps.dataset("ConcatenateDataset", numbers(2), mapped(numbers(2), lambda n: n * 10))
    assert drained(both) == [0, 1, 0, 10]
    words = Slices((dtypes.string,), SCALAR, (np.array([b"a"], object),))
    for other, types in ((words, "string"), (three, "int64,int64,int64")):
        with refused(
            rf"^input dataset and dataset to concatenate have different output_types \[int64\] and \[{types}\]$"
        ):
            steps("ConcatenateDataset", numbers(2), other)


def test_a_buffer(steps: DatasetSteps) -> None:
    assert steps.dataset("PrefetchDataset", numbers(3), 2)._size == 2
    assert drained(steps.dataset("PrefetchDataset", mapped(numbers(3), lambda n: n), 2)) == [0, 1, 2]
    with refused("buffer_size must be a scalar"):
        steps("PrefetchDataset", numbers(3), ints(2))


def test_caches_in_memory(steps: DatasetSteps) -> None:
    calls: list[int] = []

    def body(n: Any) -> Any:
        calls.append(int(n))
        return n

    source = mapped(numbers(3), body)
    own = steps.dataset("CacheDataset", source, "")
    assert isinstance(own, Cache)
    assert [drained(own), drained(own), calls] == [[0, 1, 2]] * 3
    handle, _ = steps("AnonymousMemoryCache")
    first, second = (steps.dataset("CacheDatasetV2", source, "", handle) for _ in range(2))
    calls.clear()
    assert [drained(first), drained(second), calls] == [[0, 1, 2]] * 3, "shared by the resource"
    dummy = steps("DummyMemoryCache")
    calls.clear()
    for _ in range(2):
        assert drained(steps.dataset("CacheDatasetV2", source, "", dummy)) == [0, 1, 2]
    assert calls == [0, 1, 2] * 2, "each has its own"


def test_caches_in_files(steps: DatasetSteps, tmp_path: Path) -> None:
    for op, rest in (("CacheDataset", ()), ("CacheDatasetV2", (steps("DummyMemoryCache"),))):
        made = steps.dataset(op, numbers(3), str(tmp_path / op), *rest)
        assert isinstance(made, FileCache)
        assert drained(made) == [0, 1, 2]
        assert (tmp_path / op).is_file()
        with refused("filename must be a scalar"):
            steps(op, numbers(3), np.array([b""], object), *rest)


# ---- resources -------------------------------------------------------------------------------------------------------


def test_what_a_handle_holds_or_nothing() -> None:
    cache = MemoryCache()
    handle = LocalHandle(DEVICE, "", "n", 0, "MemoryCache", cache).as_array()
    assert resource_or_none(handle, MemoryCache) is cache
    assert resource_or_none(handle, SeedGenerator) is None
    assert resource_or_none(ResourceHandle(DEVICE, "", "n").as_array(), MemoryCache) is None
    assert resource_or_none(None, MemoryCache) is None


def test_generators_of_seeds(steps: DatasetSteps) -> None:
    for reshuffle in (True, False):
        handle, deleter = steps("AnonymousSeedGenerator", 3, 4, reshuffle, name="seeds")
        made = resource_or_none(handle, SeedGenerator)
        assert (made.seeds, made.reshuffles) == ((3, 4), reshuffle)
    found = handle.item()
    assert (found.device, found.container, found.name, found.hash_code, found.type_name) == (
        DEVICE, "", "seeds", 0, "SeedGenerator",
    )  # fmt: skip
    assert (deleter.shape, deleter.dtype) == ((), object)
    handle, deleter = steps("AnonymousRandomSeedGenerator", 3, 4)
    made = resource_or_none(handle, SeedGenerator)
    assert (made.seeds, made.reshuffles) == ((3, 4), True)
    for seeds, name in (((ints(3), 4), "seed"), ((3, ints(4)), "seed2")):
        with refused(f"^{name} must be a scalar"):
            steps("AnonymousRandomSeedGenerator", *seeds)


def test_a_cache_is_a_resource_of_its_handle(steps: DatasetSteps) -> None:
    handle, deleter = steps("AnonymousMemoryCache", name="cache")
    assert isinstance(resource_or_none(handle, MemoryCache), MemoryCache)
    assert (handle.item().name, handle.item().type_name, deleter.shape) == ("cache", "MemoryCache", ())
    other, _ = steps("AnonymousMemoryCache")
    assert resource_or_none(handle, MemoryCache) is not resource_or_none(other, MemoryCache)


@pytest.mark.parametrize("op", ["DummySeedGenerator", "DummyMemoryCache"])
def test_a_dummy_is_a_name(steps: DatasetSteps, op: str) -> None:
    found = steps(op, name="dummy").item()
    assert type(found) is ResourceHandle
    assert (found.device, found.container, found.name) == (DEVICE, "", "dummy")


@pytest.mark.parametrize("op", ["DeleteSeedGenerator", "DeleteRandomSeedGenerator", "DeleteMemoryCache"])
def test_what_is_deleted_goes_with_its_handle(steps: DatasetSteps, op: str) -> None:
    handle, deleter = steps("AnonymousMemoryCache")
    assert steps(op, handle, deleter) is None


# ---- how many --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["DatasetCardinality", "ExperimentalDatasetCardinality"])
def test_how_many_elements_there_are(steps: DatasetSteps, op: str) -> None:
    for source, count in ((numbers(3), 3), (Repeat(numbers(1), -1), INFINITE), (Listed(INT, SCALAR, []), 0)):
        found = steps(op, source)
        assert (found.dtype, found.shape, int(found)) == (np.int64, (), count)


def test_how_many_elements_there_must_be(steps: DatasetSteps) -> None:
    assert drained(steps.dataset("AssertCardinalityDataset", numbers(3), 3)) == [0, 1, 2]
    assert steps.dataset("AssertCardinalityDataset", numbers(3), 4).cardinality() == 4
    with pytest.raises(errors.FailedPreconditionError, match="expected to contain 2 elements"):
        drained(steps.dataset("AssertCardinalityDataset", numbers(3), 2))
    with refused("cardinality must be a scalar"):
        steps("AssertCardinalityDataset", numbers(3), ints(3))
