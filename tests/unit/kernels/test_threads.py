"""How many threads kernels may use: the smallest number that an owner asked for, and what the BLAS is told of it."""

from __future__ import annotations

import importlib.util
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from tenfold_kernels import threads


class FakeBlas:
    """A BLAS of 8 threads, which remembers what it was told."""

    def __init__(self, count: int = 8, own: bool = True) -> None:
        self.count, self.own = count, own
        self.told: list[int] = []

    def threads(self) -> int:
        return self.count if self.own else 0

    def set_threads(self, count: int) -> bool:
        if self.own:
            self.told.append(count)
        return self.own


@pytest.fixture
def blas(monkeypatch: pytest.MonkeyPatch) -> FakeBlas:
    """Before anybody has asked."""
    fake = FakeBlas()
    monkeypatch.setattr(threads, "blas", fake)
    monkeypatch.setattr(threads, "_limits", {})
    for name, value in (("_smallest", 0), ("_unlimited", None), ("_current", None), ("_on_callers", False)):
        monkeypatch.setattr(threads, name, value)
    return fake


def test_the_smallest_number_counts_until_its_owner_lets_go(blas: FakeBlas) -> None:
    assert (threads.loaded_with(), threads.intra_op_limit()) == (0, 0)
    steps = [("a", 4, 4), ("b", 6, 4), ("c", 1, 1), ("c", 3, 3), ("a", 0, 3), ("c", 0, 6), ("b", 0, 0)]
    for owner, count, smallest in steps:
        threads.limit_blas_threads(owner, count)
        assert threads.intra_op_limit() == smallest
    assert blas.told == [4, 1, 3, 6, 8]
    assert threads.loaded_with() == 8


def test_more_than_there_are_changes_nothing(blas: FakeBlas) -> None:
    threads.limit_blas_threads("a", 9)
    assert (blas.told, threads.intra_op_limit()) == ([], 9)


def test_who_never_asked_has_nothing_to_take_back(blas: FakeBlas) -> None:
    threads.limit_blas_threads("a", 0)
    assert (blas.told, threads.loaded_with()) == ([], 0), "it was not even looked at"


def test_a_blas_may_be_kept_on_its_callers(blas: FakeBlas) -> None:
    threads.keep_blas_on_callers(False)
    assert threads.loaded_with() == 0, "as it was"
    threads.limit_blas_threads("a", 4)
    threads.keep_blas_on_callers()
    threads.keep_blas_on_callers()
    assert (blas.told, threads.intra_op_limit()) == ([4, 1], 4)
    threads.limit_blas_threads("a", 0)
    assert blas.told == [4, 1]
    threads.keep_blas_on_callers(False)
    assert blas.told == [4, 1, 8]


def test_a_blas_that_does_not_say_is_left_alone(blas: FakeBlas, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "blas_threads", lambda: 0)
    threads.limit_blas_threads("a", 4)
    assert (blas.told, threads.loaded_with(), threads.intra_op_limit()) == ([], 0, 4)


def test_other_libraries_are_asked_and_set_by_threadpoolctl(blas: FakeBlas, monkeypatch: pytest.MonkeyPatch) -> None:
    set_by: list[Any] = []
    infos = [
        {"user_api": "openmp", "num_threads": 32},
        {"user_api": "blas", "num_threads": "2"},
        {"user_api": "blas", "num_threads": 6},
    ]

    class Controller:
        def info(self) -> list[dict[str, Any]]:
            return infos

        def limit(self, **what: Any) -> None:
            set_by.append((what, threading.current_thread()))

    monkeypatch.setitem(sys.modules, "threadpoolctl", SimpleNamespace(ThreadpoolController=Controller))
    assert threads.blas_threads() == 8
    blas.own = False
    assert threads.blas_threads() == 6
    threads.limit_blas_threads("a", 3)
    ((what, by),) = set_by
    assert what == {"limits": 3, "user_api": "blas"}
    assert by.name == "tenfold-blas-threads"
    assert not by.is_alive(), "it was waited for"
    infos.clear()
    assert threads.blas_threads() == 0


def test_at_first_nobody_has_asked() -> None:
    assert threads.__spec__ is not None
    anew = importlib.util.module_from_spec(threads.__spec__)
    assert threads.__spec__.loader is not None
    threads.__spec__.loader.exec_module(anew)
    assert (anew.intra_op_limit(), anew.loaded_with(), anew._on_callers) == (0, 0, False)
