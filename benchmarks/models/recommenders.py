"""Recommenders: Wide & Deep, DeepFM and DLRM on 26 columns of ids, DIN on a history of items; Adagrad, rows of 16.

Each builds its graph from a log (click_logs.py) and its tables (tables.py). `plain` is a click-through net of any
number of columns. Follows Cheng et al. 2016, Guo et al. 2017, Naumov et al. 2019 and Zhou et al. 2018. Counterparts for
torch are in in_torch/recommenders.py. Called by recommenders.py of the folder above. Runs under Python 3.7, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from models import Model
from models.click_logs import HISTORY, NUMBERS
from models.parts import dense

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from models import TF
    from models.click_logs import Ads, Shop
    from models.tables import Tables

#: Elements of a row.
WIDTH = 16
#: Adagrad's rate, and what its accumulators begin with: little, as a rare id's gradient is a small share of a mean.
RATE, ACCUMULATED = 0.02, 1e-6
#: Layers: of the click-through nets, of DLRM's two parts, of DIN's attention and its end.
DEEP, BOTTOM, TOP = (256, 128, 64), (64, WIDTH), (256, 128)
ATTENTION, END = (80, 40), (200, 80)


@dataclass(frozen=True)
class Recommender(Model):
    """A program whose `feeds` come from outside: `inputs` are its placeholders, in the order of a batch's arrays."""

    inputs: Sequence[Any] = ()
    #: float32 [B], a logit of each example.
    score: Any = None


def _layers(
    tf: TF, choose: Any, x: Any, name: str, sizes: Sequence[int], activation: Callable[[Any], Any], last: int = 1
) -> Any:
    """Layers with an activation, and one of `last` outputs without (none for 0)."""
    rows = int(x.get_shape()[-1])
    for number, columns in enumerate(sizes):
        x = activation(dense(tf, choose, x, f"{name}{number}", rows, columns))
        rows = columns
    return dense(tf, choose, x, f"{name}_end", rows, last) if last else x


def _trained(tf: TF, inputs: Sequence[Any], logits: Any) -> Recommender:
    """Trains logits [B, 1] on the last input."""
    step = tf.train.get_or_create_global_step()
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=inputs[-1], logits=logits))
    train = tf.train.AdagradOptimizer(RATE, ACCUMULATED).minimize(loss, global_step=step)
    return Recommender(loss, train, (), inputs=inputs, score=tf.reshape(logits, [-1]))


class _Columns:
    """The inputs of a log of ads, and its columns' rows."""

    def __init__(self, tf: TF, log: Ads, rows: Sequence[int], tables: Tables) -> None:
        self._tf, self._tables, self._rows = tf, tables, rows
        self.count = len(log.many)
        self.numbers = tf.placeholder(tf.float32, [log.batch, NUMBERS], name="numbers")
        self.ids = tf.placeholder(tf.int64, [log.batch, self.count], name="ids")
        self.clicked = tf.placeholder(tf.float32, [log.batch, 1], name="clicked")
        self.inputs = (self.numbers, self.ids, self.clicked)
        self._each = tf.unstack(tables.hashed(self.ids, rows), axis=1)

    def rows(self, name: str, width: int, seed: int) -> list[Any]:
        """A table for each column, and what is looked up in it: float32 [B, width] each."""
        found = []
        for number, (ids, rows) in enumerate(zip(self._each, self._rows)):
            table = self._tables.table(f"{name}{number}", rows, width, seed + number)
            found.append(self._tables.looked_up(table, ids))
        return found


def draws() -> Any:
    return np.random.default_rng(30)


def plain(tf: TF, log: Ads, rows: Sequence[int], tables: Tables) -> Recommender:
    """All columns' rows behind one another, through layers."""
    columns = _Columns(tf, log, rows, tables)
    x = tf.concat([columns.numbers, *columns.rows("table", WIDTH, 0)], 1)
    return _trained(tf, columns.inputs, _layers(tf, draws(), x, "deep", DEEP, tf.nn.relu))


def wide_deep(tf: TF, log: Ads, rows: Sequence[int], tables: Tables) -> Recommender:
    """`plain`, and a weight for each id, all of which are added."""
    columns, choose = _Columns(tf, log, rows, tables), draws()
    wide = tf.add_n(columns.rows("wide", 1, 100)) + dense(tf, choose, columns.numbers, "wide_numbers", NUMBERS, 1)
    x = tf.concat([columns.numbers, *columns.rows("table", WIDTH, 0)], 1)
    return _trained(tf, columns.inputs, wide + _layers(tf, choose, x, "deep", DEEP, tf.nn.relu))


def deepfm(tf: TF, log: Ads, rows: Sequence[int], tables: Tables) -> Recommender:
    """`wide_deep`, and the products of all pairs of rows."""
    columns, choose = _Columns(tf, log, rows, tables), draws()
    first = tf.add_n(columns.rows("wide", 1, 100)) + dense(tf, choose, columns.numbers, "wide_numbers", NUMBERS, 1)
    each = columns.rows("table", WIDTH, 0)
    stacked = tf.stack(each, 1)
    pairs = tf.square(tf.reduce_sum(stacked, 1)) - tf.reduce_sum(tf.square(stacked), 1)
    second = 0.5 * tf.reduce_sum(pairs, 1, keepdims=True)
    x = tf.concat([columns.numbers, *each], 1)
    return _trained(tf, columns.inputs, first + second + _layers(tf, choose, x, "deep", DEEP, tf.nn.relu))


def dlrm(tf: TF, log: Ads, rows: Sequence[int], tables: Tables) -> Recommender:
    """Layers below for the numbers, the products of all pairs of rows, layers above."""
    columns, choose = _Columns(tf, log, rows, tables), draws()
    below = _layers(tf, choose, columns.numbers, "bottom", BOTTOM, tf.nn.relu, 0)
    stacked = tf.stack([below, *columns.rows("table", WIDTH, 0)], 1)
    count = columns.count + 1
    products = tf.reshape(tf.matmul(stacked, stacked, transpose_b=True), [log.batch, count * count])
    pairs = tf.boolean_mask(products, lower(count), axis=1)
    x = tf.reshape(tf.concat([below, pairs], 1), [log.batch, WIDTH + count * (count - 1) // 2])
    return _trained(tf, columns.inputs, _layers(tf, choose, x, "top", TOP, tf.nn.relu))


def lower(count: int) -> Any:
    """Which of count × count products are those of different rows, each pair once; a vector."""
    return np.tril(np.ones([count, count], np.bool_), -1).reshape(-1)


def din(tf: TF, log: Shop, rows: Sequence[int], tables: Tables) -> Recommender:
    """Of the items seen before those count by how they go with the one that is offered, which layers decide."""
    choose, batch, size = draws(), log.batch, 2 * WIDTH
    vectors = [tf.placeholder(tf.int64, [batch], name=name) for name in ("users", "items", "categories")]
    seen = [tf.placeholder(tf.int64, [batch, HISTORY], name=f"seen_{name}") for name in ("items", "categories")]
    lengths = tf.placeholder(tf.int64, [batch], name="lengths")
    clicked = tf.placeholder(tf.float32, [batch, 1], name="clicked")
    inputs = [*vectors, *seen, lengths, clicked]
    users, items, categories = (
        tables.table(name, many, WIDTH, seed)
        for seed, (name, many) in enumerate(zip(("user", "item", "category"), rows))
    )
    hashed = [tables.hashed(ids, many) for ids, many in zip((*vectors, *seen), (*rows, *rows[1:]))]
    user = tables.looked_up(users, hashed[0])
    offered = tf.concat([tables.looked_up(items, hashed[1]), tables.looked_up(categories, hashed[2])], 1)
    history = tf.concat([tables.looked_up(items, hashed[3]), tables.looked_up(categories, hashed[4])], 2)
    # [B, T, size]
    again = tf.tile(tf.reshape(offered, [batch, 1, size]), [1, HISTORY, 1])
    pairs = tf.concat([again, history, again - history, again * history], 2)
    flat = tf.reshape(pairs, [batch * HISTORY, 4 * size])
    weights = tf.reshape(_layers(tf, choose, flat, "attention", ATTENTION, tf.nn.sigmoid), [batch, HISTORY])
    there = tf.sequence_mask(lengths, HISTORY)
    weights = tf.where(there, weights / size**0.5, tf.fill([batch, HISTORY], -1e9))
    interest = tf.matmul(tf.reshape(tf.nn.softmax(weights), [batch, 1, HISTORY]), history)
    x = tf.concat([user, offered, tf.reshape(interest, [batch, size])], 1)
    return _trained(tf, inputs, _layers(tf, choose, x, "end", END, tf.nn.sigmoid))
