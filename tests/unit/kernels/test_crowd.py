"""Whether the machine is crowded, by what /proc/loadavg says, read anew after a moment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tenfold_kernels.crowd import _HOLDS, Crowd

if TYPE_CHECKING:
    from pathlib import Path


def test_more_who_want_to_run_than_cores_are_a_crowd(tmp_path: Path) -> None:
    load = tmp_path / "loadavg"
    load.write_text("0.10 0.20 0.30 2/99 4711\n")
    crowd = Crowd(str(load), cores=2)
    assert not crowd.is_crowded(1.0)

    load.write_text("0.10 0.20 0.30 3/99 4711\n")
    assert not crowd.is_crowded(1.00001), "read a moment ago"
    assert crowd.is_crowded(2.0)


@pytest.mark.parametrize("text", ["", "what is this", "0.1 0.2 0.3 x/y 5"])
def test_a_system_that_does_not_say_has_no_crowd(text: str, tmp_path: Path) -> None:
    load = tmp_path / "loadavg"
    load.write_text(text)
    crowd = Crowd(str(load), cores=1)
    assert not crowd.is_crowded(1.0)
    assert not crowd.is_crowded(2.0)


def test_a_look_holds_for_a_moment(tmp_path: Path) -> None:
    load = tmp_path / "loadavg"
    load.write_text("0.10 0.20 0.30 3/99 4711\n")
    crowd = Crowd(str(load), cores=2)
    assert crowd.is_crowded(0.0), "the first look is one"
    load.write_text("0.10 0.20 0.30 2/99 4711\n")
    assert crowd.is_crowded(0.99 * _HOLDS)
    assert not crowd.is_crowded(_HOLDS)


def test_what_has_become_unreadable_is_not_looked_at_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = tmp_path / "loadavg"
    load.write_text("0.10 0.20 0.30 9/99 4711\n")
    crowd = Crowd(str(load), cores=2)
    assert crowd.is_crowded(1.0)
    load.write_text("what is this")
    assert not crowd.is_crowded(2.0)
    load.write_text("0.10 0.20 0.30 9/99 4711\n")
    monkeypatch.setattr(os, "pread", lambda *_: b"0.10 0.20 0.30 9/99 4711")
    assert not crowd.is_crowded(3.0)
    assert not Crowd(str(tmp_path / "nothing"), cores=1).is_crowded(1.0)
    monkeypatch.setattr(os, "open", lambda *_: 0)  # where standard input is closed
    assert Crowd(cores=1).is_crowded(1.0)


def test_a_crowd_is_more_than_the_machine_has_cores(tmp_path: Path) -> None:
    cores = os.cpu_count() or 1
    load = tmp_path / "loadavg"
    for running in (cores, cores + 1):
        load.write_text(f"0.10 0.20 0.30 {running}/99 4711\n")
        assert Crowd(str(load)).is_crowded(1.0) is (running > cores)
