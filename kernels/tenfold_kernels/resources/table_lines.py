"""Where a table of rows by ids lies in memory, as numbers for compiled loops that work on many tables at once.

A line is a vector of int64, by the places of `Table`. Made by embedding_tables.py, read by
cpu/_compiled/many_tables.py.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tenfold_kernels.chunks import address_of

if TYPE_CHECKING:
    from collections.abc import Sequence

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


class Table(enum.IntEnum):
    #: The index of ids, by address and slots; at 0 none of the table's ids is found.
    INDEX = 0
    SLOTS = 1
    #: The index before, while it is being moved; no slots of none.
    OLD = 2
    OLD_SLOTS = 3
    #: The id of each row.
    IDS = 4
    #: Rows that there is memory for in every column.
    LIMIT = 5
    #: The columns, weights first.
    WEIGHTS = 6
    SLOT = 7
    OTHER_SLOT = 8
    #: What the hashes of ids begin with, and the numbers of id_map.py's `State`.
    SEED = 9
    STATE = 10


#: Of a table of which no ids are to be found.
NO_LINE = np.zeros(len(Table), np.int64)


class Growth(enum.IntEnum):
    """What a table needs besides, to give rows to new ids. At 0 columns it cannot be given any in this way."""

    COLUMNS = 0
    #: The rows that are free.
    FREE = 1
    #: Of the first of the columns: where its rows are, bytes of one, the rows that new ones are copies of, how many.
    ROWS = 2
    ROW_BYTES = 3
    FIRST = 4
    FIRSTS = 5


#: int64s of a column in a line of `Growth`, and how many it may have.
COLUMN_WORDS, MOST_GROWING = 4, 4
GROWTH_WORDS = Growth.ROWS + COLUMN_WORDS * MOST_GROWING

#: Columns of a line.
MOST_COLUMNS = Table.OTHER_SLOT - Table.WEIGHTS + 1


def line_of(index_S: Array, old_S: Array, ids_R: Array, columns: Sequence[Array], seed: int, state: Array) -> Array:
    """The line of these arrays, which the caller keeps; of more columns than MOST_COLUMNS, the first ones."""
    line = np.zeros(len(Table), np.int64)
    line[: Table.LIMIT] = address_of(index_S), index_S.size, address_of(old_S), old_S.size, address_of(ids_R)
    line[Table.LIMIT] = min(len(each) for each in (ids_R, *columns))
    line[Table.SEED], line[Table.STATE] = seed, address_of(state)
    for place, column in enumerate(columns[:MOST_COLUMNS]):
        line[Table.WEIGHTS + place] = address_of(column)
    return line


def growth_of(free_F: Array, columns: Sequence[tuple[Array, Array]]) -> Array:
    """The line of a table's growth. `columns`: rows, and the rows that new ones begin as; the caller keeps them all."""
    line = np.zeros(GROWTH_WORDS, np.int64)
    line[: Growth.ROWS] = len(columns), address_of(free_F)
    for number, (rows, first) in enumerate(columns):
        place = Growth.ROWS + COLUMN_WORDS * number
        line[place : place + COLUMN_WORDS] = address_of(rows), rows[:1].nbytes, address_of(first), len(first)
    return line
