"""The recommenders' benchmark: its logs, areas under curves, cases and verdicts. No process starts."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

FOLDER = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture(scope="module")
def scripts() -> Iterator[Any]:
    """Imports a script of benchmarks/, which is no package, for as long as these tests run."""
    before = set(sys.modules)
    sys.path.insert(0, str(FOLDER))
    yield importlib.import_module
    sys.path.remove(str(FOLDER))
    for name in set(sys.modules) - before:
        if FOLDER in Path(getattr(sys.modules[name], "__file__", None) or "/").parents:
            del sys.modules[name]


@pytest.fixture(scope="module")
def logs(scripts: Any) -> ModuleType:
    module: ModuleType = scripts("models.click_logs")
    return module


def test_every_mode_has_cases_of_different_names_on_known_sides(scripts: Any) -> None:
    recommenders = scripts("recommenders")
    subject = recommenders.SUBJECT
    names = [case.name for case in subject.cases]
    assert len(set(names)) == len(names)
    assert {recommenders.mode_of(case.name) for case in recommenders.TIMED.cases} == {*recommenders.MODES[:4]}, (
        "a mode without cases would measure nothing"
    )
    known = {side.name for side in subject.sides}
    for case in subject.cases:
        assert {*case.demands, *case.peers, *case.sides} <= known
        assert not case.flat_with or case.flat_with in names[: names.index(case.name)]
    assert set(recommenders.QUICK_CLUSTER) <= set(names)
    assert set(recommenders.QUICK_SIDES) <= known


def test_ids_of_a_column_that_are_apart_never_share_a_row(logs: ModuleType) -> None:
    rows = logs.rows_for(12_345)
    ranks = np.arange(12_345)

    apart = logs.raw_ids(ranks, 3, rows, True)
    together = logs.raw_ids(ranks, 3, rows, False)

    assert rows == 13_000
    np.testing.assert_array_equal(apart % rows, ranks)
    for ids in (apart, together):
        assert ids.min() > 0
        assert len(np.unique(ids)) == len(ranks)
    # as many as a hash leaves: 13,000 · (1 − e^−0.95)
    assert 0.95 < len(np.unique(together % rows)) / (rows * (1 - np.exp(-12_345 / rows))) < 1.05


def test_a_log_is_settled_by_its_seed_and_follows_zipfs_law(logs: ModuleType) -> None:
    log = logs.Ads(256, (1_000, 50_000))
    first, again, other = log.batches(2, 1), log.batches(2, 1), log.batches(2, 2)
    for a, b in zip(first[1], again[1], strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first[0][1], other[0][1])

    ranks = logs.zipf(np.random.default_rng(3).random(100_000), 1_000)
    counts = np.bincount(ranks, minlength=1_000)
    assert ranks.max() == 999
    # the tenth rank is asked for about a tenth as often as the first one, less for the exponent and the rounding
    assert 5 < counts[0] / counts[9] < 15


def test_a_history_is_filled_up_with_zeros(logs: ModuleType) -> None:
    users, items, _, seen_items, seen_categories, lengths, clicked = logs.Shop(64).batches(1, 5)[0]

    there = np.arange(logs.HISTORY) < lengths[:, None]
    np.testing.assert_array_equal(seen_items > 0, there)
    np.testing.assert_array_equal(seen_categories > 0, there)
    assert users.min() > 0
    assert items.min() > 0
    assert set(np.unique(clicked)) == {0.0, 1.0}


@pytest.mark.parametrize(
    ("scores", "area"),
    [([1, 2, 3, 4], 1.0), ([4, 3, 2, 1], 0.0), ([1, 1, 1, 1], 0.5), ([1, 3, 2, 4], 0.75), ([1, 2, 2, 3], 0.875)],
)
def test_the_area_under_a_curve_is_the_share_of_pairs_in_order(
    logs: ModuleType, scores: list[float], area: float
) -> None:
    assert logs.area_under_curve(np.array(scores, np.float64), np.array([0.0, 0.0, 1.0, 1.0])) == area


def test_ids_of_each_table_are_counted_once(scripts: Any) -> None:
    held = scripts("recommenders_quality").held
    columns = [(None, np.array([[1, 5], [2, 5]])), (None, np.array([[1, 6], [3, 5]]))]
    assert held(columns, (), True) == [3, 2]
    shop = [(np.array([1]), np.array([7]), np.array([[7, 8, 0]]))]
    assert held(shop, ((0,), (1, 2)), False) == [1, 3]


def test_keys_to_fill_a_table_with_are_all_different(scripts: Any) -> None:
    memory = scripts("recommenders_memory")
    keys = np.concatenate([memory.keys_of(first, 50_000, True) for first in (0, 50_000)])
    assert len(np.unique(keys)) == 100_000
    assert keys.min() >= 0


@pytest.mark.parametrize("name", ["wide_deep", "deepfm", "dlrm", "din"])
def test_tables_by_id_and_static_ones_train_the_same(scripts: Any, logs: ModuleType, name: str) -> None:
    programs, tables = scripts("recommenders_programs"), scripts("models.tables")
    log = logs.Shop(8) if name == "din" else logs.Ads(16, (40, 3_000, 7))
    curves = []
    for by_id in (True, False):
        with tf.Graph().as_default(), tf.Session() as session:
            model = programs.PROGRAMS[name].build(tf, log, log.rows, tables.Tables(tf, by_id))
            session.run(tf.global_variables_initializer())
            curve = []
            for batch in log.batches(4, 6):
                curve.append(session.run([model.loss, model.train], dict(zip(model.inputs, batch, strict=True)))[0])
            curves.append(curve)
    assert len(set(curves[0])) == 4
    np.testing.assert_allclose(curves[0], curves[1], rtol=1e-4)
