"""What devices a task has: a CPU always, GPUs where there is a driver that works."""

from __future__ import annotations

import ctypes
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tenfold_kernels.gpus import gpus
from tenfold_services.worker import devices

if TYPE_CHECKING:
    from collections.abc import Iterator

TASK = "/job:ps/replica:0/task:0"


class FakeGPU:
    id = 0
    name = b"Fake GPU"

    def __enter__(self) -> None: ...

    def __exit__(self, *_: Any) -> None: ...


def fake_cuda(available: bool) -> Any:
    context = SimpleNamespace(get_memory_info=lambda: SimpleNamespace(total=1 << 30))
    return SimpleNamespace(
        is_available=lambda: available, list_devices=lambda: [FakeGPU()], current_context=lambda: context
    )


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    gpus.cache_clear()
    yield
    gpus.cache_clear()


def names() -> list[str]:
    return [device.name.removeprefix(f"{TASK}/device:") for device in devices.local_devices(TASK)]


def no_driver(_: str) -> None:
    raise OSError("no such library")


def test_without_a_driver_there_is_a_cpu_and_numba_is_not_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", no_driver)
    monkeypatch.setitem(sys.modules, "numba.cuda", None)  # importing it would fail
    assert names() == ["CPU:0"]


def test_a_gpu_is_listed_with_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: None)
    monkeypatch.setitem(sys.modules, "numba.cuda", fake_cuda(True))
    _, gpu = devices.local_devices(TASK)
    assert (gpu.name, gpu.device_type, gpu.memory_limit) == (f"{TASK}/device:GPU:0", "GPU", 1 << 30)
    assert "Fake GPU" in gpu.physical_device_desc


def test_a_driver_without_a_gpu_or_that_is_broken_leaves_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: None)
    monkeypatch.setitem(sys.modules, "numba.cuda", fake_cuda(False))
    assert names() == ["CPU:0"]
    gpus.cache_clear()
    monkeypatch.setitem(sys.modules, "numba.cuda", None)
    assert names() == ["CPU:0"]


def test_hidden_gpus_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: None)
    monkeypatch.setitem(sys.modules, "numba.cuda", fake_cuda(True))
    assert names() == ["CPU:0"]


def test_every_life_of_a_device_has_another_incarnation() -> None:
    first, second = devices.local_devices(TASK)[0], devices.local_devices(TASK)[0]
    assert first.incarnation != second.incarnation
    assert first.incarnation
