"""Device names: parsing, merging and matching of partial specs."""

from __future__ import annotations

import pytest

from tenfold_core import device
from tenfold_core.device import DeviceSpec


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("/job:ps/task:0", "/job:ps/task:0"),
        ("/cpu:0", "/device:CPU:0"),
        ("/job:w/replica:0/task:1/GPU:2", "/job:w/replica:0/task:1/device:GPU:2"),
        ("/device:GPU:*", "/device:GPU:*"),
        ("/task:3/job:ps", "/job:ps/task:3"),
        ("", ""),
        (None, ""),
    ],
)
def test_canonical_names(given: str | None, wanted: str) -> None:
    assert device.canonical_name(given) == wanted


@pytest.mark.parametrize("wrong", ["/job:", "/jop:ps", "/task:x", "/device:GPU:1:2", "ps"])
def test_a_malformed_name_is_quoted_with_the_wrong_part(wrong: str) -> None:
    with pytest.raises(ValueError, match="Malformed device specification"):
        DeviceSpec.from_string(wrong)


def test_merging_lays_the_inner_over_the_outer() -> None:
    assert device.merge("/job:ps/task:0", "/task:1/cpu:0") == "/job:ps/task:1/device:CPU:0"


def test_matching() -> None:
    full = "/job:ps/replica:0/task:0/device:CPU:0"
    assert device.is_compatible("", full)
    assert device.is_compatible("/job:ps/cpu:*", full)
    assert not device.is_compatible("/job:ps/device:GPU:0", full)
    assert device.task_of(full) == "/job:ps/replica:0/task:0"
    assert device.full_name("ps", 0) == full
    with pytest.raises(ValueError, match="does not name a task"):
        _ = DeviceSpec(job="ps").task_name
