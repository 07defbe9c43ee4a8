"""Steps between two of their updates: a save waits until there is none, and holds that moment."""

from __future__ import annotations

import gc
import threading
from typing import Any

from tenfold_kernels.resources.unfinished_steps import UnfinishedSteps


def test_a_save_waits_for_the_last_update_and_steps_for_the_save() -> None:
    steps = UnfinishedSteps()
    first, second = steps.begin(), steps.begin()
    first.end()
    first.end()
    order: list[str] = []
    entered, leave = threading.Event(), threading.Event()

    def save() -> None:
        with steps.none(30, 0) as moment:
            assert moment
            order.append("cut")
            entered.set()
            assert leave.wait(30)
            order.append("done")

    def step() -> None:
        steps.begin().end()
        order.append("step")

    saving = threading.Thread(target=save)
    saving.start()
    order.append("update")
    second.end()
    assert entered.wait(30)
    stepping = threading.Thread(target=step)
    stepping.start()
    leave.set()
    saving.join(30)
    stepping.join(30)

    assert order == ["update", "cut", "done", "step"]


def test_a_save_does_not_wait_for_long() -> None:
    steps = UnfinishedSteps()
    unfinished = steps.begin()
    with steps.none(0.01, 0.01) as moment:
        assert not moment
    steps.begin().end()
    unfinished.end()
    with steps.none(0, 0) as moment:
        assert moment


def test_where_steps_always_overlap_new_ones_wait_for_the_save() -> None:
    steps = UnfinishedSteps()
    first, order = steps.begin(), list[str]()
    saves, wait_for = threading.Event(), steps._changed.wait_for

    def watched(predicate: Any, seconds: float | None = None) -> bool:
        if seconds == 60:
            saves.set()
        return wait_for(predicate, seconds)

    steps._changed.wait_for = watched  # type: ignore[method-assign]

    def save() -> None:
        with steps.none(0, 60) as moment:
            order.append("cut" if moment else "cut in two")

    def next_step() -> None:
        assert saves.wait(60)
        second = steps.begin()
        order.append("second")
        second.end()

    threads = [threading.Thread(target=save), threading.Thread(target=next_step)]
    for thread in threads:
        thread.start()
    assert saves.wait(60)
    first.end()
    for thread in threads:
        thread.join(60)

    assert order == ["cut", "second"]


def test_a_step_that_fails_just_goes() -> None:
    steps = UnfinishedSteps()
    unfinished = [steps.begin()]
    unfinished.append(unfinished)  # type: ignore[arg-type]
    with steps.none(0, 0) as moment:
        assert not moment
    del unfinished
    gc.collect()
    with steps.none(0, 0) as moment:
        assert moment
