"""Click logs as recommenders train on, made from a seed: ids by Zipf's law, clicks drawn from a hidden model.

`Ads` has the shape of Criteo's logs, `Shop` that of Taobao's. What was clicked depends on the ids themselves, each with
hidden weights, so that the area under the curve means something. Ids are raw: 62 bits. With `apart` those of a column
fall on different rows of a static table of `rows` rows, so that tables of both kinds train the same; otherwise they
fall where a hash would put them. Used by recommenders.py. Runs under Python 3.7, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    Array = np.ndarray[Any, np.dtype[Any]]

#: Rows of a static table are a multiple of it, and at least so many: a short column's ids hardly share any.
STEP = 1000
#: The exponent of Zipf's law.
_SKEW = 1.05
#: Different ids of Criteo's 26 columns; of those with more than 100,000 a twentieth.
CRITEO = (
    *(1460, 583, 506_561, 110_130, 305, 24, 12_517, 633, 3, 93_145, 5_683, 417_579, 3_194, 27, 14_992, 273_065),
    *(10, 5_652, 2_173, 4, 352_327, 18, 15, 14_309, 105, 7_128),
)
#: Numbers beside the ids, and hidden factors of an id.
NUMBERS, _FACTORS = 13, 4
#: The shop: users, categories, items of a category, and the longest history.
USERS, CATEGORIES, EACH, HISTORY = 100_000, 5_000, 100, 50
#: Categories that a user likes.
_LIKED = 3
_NORMAL = np.random.default_rng(20).standard_normal(1 << 16).astype(np.float32)


def mixed(numbers: Array, seed: int = 0) -> Array:
    """uint64 that look drawn at random, a different one for each number: SplitMix64."""
    x = numbers.astype(np.uint64) + np.uint64((seed + 1) * 0x9E3779B97F4A7C15 % (1 << 64))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(x ^ (x >> np.uint64(31)))


def zipf(drawn: Array, many: Array | int) -> Array:
    """Ranks below `many` by Zipf's law, int64, from numbers in 0 … 1."""
    power = 1.0 - _SKEW
    ranks = (1.0 + drawn * ((np.asarray(many) + 1.0) ** power - 1.0)) ** (1.0 / power) - 1.0
    return np.asarray(np.minimum(ranks.astype(np.int64), np.asarray(many) - 1))


def raw_ids(ranks: Array, column: int, rows: int, apart: bool) -> Array:
    """The ids that stand for these ranks of a column, int64, none below 1."""
    bits = mixed(ranks, 7 * column + 1)
    if not apart:
        return np.asarray((bits >> np.uint64(2)).astype(np.int64) + 1)
    # never the 0 that pads a history: one more round of rows
    return np.asarray(ranks + rows * (1 + (bits % np.uint64((1 << 61) // rows)).astype(np.int64)))


def _hidden(ranks: Array, column: int, seed: int) -> Array:
    """A number for each rank of a column, as if drawn from the normal distribution."""
    return np.asarray(_NORMAL[(mixed(ranks, 1000 * seed + column) >> np.uint64(48)).astype(np.int64)])


def _clicked(choose: Any, logits: Array) -> Array:
    """float32 [B, 1], 0 or 1."""
    return np.asarray((choose.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(np.float32)[:, None])


def rows_for(many: int) -> int:
    """Rows of a static table in which `many` ids have a row each."""
    return -(-many // STEP) * STEP


@dataclass(frozen=True)
class Ads:
    """A batch is (numbers float32 [B, 13], ids int64 [B, columns], clicked float32 [B, 1])."""

    batch: int
    many: Sequence[int] = CRITEO
    apart: bool = True

    @property
    def rows(self) -> tuple[int, ...]:
        """Of each column's static table."""
        return tuple(rows_for(many) for many in self.many)

    def batches(self, count: int, seed: int) -> list[tuple[Array, ...]]:
        choose = np.random.default_rng(seed)
        found = []
        for _ in range(count):
            ranks = zipf(choose.random([self.batch, len(self.many)]), np.array(self.many))
            numbers = np.log1p(-4 * np.log(choose.random([self.batch, NUMBERS]))).astype(np.float32)
            columns = range(len(self.many))
            weights = np.stack([_hidden(ranks[:, c], c, 1) for c in columns], 1)
            factors = np.stack(
                [np.stack([_hidden(ranks[:, c], c, 2 + f) for c in columns], 1) for f in range(_FACTORS)], 2
            )
            # the products of all pairs
            pairs = (factors.sum(1) ** 2 - (factors**2).sum(1)).sum(1) / (len(columns) * _FACTORS**0.5)
            logits = (
                1.5 * weights.sum(1) / len(columns) ** 0.5 + 0.7 * pairs + 0.3 * (numbers[:, 0] - numbers[:, 1]) - 1.0
            )
            rows = self.rows
            ids = np.stack([raw_ids(ranks[:, c], c, rows[c], self.apart) for c in columns], 1)
            found.append((numbers, ids, _clicked(choose, logits)))
        return found


@dataclass(frozen=True)
class Shop:
    """A batch is (users, items, categories int64 [B], items and categories seen before int64 [B, HISTORY], how many of
    them there are int64 [B], clicked float32 [B, 1]). A history is filled up with 0.
    """

    batch: int
    apart: bool = True

    @property
    def rows(self) -> tuple[int, int, int]:
        """Of the static tables of users, items and categories."""
        return rows_for(USERS), rows_for(CATEGORIES * EACH), rows_for(CATEGORIES)

    def batches(self, count: int, seed: int) -> list[tuple[Array, ...]]:
        choose = np.random.default_rng(seed)
        return [self._drawn(choose) for _ in range(count)]

    def _drawn(self, choose: Any) -> tuple[Array, ...]:
        batch = self.batch
        users = zipf(choose.random(batch), USERS)
        lengths = choose.integers(5, HISTORY + 1, batch)
        seen = np.stack([self._category(choose, users, 0.7) for _ in range(HISTORY)], 1)
        category = self._category(choose, users, 0.5)
        seen_items = seen * EACH + zipf(choose.random([batch, HISTORY]), EACH)
        item = category * EACH + zipf(choose.random(batch), EACH)
        is_there = np.arange(HISTORY) < lengths[:, None]
        often = ((seen == category[:, None]) & is_there).sum(1) / lengths
        logits = 4 * np.sqrt(often) + 0.7 * _hidden(item, 0, 8) + 0.5 * _hidden(category, 0, 9)
        logits += 0.3 * _hidden(users, 0, 10) - 1.5
        rows = self.rows
        return (
            raw_ids(users, 0, rows[0], self.apart),
            raw_ids(item, 1, rows[1], self.apart),
            raw_ids(category, 2, rows[2], self.apart),
            np.where(is_there, raw_ids(seen_items, 1, rows[1], self.apart), 0),
            np.where(is_there, raw_ids(seen, 2, rows[2], self.apart), 0),
            lengths,
            _clicked(choose, logits),
        )

    @staticmethod
    def _category(choose: Any, users: Array, share: float) -> Array:
        """One of those that each user likes, or with a probability of 1 - `share` any."""
        which = choose.integers(0, _LIKED, users.size)
        liked = mixed(users * _LIKED + which, 11).astype(np.float64) / 2.0**64
        drawn = choose.random(users.size)
        return zipf(np.where(choose.random(users.size) < share, liked, drawn), CATEGORIES)


def area_under_curve(scores: Array, clicked: Array) -> float:
    """The share of pairs of a click and none that the scores have in order; ties count half. Vectors."""
    order = np.argsort(scores, kind="mergesort")
    _, first, counts = np.unique(scores[order], return_index=True, return_counts=True)
    ranks = np.empty(scores.size, np.float64)
    ranks[order] = np.repeat(first + (counts + 1) / 2, counts)
    hits = clicked > 0.5
    good, bad = int(hits.sum()), int((~hits).sum())
    return float((ranks[hits].sum() - good * (good + 1) / 2) / (good * bad))
