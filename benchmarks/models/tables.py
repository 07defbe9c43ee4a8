"""The tables of a recommender in a graph: static ones, into which ids are hashed, or embedding variables by raw ids.

Both begin with the same weights: an id's row is that of the id modulo FIRST among rows from a seed. Used by
models/recommenders.py and recommenders_tables.py. Runs under Python 3.7, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models import TF

#: Different rows that ids begin with. Rows of static tables are a multiple of it, so that both kinds agree.
FIRST = 500
#: The deviation of first weights.
SCALE = 0.05
#: Tables of at least so many rows are cut into parts, where there are several parameter servers.
_LARGE = 100_000


def first_rows(seed: int, width: int) -> Any:
    """float32 [FIRST, width]"""
    return (np.random.default_rng(seed).standard_normal([FIRST, width]) * SCALE).astype(np.float32)


@dataclass(frozen=True)
class Tables:
    """Makes the tables of one program."""

    tf: TF
    #: Whether they are embedding variables.
    by_id: bool
    #: Parameter servers.
    servers: int = 1

    def table(self, name: str, rows: int, width: int, seed: int) -> Any:
        """A trainable table of float32 [rows, width]; one by ids has rows as they come."""
        tf, first = self.tf, first_rows(seed, width)
        divide = None
        if self.servers > 1 and rows >= _LARGE:
            divide = tf.fixed_size_partitioner(self.servers)
        if self.by_id:
            option = tf.EmbeddingVariableOption(init_option=tf.InitializerOption(default_value_dim=FIRST))
            return tf.get_embedding_variable(
                name, embedding_dim=width, initializer=first, partitioner=divide, ev_option=option
            )

        def start(shape: Sequence[int], dtype: Any = None, partition_info: Any = None) -> Any:
            times = -(-int(shape[0]) // FIRST)
            return tf.tile(tf.constant(first), [times, 1])[: int(shape[0])]

        return tf.get_variable(name, [rows, width], tf.float32, start, partitioner=divide)

    def hashed(self, ids: Any, rows: Any) -> Any:
        """What a table of so many rows is asked for: the ids, or, of a static one, where they fall in it."""
        return ids if self.by_id else self.tf.floormod(ids, self.tf.constant(np.asarray(rows, np.int64)))

    def looked_up(self, table: Any, ids: Any) -> Any:
        """float32 [*ids.shape, width]"""
        strategy = "mod" if self.by_id else "div"
        return self.tf.nn.embedding_lookup(table, ids, partition_strategy=strategy)
