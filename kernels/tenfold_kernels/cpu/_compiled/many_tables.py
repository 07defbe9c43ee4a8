"""Ids of many tables at once: their rows found, and copied or updated, in pieces that threads share (chunks.py).

A job is a block of int64s, the numbers of `Job`; a table in it is a line (resources/table_lines.py): addresses and
sizes of its index (id_index.py) and of its columns. The caller has the locks of all tables, which hold the arrays. Used
by cpu/_many_tables.py. Indices and rows are read at random places of memory, so they are asked for some ids ahead. An
update is that of sparse_updates.py; the ids of a table are in one piece, for one may be there twice.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu._compiled import sparse_updates
from tenfold_kernels.cpu._compiled.compiling import compile_loop, inline
from tenfold_kernels.cpu._compiled.id_index import FREE, MOVED, OLD_SHIFT, SHIFT, hash_of, place_of, row_from
from tenfold_kernels.cpu._compiled.id_index import add as add_ids
from tenfold_kernels.cpu._compiled.intrinsics import copy_bytes, floats, int32s, int64s, load, number, prefetch
from tenfold_kernels.cpu._compiled.loop_spec import CALLBACK
from tenfold_kernels.resources.id_map import State
from tenfold_kernels.resources.table_lines import COLUMN_WORDS, GROWTH_WORDS, Growth, Table

if TYPE_CHECKING:
    from collections.abc import Callable


class Job(enum.IntEnum):
    TABLES = 0
    #: Of each table, where its ids end; those of the next one begin there.
    ENDS = 1
    COUNT = 2
    #: M ids, and the rows that are found of them: −1 for none.
    IDS = 3
    ROWS = 4
    TOTAL = 5
    #: Ids of a piece; where tables are chosen, tables.
    STEP = 6
    #: Where the weights of the rows go, or 0; and bytes of a row.
    OUT = 7
    ROW_BYTES = 8
    #: Where only some tables have work to do: their numbers, and how many there are.
    CHOSEN = 9
    CHOICES = 10
    #: Of tables that get rows for new ids, their lines of `Growth`, in the order of `CHOSEN`; what they get, M numbers
    #: of rows of which each table's begin with its ids, and how many it gets.
    GROWTHS = 11
    ADDED = 12
    ADDED_COUNTS = 13
    #: Of an update, for each table: the address of its gradients by id, elements of a row.
    GRADIENTS = 14
    WIDTHS = 15
    #: float64s from here on: the numbers that all elements of an update share.
    NUMBERS = 16


#: int64s of a job.
JOB_WORDS = Job.NUMBERS + 8
#: Ids between the one whose place in the index is asked for, the one whose row is, and the one that is found: about as
#: many as the lines of memory that a core waits for beside each other.
_AHEAD = 12
# Their places in bytes: Numba reads no enum.
(
    _TABLES, _ENDS, _COUNT, _IDS, _ROWS, _TOTAL, _STEP, _OUT, _ROW_BYTES, _CHOSEN, _CHOICES, _GROWTHS, _ADDED,
    _ADDED_COUNTS, _GRADIENTS, _WIDTHS, _NUMBERS,
) = (8 * int(cell) for cell in Job)  # fmt: skip
_INDEX, _SLOTS, _OLD, _OLD_SLOTS, _TABLE_IDS, _LIMIT, _WEIGHTS, _SLOT, _OTHER_SLOT, _SEED, _STATE = (
    8 * int(cell) for cell in Table
)
_STATES = len(State)
_TABLE_BYTES, _GROWTH_BYTES, _COLUMN_BYTES = 8 * len(Table), 8 * GROWTH_WORDS, 8 * COLUMN_WORDS
_COLUMNS, _FREE, _COLUMN_ROWS, _COLUMN_ROW_BYTES, _FIRST, _FIRSTS = (8 * int(cell) for cell in Growth)


def find(job, piece):  # type: ignore[no-untyped-def]
    """The rows of some ids, and their weights if they are wanted."""
    total = load(job + _TOTAL)
    ids_M, rows_M = int64s(load(job + _IDS), total), int64s(load(job + _ROWS), total)
    ends_N = int64s(load(job + _ENDS), load(job + _COUNT))
    first = piece * load(job + _STEP)
    last = min(first + load(job + _STEP), total)
    n = 0
    while first < last:
        while ends_N[n] <= first:
            n += 1
        end = min(last, ends_N[n])
        _find(load(job + _TABLES) + n * _TABLE_BYTES, ids_M[first:end], rows_M[first:end], job, first)
        first = end


@inline
def _find(table, ids_K, rows_K, job, first):  # type: ignore[no-untyped-def]
    index = load(table + _INDEX)
    if index == 0:
        rows_K[:] = -1
        return
    seed, limit, row_bytes = load(table + _SEED), load(table + _LIMIT), load(job + _ROW_BYTES)
    index_S, old_S = int32s(index, load(table + _SLOTS)), int32s(load(table + _OLD), load(table + _OLD_SLOTS))
    keys, weights, state = load(table + _TABLE_IDS), load(table + _WEIGHTS), int64s(load(table + _STATE), _STATES)
    shift, old_shift, moved = state[SHIFT], state[OLD_SHIFT], state[MOVED]
    keys_R = int64s(keys, limit)
    out = load(job + _OUT)
    count = ids_K.size
    for ahead in range(count + 2 * _AHEAD):
        if ahead < count:
            # until the row is known, the slot is kept in its place; one of the old index as its complement
            h = hash_of(ids_K[ahead], seed)
            old = place_of(h, old_shift)
            if old < moved:
                rows_K[ahead] = place_of(h, shift)
                prefetch(index + 4 * rows_K[ahead])
            else:
                rows_K[ahead] = ~old
                prefetch(load(table + _OLD) + 4 * old)
        i = ahead - _AHEAD
        if 0 <= i < count:
            slot = rows_K[i]
            row = np.int64(index_S[slot] if slot >= 0 else old_S[~slot]) - 1
            if row >= 0:
                prefetch(keys + 8 * row)
                # its other lines follow by themselves
                prefetch(weights + row_bytes * row)
        i -= _AHEAD
        if i >= 0:
            slot = rows_K[i]
            row = row_from(slot, ids_K[i], index_S, keys_R) if slot >= 0 else row_from(~slot, ids_K[i], old_S, keys_R)
            rows_K[i] = row
            if out and row >= 0:
                copy_bytes(weights + row_bytes * row, out + row_bytes * (first + i), row_bytes)


@inline
def _choices(job, piece):  # type: ignore[no-untyped-def]
    step = load(job + _STEP)
    return range(piece * step, min((piece + 1) * step, load(job + _CHOICES)))


_add_ids = inline(add_ids)


def add(job, piece):  # type: ignore[no-untyped-def]
    """Rows for the ids of some tables that have none, and all weights of these tables if they are wanted."""
    ends_N = int64s(load(job + _ENDS), load(job + _COUNT))
    counts_C = int64s(load(job + _ADDED_COUNTS), load(job + _CHOICES))
    for choice in _choices(job, piece):
        n = int64s(load(job + _CHOSEN), load(job + _CHOICES))[choice]
        begin = 0 if n == 0 else ends_N[n - 1]
        count = ends_N[n] - begin
        ids_K = int64s(load(job + _IDS) + 8 * begin, count)
        rows_K = int64s(load(job + _ROWS) + 8 * begin, count)
        added_K = int64s(load(job + _ADDED) + 8 * begin, count)
        table, growth = load(job + _TABLES) + n * _TABLE_BYTES, load(job + _GROWTHS) + choice * _GROWTH_BYTES
        counts_C[choice] = _add(table, growth, ids_K, rows_K, added_K)
        _begin(growth, added_K[: counts_C[choice]], int64s(load(table + _TABLE_IDS), load(table + _LIMIT)))
        out, row_bytes, weights = load(job + _OUT), load(job + _ROW_BYTES), load(table + _WEIGHTS)
        if out:
            for i in range(count):
                copy_bytes(weights + row_bytes * rows_K[i], out + row_bytes * (begin + i), row_bytes)


@inline
def _add(table, growth, ids_K, rows_K, added_K):  # type: ignore[no-untyped-def]
    index_S, old_S = (
        int32s(load(table + _INDEX), load(table + _SLOTS)),
        int32s(load(table + _OLD), load(table + _OLD_SLOTS)),
    )
    keys_R, state = int64s(load(table + _TABLE_IDS), load(table + _LIMIT)), int64s(load(table + _STATE), _STATES)
    free_F = int64s(load(growth + _FREE), state[FREE])
    return _add_ids(ids_K, rows_K, added_K, index_S, old_S, keys_R, free_F, state, load(table + _SEED))


@inline
def _begin(growth, added_A, keys_R):  # type: ignore[no-untyped-def]
    # New rows, in all columns, as their ids choose of the first ones.
    for place in range(load(growth + _COLUMNS)):
        column = growth + place * _COLUMN_BYTES
        rows, row_bytes = load(column + _COLUMN_ROWS), load(column + _COLUMN_ROW_BYTES)
        first, firsts = load(column + _FIRST), load(column + _FIRSTS)
        for i in range(added_A.size):
            row = added_A[i]
            copy_bytes(first + row_bytes * (abs(keys_R[row]) % firsts), rows + row_bytes * row, row_bytes)


@inline
def _chosen(job, choice):  # type: ignore[no-untyped-def]
    # The address of a table that is updated, and the gradients and rows of its ids.
    n = int64s(load(job + _CHOSEN), load(job + _CHOICES))[choice]
    count = load(job + _COUNT)
    ends_N = int64s(load(job + _ENDS), count)
    begin = 0 if n == 0 else ends_N[n - 1]
    grad_KW = floats(int64s(load(job + _GRADIENTS), count)[n], ends_N[n] - begin, int64s(load(job + _WIDTHS), count)[n])
    return load(job + _TABLES) + n * _TABLE_BYTES, grad_KW, int64s(load(job + _ROWS) + 8 * begin, ends_N[n] - begin)


@inline
def _column(grad_KW, table, column):  # type: ignore[no-untyped-def]
    return floats(load(table + column), load(table + _LIMIT), grad_KW.shape[1])


@inline
def _with_two_slots(grad_KW, table):  # type: ignore[no-untyped-def]
    return _column(grad_KW, table, _WEIGHTS), _column(grad_KW, table, _SLOT), _column(grad_KW, table, _OTHER_SLOT)


@inline
def _number(job, place):  # type: ignore[no-untyped-def]
    return number(job + _NUMBERS + 8 * place)


_sgd, _momentum = inline(sparse_updates.gradient_descent), inline(sparse_updates.momentum)
_adagrad, _adam = inline(sparse_updates.adagrad), inline(sparse_updates.adam)
_ftrl, _row_ftrl = inline(sparse_updates.ftrl), inline(sparse_updates.row_ftrl)


def gradient_descent(job, piece):  # type: ignore[no-untyped-def]
    for choice in _choices(job, piece):
        table, grad_KW, rows_K = _chosen(job, choice)
        _sgd(_column(grad_KW, table, _WEIGHTS), grad_KW, rows_K, _number(job, 0))


def momentum(job, piece):  # type: ignore[no-untyped-def]
    lr, decay, nesterov = _number(job, 0), _number(job, 1), _number(job, 2) != 0
    for choice in _choices(job, piece):
        table, grad_KW, rows_K = _chosen(job, choice)
        var_RW, accum_RW = _column(grad_KW, table, _WEIGHTS), _column(grad_KW, table, _SLOT)
        _momentum(var_RW, accum_RW, grad_KW, rows_K, lr, decay, nesterov)


def adagrad(job, piece):  # type: ignore[no-untyped-def]
    lr, epsilon, update_slots = _number(job, 0), _number(job, 1), _number(job, 2) != 0
    for choice in _choices(job, piece):
        table, grad_KW, rows_K = _chosen(job, choice)
        var_RW, accum_RW = _column(grad_KW, table, _WEIGHTS), _column(grad_KW, table, _SLOT)
        _adagrad(var_RW, accum_RW, grad_KW, rows_K, lr, epsilon, update_slots)


def adam(job, piece):  # type: ignore[no-untyped-def]
    beta1_power, beta2_power, lr = _number(job, 0), _number(job, 1), _number(job, 2)
    beta1, beta2, epsilon, one = _number(job, 3), _number(job, 4), _number(job, 5), _number(job, 6)
    nesterov = _number(job, 7) != 0
    for choice in _choices(job, piece):
        table, grad_KW, rows_K = _chosen(job, choice)
        var_RW, m_RW, v_RW = _with_two_slots(grad_KW, table)
        _adam(
            var_RW, m_RW, v_RW, grad_KW, rows_K, beta1_power, beta2_power, lr, beta1, beta2, epsilon, one, nesterov
        )  # fmt: skip


@inline
def _ftrl_numbers(job):  # type: ignore[no-untyped-def]
    lr, l1, two_l2, shrinkage = _number(job, 0), _number(job, 1), _number(job, 2), _number(job, 3)
    return lr, l1, two_l2, shrinkage, _number(job, 4), _number(job, 5) != 0


def ftrl(job, piece):  # type: ignore[no-untyped-def]
    numbers = _ftrl_numbers(job)
    for choice in _choices(job, piece):
        table, grad_KW, rows_K = _chosen(job, choice)
        var_RW, accum_RW, linear_RW = _with_two_slots(grad_KW, table)
        _ftrl(var_RW, accum_RW, linear_RW, grad_KW, rows_K, *numbers)


def row_ftrl(job, piece):  # type: ignore[no-untyped-def]
    numbers = _ftrl_numbers(job)
    for choice in _choices(job, piece):
        table, grad_KW, rows_K = _chosen(job, choice)
        var_RW, accum_RW, linear_RW = _with_two_slots(grad_KW, table)
        _row_ftrl(var_RW, accum_RW, linear_RW, grad_KW, rows_K, *numbers)


#: The updates of sparse_updates.py that there are, by name.
_UPDATES: dict[str, Callable[..., Any]] = {
    update.__name__: update for update in (gradient_descent, momentum, adagrad, adam, ftrl, row_ftrl)
}


def _nothing(*_: Any) -> int:
    return 0


def finder() -> Callable[[], int]:
    """Gives the address of `find` as a C function of (job, piece); 0 until it is loaded."""
    return compile_loop(find, CALLBACK, np.int64, stand_in=_nothing)


def adder() -> Callable[[], int]:
    """As `finder`, of `add`."""
    return compile_loop(add, CALLBACK, np.int64, stand_in=_nothing)


def updater(name: str) -> Callable[[], int]:
    """Gives the address of that update of float32 rows; 0 until it is loaded, and where there is none of that name."""
    function = _UPDATES.get(name)
    return _nothing if function is None else compile_loop(function, CALLBACK, np.float32, stand_in=_nothing)
