"""Whether the machine is crowded, by what /proc/loadavg says, read anew after a moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tenfold_kernels.crowd import Crowd

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
