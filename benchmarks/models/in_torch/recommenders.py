"""models/recommenders.py in torch: the same weights, batches and arithmetic, so that both have one curve of losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from models.click_logs import HISTORY, NUMBERS
from models.in_torch import Trained
from models.in_torch.parts import Parameters
from models.in_torch.tables import Tables
from models.recommenders import ACCUMULATED, ATTENTION, BOTTOM, DEEP, END, RATE, TOP, WIDTH, draws, lower

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from models.click_logs import Ads, Shop
    from models.in_torch import Tensor, Torch


@dataclass(frozen=True)
class Recommender(Trained):
    """A program whose `batches` come from outside."""

    #: The logits [B] of a batch's arrays, as tensors.
    score: Callable[..., Tensor] | None = None


class _Net:
    """The parameters of a net: layers in the order of its counterpart, then the tables."""

    def __init__(self, torch: Torch, fused: bool) -> None:
        self._torch = torch
        self._made = Parameters(torch, draws())
        self.tables = Tables(torch, self._made, fused, RATE)

    def dense(self, rows: int, columns: int) -> Callable[[Tensor], Tensor]:
        w, b = self._made.dense(rows, columns)
        return lambda x: self._torch.nn.functional.linear(x, w, b)

    def layers(
        self, rows: int, sizes: Sequence[int], activation: Callable[[Tensor], Tensor], last: int = 1
    ) -> Callable[[Tensor], Tensor]:
        each = []
        for columns in sizes:
            each.append(self.dense(rows, columns))
            rows = columns
        end = self.dense(rows, last) if last else None

        def through(x: Tensor) -> Tensor:
            for layer in each:
                x = activation(layer(x))
            return x if end is None else end(x)

        return through

    def trained(self, logits: Callable[..., Tensor]) -> Recommender:
        """Trains the logits [B, 1] that all arrays of a batch but the last give."""
        functional = self._torch.nn.functional

        def loss(*batch: Tensor) -> Tensor:
            return functional.binary_cross_entropy_with_logits(logits(*batch[:-1]), batch[-1])

        def score(*batch: Tensor) -> Tensor:
            return logits(*batch[:-1]).reshape(-1)

        optimizer = self._torch.optim.Adagrad(self._made.all, RATE, initial_accumulator_value=ACCUMULATED)
        return Recommender(loss, optimizer, (), score=score)


def plain(torch: Torch, log: Ads, rows: Sequence[int], fused: bool) -> Recommender:
    net = _Net(torch, fused)
    deep = net.layers(NUMBERS + len(rows) * WIDTH, DEEP, torch.relu)
    table = net.tables.group(rows, WIDTH, 0)
    return net.trained(lambda numbers, ids: deep(torch.cat([numbers, *table(ids)], 1)))


def wide_deep(torch: Torch, log: Ads, rows: Sequence[int], fused: bool) -> Recommender:
    net = _Net(torch, fused)
    of_numbers = net.dense(NUMBERS, 1)
    deep = net.layers(NUMBERS + len(rows) * WIDTH, DEEP, torch.relu)
    wide, table = net.tables.group(rows, 1, 100), net.tables.group(rows, WIDTH, 0)

    def logits(numbers: Tensor, ids: Tensor) -> Tensor:
        return sum(wide(ids)) + of_numbers(numbers) + deep(torch.cat([numbers, *table(ids)], 1))

    return net.trained(logits)


def deepfm(torch: Torch, log: Ads, rows: Sequence[int], fused: bool) -> Recommender:
    net = _Net(torch, fused)
    of_numbers = net.dense(NUMBERS, 1)
    deep = net.layers(NUMBERS + len(rows) * WIDTH, DEEP, torch.relu)
    wide, table = net.tables.group(rows, 1, 100), net.tables.group(rows, WIDTH, 0)

    def logits(numbers: Tensor, ids: Tensor) -> Tensor:
        each = table(ids)
        stacked = torch.stack(each, 1)
        pairs = stacked.sum(1).square() - stacked.square().sum(1)
        second = 0.5 * pairs.sum(1, keepdim=True)
        return sum(wide(ids)) + of_numbers(numbers) + second + deep(torch.cat([numbers, *each], 1))

    return net.trained(logits)


def dlrm(torch: Torch, log: Ads, rows: Sequence[int], fused: bool) -> Recommender:
    net, count = _Net(torch, fused), len(rows) + 1
    bottom = net.layers(NUMBERS, BOTTOM, torch.relu, 0)
    top = net.layers(WIDTH + count * (count - 1) // 2, TOP, torch.relu)
    table = net.tables.group(rows, WIDTH, 0)
    wanted = torch.from_numpy(lower(count).nonzero()[0])

    def logits(numbers: Tensor, ids: Tensor) -> Tensor:
        below = bottom(numbers)
        stacked = torch.stack([below, *table(ids)], 1)
        products = torch.bmm(stacked, stacked.transpose(1, 2)).reshape(len(numbers), count * count)
        return top(torch.cat([below, products[:, wanted]], 1))

    return net.trained(logits)


def din(torch: Torch, log: Shop, rows: Sequence[int], fused: bool) -> Recommender:
    net, size = _Net(torch, fused), 2 * WIDTH
    attention = net.layers(4 * size, ATTENTION, torch.sigmoid)
    end = net.layers(WIDTH + 2 * size, END, torch.sigmoid)
    users, items, categories = (net.tables.one(many, WIDTH, seed) for seed, many in enumerate(rows))
    places = torch.arange(HISTORY)

    def logits(*batch: Any) -> Tensor:
        user, item, category, seen_items, seen_categories, lengths = batch
        # one look-up a table: a fused one is updated in its backward pass
        item_rows = items(torch.cat([item[:, None], seen_items], 1))
        category_rows = categories(torch.cat([category[:, None], seen_categories], 1))
        both = torch.cat([item_rows, category_rows], 2)
        offered, history = both[:, 0], both[:, 1:]
        again = offered[:, None].expand(-1, HISTORY, -1)
        pairs = torch.cat([again, history, again - history, again * history], 2)
        weights = attention(pairs.reshape(-1, 4 * size)).reshape(-1, HISTORY) / size**0.5
        weights = torch.where(places < lengths[:, None], weights, torch.tensor(-1e9))
        interest = torch.bmm(torch.softmax(weights, 1)[:, None], history)[:, 0]
        return end(torch.cat([users(user), offered, interest], 1))

    return net.trained(logits)
