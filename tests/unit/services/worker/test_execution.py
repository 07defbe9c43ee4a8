"""What a program is fed, how values change owners, and what may not leave its task."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from support.parts import PartBuilder
from support.programs import compiled, sums
from tenfold_core import dtypes, errors
from tenfold_core.rendezvous_key import make_key
from tenfold_link.memory import private_mappings
from tenfold_services.worker.execution import cancelled, check_counts, check_leaves, extent, feed_value, kept

HERE, THERE = "/job:worker/replica:0/task:0", "/job:ps/replica:0/task:0"


# -- feeds -------------------------------------------------------------------------------------------------------------


def a_feed(dtype: Any = dtypes.float32) -> Any:
    part = PartBuilder()
    part.feed("x", dtype)
    part.fetch("x", dtype)
    (feed,) = compiled(part).compiled.transfers.feeds
    return feed


def test_an_array_of_the_right_type_is_lent_and_not_copied() -> None:
    feed, value = a_feed(), np.ones(2, np.float32)

    found = feed_value(feed, {feed.key: value, "other": 1})

    assert np.shares_memory(found, value)
    assert not found.flags.writeable
    assert value.flags.writeable


@pytest.mark.parametrize("value", [np.float32(3), [1.0, 2.0]])
def test_what_is_no_array_becomes_one(value: Any) -> None:
    feed = a_feed() if isinstance(value, np.float32) else a_feed(dtypes.float64)

    found = feed_value(feed, {feed.key: value})

    assert type(found) is np.ndarray
    assert found.tolist() == (value if isinstance(value, list) else 3.0)
    assert not found.flags.writeable


def test_a_feed_that_is_missing_or_of_another_type_names_the_feed_and_its_node() -> None:
    feed = a_feed()
    with pytest.raises(errors.InvalidArgumentError, match=r"(?s)You must feed a value for 'x'.*\{\{node x\}\}"):
        feed_value(feed, {"other": 1})
    for wrong in (np.ones(2), [1, 2], np.int64(1)):
        with pytest.raises(
            errors.InvalidArgumentError, match=r"(?s)fed for 'x' has dtype \w+64; float is expected.*\{\{node x\}\}"
        ):
            feed_value(feed, {feed.key: wrong})


@pytest.mark.parametrize(("feeds", "fetches", "fits"), [(2, 2, True), (0, 0, True), (3, 0, False), (0, 3, False)])
def test_a_run_brings_and_asks_for_no_more_than_there_is(feeds: int, fetches: int, fits: bool) -> None:
    program = sums().program.compiled
    if fits:
        check_counts(program, feeds, fetches)
        return
    text = f"A run with {feeds} feeds and {fetches} fetches of a graph that takes 2 and gives 2"
    with pytest.raises(errors.InvalidArgumentError, match=text):
        check_counts(program, feeds, fetches)


# -- owners ------------------------------------------------------------------------------------------------------------


def test_a_value_of_ones_own_is_kept_and_a_lent_one_is_copied() -> None:
    own = np.ones(3)
    lent = np.ones(3)
    lent.flags.writeable = False

    assert kept(own) is own
    copy = kept(lent)
    assert copy.tolist() == lent.tolist()
    assert copy.flags.writeable
    assert not np.shares_memory(copy, lent)


def test_what_stays_as_it_is_for_good_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    lent, stays = np.ones(3), np.zeros(3)
    lent.flags.writeable = False
    monkeypatch.setattr(private_mappings, "snapshot", lambda value: stays if value is lent else None)

    assert kept(lent) is stays


def test_a_number_of_numpys_becomes_an_array_and_anything_else_stays() -> None:
    number, handle = kept(np.float32(2)), object()

    assert type(number) is np.ndarray
    assert (number.shape, number.dtype) == ((), np.float32)
    assert kept(handle) is handle


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (np.zeros((2, 3)), (2, 2)),
        (np.zeros((4, 0, 1, 7)), (3, 0, 1, 3)),
        (np.array([b"abc", b"d"], object), ((2,), 3)),
        (np.array([b"abcd", b"defg"], object), ((2,), 4)),
        (np.array([b"ab", "text", None], object), ((2,), 2)),
        (np.array([], object), ((0,), 0)),
        (SimpleNamespace(shape=(4,)), (4,)),
        (object(), ()),
    ],
)
def test_how_large_a_value_is(value: Any, found: Any) -> None:
    assert extent(value) == found


def key(sender: str, receiver: str, name: str) -> str:
    return make_key(f"{sender}/device:CPU:0", 1, f"{receiver}/device:CPU:1", name)


def test_a_variant_that_means_something_here_only_does_not_leave_its_task() -> None:
    class Iterator:
        pass

    value = np.array([Iterator()], object)

    check_leaves(value, key(HERE, HERE, "edge_4_made"))
    check_leaves(np.array([b"text"], object), key(HERE, THERE, "edge_4_made"))
    with pytest.raises(errors.UnimplementedError) as raised:
        check_leaves(value, key(HERE, THERE, "edge_4_made/edge_5_x"))
    assert raised.value.message.startswith(
        f"A variant of type Iterator cannot leave its task: 'made/edge_5_x' is on {HERE}, and a node that takes its "
        f"output on {THERE}. Put both on one task."
    )
    assert "{{node made/edge_5_x}}" in raised.value.message


def test_a_program_that_was_stopped_says_so() -> None:
    assert isinstance(cancelled(), errors.CancelledError)
    assert cancelled().message == "Step was cancelled."
