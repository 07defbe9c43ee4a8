"""What a key costs in memory: how far a process grows while a table is filled, rows of 8 floats and Adagrad's slot.

The same program has first run on a small table, so that neither code nor pools count. A static table has a row for each
key, and no ids. All keys come once, in batches, each with a gradient. Runs under Python 3.7, too.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import harness
import numpy as np
from harness import Case, Measure
from models.recommenders import ACCUMULATED, RATE
from models.tables import Tables, first_rows
from recommenders_programs import BY_ID, FUSED, STATIC, TASK
from recommenders_quality import LIMIT_S, ask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness import Context, Wish

SIDES = (BY_ID, STATIC, harness.TENSORFLOW_115_DIRECT, FUSED)
#: Elements of a row, keys of a batch, keys of the small table.
WIDTH, BATCH, SMALL = 8, 100_000, 200_000
#: Numbers of keys: of a look, of a report, and of --keys.
QUICK, FULL, HUGE = 1_000_000, 10_000_000, 100_000_000
#: Weights and slot.
ROW_BYTES = 2 * 4 * WIDTH
#: Bytes of a key beyond its row, and MiB of the process with HUGE keys.
BEYOND, HUGE_MIB = 24.0, 10 * 1024.0
#: No step is longer than so many times the median.
LONGEST = 3.0
#: Odd: a different key for each number.
_SPREAD = 0x5851F42D4C957F2D


def resident() -> float:
    """Bytes that are in memory."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) * 1024.0 for line in status.splitlines() if line.startswith("VmRSS"))


def keys_of(first: int, count: int, is_raw: bool) -> Any:
    """int64: so many keys of their own, raw or by row."""
    numbers = np.arange(first, first + count, dtype=np.int64)
    if not is_raw:
        return numbers
    return ((numbers.astype(np.uint64) * np.uint64(_SPREAD)) >> np.uint64(1)).astype(np.int64)


def filler(ctx: Context, name: str, rows: int) -> Callable[[Any], object]:
    """A table of so many rows, and what trains a batch of keys in it."""
    grad = np.full([BATCH, WIDTH], 0.01, np.float32)
    if ctx.side.runtime == "peers":
        return _torch_filler(ctx, rows, grad)
    tf, graph = ctx.tf, ctx.tf.Graph()
    with ctx.building(graph):
        table = Tables(tf, ctx.side.tables == "by id").table(name, rows, WIDTH, 0)
        keys = tf.placeholder(tf.int64, [BATCH])
        values = tf.placeholder(tf.float32, [BATCH, WIDTH])
        slices = tf.IndexedSlices(values, keys, tf.constant([rows, WIDTH], tf.int64))
        train = tf.train.AdagradOptimizer(RATE, ACCUMULATED).apply_gradients([(slices, table)])
        init = tf.global_variables_initializer()
    run = ctx.session(graph).run
    run(init)
    return lambda batch: run(train, {keys: batch, values: grad})


def _torch_filler(ctx: Context, rows: int, grad: Any) -> Callable[[Any], object]:
    from models.in_torch.tables import fused_tables

    torch, given = ctx.tf, ctx.tf.from_numpy(grad)
    first = first_rows(0, WIDTH)
    if ctx.side.tables == "fused":
        module = fused_tables(torch, [np.zeros([rows, WIDTH], np.float32)], RATE)
        places = torch.arange(BATCH + 1)
        return lambda batch: module(torch.from_numpy(batch), places).backward(given)
    table = torch.from_numpy(first).repeat(-(-rows // len(first)), 1)[:rows].requires_grad_()
    optimizer = torch.optim.Adagrad([table], RATE, initial_accumulator_value=ACCUMULATED)

    def fill(batch: Any) -> None:
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.embedding(torch.from_numpy(batch), table, sparse=True).backward(given)
        optimizer.step()

    return fill


def memory(keys: int) -> Callable[[Context], Measure]:
    def build(ctx: Context) -> Measure:
        def result() -> dict[str, Any]:
            is_raw = ctx.side.tables == "by id"
            warm = filler(ctx, "small", SMALL)
            for first in range(0, SMALL, BATCH):
                warm(keys_of(first, BATCH, is_raw))
            before, taken = resident(), []
            fill = filler(ctx, "table", keys)
            for first in range(0, keys, BATCH):
                batch = keys_of(first, BATCH, is_raw)
                started = time.perf_counter()
                fill(batch)
                taken.append(time.perf_counter() - started)
            grown = resident() - before
            # the first one prepares the step
            steady = np.array(taken[1:])
            return {
                "bytes": np.float64(grown / keys),
                "keys a second": np.float64(BATCH * steady.size / steady.sum()),
                "longest": np.float64(steady.max() / np.median(steady)),
                "resident_mib": np.float64(resident() / 2**20),
            }

        return Measure(lambda: None, result)

    return build


def cases() -> Iterator[Case]:
    for keys in (QUICK, FULL, HUGE):
        yield Case(
            named(keys), TASK, memory(keys), sides=tuple(side.name for side in SIDES),
            note=f"{ROW_BYTES} bytes of a key are its weights and its slot; keys come once, {BATCH:,} a step",
        )  # fmt: skip


def named(keys: int) -> str:
    return f"memory of {keys:,} keys"


def rows(wish: Wish, module: str, keys: int) -> Iterator[dict[str, Any]]:
    """One row; with HUGE keys of Tenfold's table by id alone."""
    case = next(case for case in cases() if case.name == named(keys))
    if wish.only not in case.name:
        return
    # a side fills a million keys in 2 to 10 seconds
    limit_s = LIMIT_S * max(1.0, keys / FULL)
    asked = ask(case, SIDES[:1] if keys == HUGE else SIDES, wish, module, limit_s)
    row = harness.row_of(case, {}, {}, asked.failures, "equal", 0.0)
    row["readings"] = {side: _text(each) for side, each in asked.found.items()}
    row["memory"] = {side: {name: float(value) for name, value in each.items()} for side, each in asked.found.items()}
    ours = row["memory"].get(BY_ID.name)
    if ours is not None:
        beyond = ours["bytes"] - ROW_BYTES
        held = [
            (beyond, BEYOND, "bytes beyond a row"),
            (ours["longest"], LONGEST, "times the median, the longest step"),
        ]
        held += [(ours["resident_mib"], HUGE_MIB, "MiB")] if keys == HUGE else []
        row["verdicts"][BY_ID.name] = "; ".join(
            f"{'met' if value <= limit else 'missed'}: {value:.3g} of ≤ {limit:g} {what}" for value, limit, what in held
        )
    yield row


def _text(found: dict[str, Any]) -> str:
    rate, longest = float(found["keys a second"]) / 1e6, float(found["longest"])
    return (
        f"{float(found['bytes']):.1f} bytes a key, filled with {rate:.2f} million keys a second, longest step "
        f"{longest:.2g} times the median, {float(found['resident_mib']):,.0f} MiB resident"
    )
