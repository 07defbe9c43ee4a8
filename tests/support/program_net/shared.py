"""Programs of what steps share: queues, tables, barriers, accumulators and stages."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from support.program_net.flow import part_of, value_of
from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from support.program_net.program import Program

F, INT, LONG, S = dtypes.float32, dtypes.int32, dtypes.int64, dtypes.string


def queues(p: Program) -> None:
    d = p.d
    kind = d.choice(("FIFOQueueV2", "PaddingFIFOQueueV2", "PriorityQueueV2"))
    types = [d.choice((F, INT, S)) for _ in range(d.randint(1, 2))]
    shapes = [tuple(max(1, size) for size in d.shape(0, 2)) for _ in types]
    known: list[Any] = [TensorShape(shape) for shape in shapes]
    if kind == "FIFOQueueV2" and d.maybe(0.4):
        known = []
    if kind == "PaddingFIFOQueueV2":
        known = [TensorShape([None if d.maybe() else size for size in shape]) for shape in shapes]
    capacity = d.choice((-1, 3, 5))
    queue = p.step(kind, component_types=types, shapes=known, capacity=capacity, shared_name=b"q")
    leading = [LONG] if kind == "PriorityQueueV2" else []
    there, is_closed = 0, False

    def elements(batch: tuple[int, ...]) -> list[np.ndarray]:
        first = [np.array(d.ints(math.prod(batch), 0, 5), np.int64).reshape(batch)] if leading else []
        more = d.choice((0, 1)) if kind == "PaddingFIFOQueueV2" else 0
        made = []
        for dtype, shape, allowed in zip(types, shapes, known or shapes, strict=True):
            sizes = [
                s + more if a is None else s for s, a in zip(shape, allowed.as_list() if known else shape, strict=True)
            ]
            made.append(value_of(p, dtype, (*batch, *sizes)))
        if d.maybe(0.05):
            made[-1] = made[-1][..., None]
        return [*first, *made]

    every = [*leading, *types]
    for _ in range(d.randint(2, 6)):
        then = d.choice(("one", "many", "take", "takes", "upto", "size", "close", "one", "many"))
        room = capacity - there if capacity > 0 else 9
        if then == "one" and (room > 0 or is_closed):
            p.step("QueueEnqueueV2", queue, *elements(()), Tcomponents=every)
            there += 1
        elif then == "many" and (room > 1 or is_closed):
            count = d.randint(0, 2)
            p.step("QueueEnqueueManyV2", queue, *elements((count,)), Tcomponents=every)
            there += count
        elif then == "take" and (there or is_closed):
            p.step("QueueDequeueV2", queue, component_types=every)
            there -= 1
        elif then == "takes" and (there or is_closed):
            count = d.randint(0, there + is_closed)
            p.step("QueueDequeueManyV2", queue, np.int32(count - d.maybe(0.04) * 9), component_types=every)
            there -= count
        elif then == "upto" and (there or is_closed):
            count = d.randint(0, there + 2 * is_closed)
            p.step("QueueDequeueUpToV2", queue, np.int32(count), component_types=every)
            there -= min(count, there)
        elif then == "close" and d.maybe(0.4):
            p.step("QueueCloseV2", queue, cancel_pending_enqueues=d.maybe())
            is_closed = True
            p.step("QueueIsClosedV2", queue)
        p.step("QueueSizeV2", queue)


def tables(p: Program) -> None:
    d = p.d
    kind = d.choice(("HashTableV2", "MutableHashTableV2", "MutableHashTableOfTensorsV2", "MutableDenseHashTableV2"))
    key, value = d.choice(((LONG, LONG), (S, LONG), (S, F), (LONG, F), (LONG, S), (INT, INT), (S, S)))
    if kind == "HashTableV2":
        key, value = d.choice(((LONG, LONG), (S, LONG), (S, S), (S, F), (LONG, S), (INT, INT)))
    if kind == "MutableDenseHashTableV2":
        key, value = d.choice(((LONG, LONG), (LONG, F), (S, LONG), (INT, INT), (S, F)))
    shape = (2,) if "Tensors" in kind or ("Dense" in kind and d.maybe(0.4)) else ()
    words = [b"a", b"b", b"c", b"d", b"e"]

    def keys(count: int) -> np.ndarray:
        picked = d.sample(range(5), count) if kind == "HashTableV2" and d.maybe(0.9) else d.ints(count, 0, 4)
        made = np.array([words[k] for k in picked], object) if key is S else np.array(picked)
        return made.astype(object if key is S else key.as_numpy_dtype)

    attrs: dict[str, Any] = {"key_dtype": key, "value_dtype": value, "shared_name": b"t"}
    if "Dense" in kind:
        ends = [np.array(b"empty" if key is S else -1, object if key is S else key.as_numpy_dtype),
                np.array(b"gone" if key is S else -2, object if key is S else key.as_numpy_dtype)]  # fmt: skip
        table = p.step(
            kind,
            *ends,
            value_shape=TensorShape(shape),
            initial_num_buckets=d.choice((4, 8, 3)),
            max_load_factor=d.choice((0.8, 0.5)),
            **attrs,
        )
    elif "Tensors" in kind:
        table = p.step(kind, value_shape=TensorShape(shape), **attrs)
    else:
        table = p.step(kind, **attrs)
    default = value_of(p, value, shape)
    for turn in range(d.randint(2, 5)):
        then = "insert" if turn == 0 else d.choice(("insert", "find", "find", "size", "remove", "import", "export"))
        count = d.randint(0, 3)
        if kind == "HashTableV2":
            if then == "insert":
                p.step("InitializeTableV2", table, keys(count), value_of(p, value, (count,)))
            elif then == "find":
                p.step("LookupTableFindV2", table, keys(count).reshape(d.choice(((count,), (1, count)))), default)
        elif then == "insert":
            p.step("LookupTableInsertV2", table, keys(count), value_of(p, value, (count + d.maybe(0.05), *shape)))
        elif then == "find":
            p.step("LookupTableFindV2", table, keys(count), default if d.maybe(0.95) else value_of(p, value, (3,)))
        elif then == "remove":
            p.step("LookupTableRemoveV2", table, keys(count))
        elif then == "import":
            p.step("LookupTableImportV2", table, keys(1), value_of(p, value, (1, *shape)))
            if kind != "MutableDenseHashTableV2":
                p.step("LookupTableExportV2", table, Tkeys=key, Tvalues=value)
        p.step("LookupTableSizeV2", table)


def barriers(p: Program) -> None:
    d = p.d
    types = [d.choice((F, INT, S)) for _ in range(d.randint(1, 2))]
    shapes = [tuple(max(1, size) for size in d.shape(0, 1)) for _ in types]
    barrier = p.step(
        "Barrier",
        component_types=types,
        shapes=[TensorShape(s) for s in shapes] if d.maybe(0.9) else [],
        shared_name=b"b",
    )
    ready, half = 0, set()
    for _ in range(d.randint(1, 4)):
        at = d.randrange(len(types))
        free = [key for key in (b"a", b"b", b"c", b"d") if (key, at) not in half or d.maybe(0.05)]
        keys = d.sample(free, min(len(free), d.randint(0, 1)))  # TensorFlow takes those of one call in any order
        p.step(
            "BarrierInsertMany",
            barrier,
            np.array(keys, object),
            value_of(p, types[at], (len(keys), *shapes[at])),
            component_index=at,
        )
        half |= {(key, at) for key in keys}
        ready = sum(all((key, k) in half for k in range(len(types))) for key in {key for key, _ in half})
        p.step("BarrierReadySize", barrier)
        p.step("BarrierIncompleteSize", barrier)
    is_closed = d.maybe(0.3)
    if is_closed:
        p.step("BarrierClose", barrier, cancel_pending_enqueues=d.maybe())
    if ready:
        p.step(
            "BarrierTakeMany",
            barrier,
            np.int32(d.randint(0, ready)),
            component_types=types,
            allow_small_batch=d.maybe(),
            wait_for_incomplete=False,
        )
    p.step("BarrierReadySize", barrier)


def accumulators(p: Program) -> None:
    d = p.d
    dtype = d.choice((F, dtypes.float64))
    shape = tuple(max(1, size) for size in d.shape(1, 2))
    kind = d.choice(("ConditionalAccumulator", "ResourceConditionalAccumulator", "SparseConditionalAccumulator"))
    held = p.step(
        kind, dtype=dtype, shape=part_of(p, shape), reduction_type=d.choice((b"MEAN", b"SUM")), shared_name=b"acc"
    )
    prefix = {"C": "Accumulator", "R": "ResourceAccumulator", "S": "SparseAccumulator"}[kind[0]]
    plain = "Accumulator" if prefix == "SparseAccumulator" else prefix
    count, step = 0, 0
    for _ in range(d.randint(1, 5)):
        then = d.choice(("apply", "apply", "step", "take", "num"))
        local = np.int64(d.randint(max(0, step - 1), step + 1))
        if then == "apply":
            sizes = shape if d.maybe(0.95) else (*shape, 1)
            if kind[0] == "S":
                rows = sorted(d.sample(range(shape[0]), d.randint(1, shape[0])))
                p.step(
                    f"{prefix}ApplyGradient",
                    held,
                    local,
                    np.array(rows, np.int64),
                    d.floats((len(rows), *sizes[1:])),
                    np.array(sizes if d.maybe() else [], np.int64),
                    dtype=dtype,
                    has_known_shape=d.maybe(),
                )
            else:
                p.step(f"{prefix}ApplyGradient", held, local, d.floats(sizes), dtype=dtype)
            count += local >= step
        elif then == "step":
            step += d.randint(0, 2)
            p.step(f"{plain}SetGlobalStep", held, np.int64(step))
        elif then == "take" and count:
            p.step(f"{prefix}TakeGradient", held, np.int32(d.randint(1, count)), dtype=dtype)
            count, step = 0, step + 1
        p.step(f"{plain}NumAccumulated", held)


def stages(p: Program) -> None:
    d = p.d
    types = [d.choice((F, INT, S)) for _ in range(d.randint(1, 2))]
    shapes = [d.shape(0, 2) for _ in types]
    attrs: dict[str, Any] = {"shared_name": b"st", "capacity": d.choice((0, 4)), "memory_limit": d.choice((0, 4000))}
    if d.maybe():
        there = 0
        for _ in range(d.randint(1, 4)):
            p.step("Stage", *(value_of(p, *each) for each in zip(types, shapes, strict=True)), **attrs)
            there += 1
            if d.maybe(0.4):
                p.step("StagePeek", np.int32(d.randrange(there)), dtypes=types, **attrs)
            if d.maybe(0.4):
                p.step("Unstage", dtypes=types, **attrs)
                there -= 1
            if d.maybe(0.2):
                p.step("StageClear", dtypes=types, **attrs)
                there = 0
            p.step("StageSize", dtypes=types, **attrs)
        return
    ordered = d.choice(("", "Ordered"))
    keys: list[int] = []
    for _ in range(d.randint(1, 4)):
        key = d.randint(0, 3)
        if key not in keys:
            at = list(range(len(types)))
            if d.maybe(0.3) and len(types) == 2:
                for place in at:
                    p.step(
                        f"{ordered}MapStage",
                        np.int64(key),
                        np.array([place], np.int32),
                        value_of(p, types[place], shapes[place]),
                        dtypes=types,
                        **attrs,
                    )
                    p.step(f"{ordered}MapIncompleteSize", dtypes=types, **attrs)
            else:
                p.step(
                    f"{ordered}MapStage",
                    np.int64(key),
                    np.array(at, np.int32),
                    *(value_of(p, *each) for each in zip(types, shapes, strict=True)),
                    dtypes=types,
                    **attrs,
                )
            keys.append(key)
        every = np.arange(len(types), dtype=np.int32)
        then = d.choice(("peek", "take", "any", "clear", "", ""))
        if then == "peek" and keys:
            p.step(f"{ordered}MapPeek", np.int64(d.choice(keys)), every, dtypes=types, **attrs)
        elif then == "take" and keys:
            p.step(f"{ordered}MapUnstage", np.int64(keys.pop(d.randrange(len(keys)))), every, dtypes=types, **attrs)
        elif then == "any" and len(keys) and (ordered or len(keys) == 1):
            p.step(f"{ordered}MapUnstageNoKey", every, dtypes=types, **attrs)
            keys.remove(min(keys))
        elif then == "clear" and d.maybe(0.3):
            p.step(f"{ordered}MapClear", dtypes=types, **attrs)
            keys.clear()
        p.step(f"{ordered}MapSize", dtypes=types, **attrs)


FAMILIES = {each.__name__: each for each in (queues, tables, barriers, accumulators, stages)}
