"""How the benchmark of other people's programs tells their steps, and what one costs. No process starts."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
FOLDERS = (ROOT / "benchmarks", ROOT / "tests" / "interop")


@pytest.fixture(scope="module")
def load() -> Iterator[Any]:
    """Imports a script of benchmarks/, which is no package, for as long as these tests run."""
    before = set(sys.modules)
    sys.path[:0] = map(str, FOLDERS)
    yield importlib.import_module
    for folder in FOLDERS:
        sys.path.remove(str(folder))
    for name in set(sys.modules) - before:
        if {*FOLDERS} & {*Path(getattr(sys.modules[name], "__file__", None) or "/").parents}:
            del sys.modules[name]


def record(number: int, begin: float, took: float, cpu: float, thread: float, cpu_took: float) -> list[float]:
    return [number, begin, begin + took, cpu, cpu + cpu_took, thread, thread + cpu_took, 0]


def test_a_step_costs_what_the_process_works_without_the_program_itself(load: Any) -> None:
    notes = load("other_programs_notes")
    rows = [
        record(0, 1.0, 1.0, 10.0, 1.0, 0.5),
        # half a second of the program's own and a quarter of other threads since, then an evaluation of a second
        record(1, 3.0, 1.0, 11.25, 2.0, 1.0),
        record(0, 4.0, 2.0, 12.25, 3.0, 0.5),
        record(0, 9.0, 2.0, 20.0, 4.0, 0.5),
    ]

    found = notes.cost(np.array(rows), 0, 0.5, 6.5)

    assert found == pytest.approx((0.25 + 0.5, 2.0, 1))
    assert notes.cost(np.array(rows), 0, 0.5, 5.5) is None


def test_the_training_is_what_takes_longest_with_an_operation(load: Any, tmp_path: Path) -> None:
    role, notes = load("other_programs_role"), load("other_programs_notes")
    operation = SimpleNamespace(name="train", node_def=None, control_inputs=())
    loss, accuracy = SimpleNamespace(name="loss:0"), SimpleNamespace(name="accuracy:0")

    class Session:
        def run(self, fetches: Any, feed_dict: Any = None) -> Any:
            return self.inner(fetches) if feed_dict else fetches

        def inner(self, fetches: Any) -> Any:
            return Session.run(self, fetches)

    writer = role.Notes(str(tmp_path / "notes"))
    tensorflow = SimpleNamespace(Session=Session, train=SimpleNamespace(MonitoredSession=type("M", (Session,), {})))
    role.watch(tensorflow, writer.take)
    session = Session()
    session.run(operation)
    for _ in range(3):
        assert session.run({"a": [operation], "b": loss}, {"x": 1}) == {"a": [operation], "b": loss}
    for _ in range(5):
        session.run("accuracy:0")
        session.run(accuracy)
    records = notes.Reader(tmp_path / "notes").records()

    assert records[:, notes.NUMBER].tolist() == [0, 1, 1, 1, *[2] * 10]
    assert notes.Reader(tmp_path / "notes").training(records) == 1
    assert (records[:, notes.END] >= records[:, notes.BEGIN]).all()


def test_every_timed_program_is_told_apart_and_its_variant_is_one_of_the_table(load: Any) -> None:
    timed, table = load("other_programs_table").TIMED, load("others.table").PROGRAMS

    assert len({(each.name, each.how) for each in timed}) == len(timed)
    for each in timed:
        _, _, variant = each.name.removesuffix(")").partition(" (")
        assert not variant or any(row.variant == variant for row in table), each.name
