"""What devices a task has: a CPU always, GPUs where there is a driver that works, those that are asked for."""

from __future__ import annotations

import ctypes
import os
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tenfold_core import errors
from tenfold_kernels import gpus
from tenfold_kernels.cuda import _runtime
from tenfold_protos.config_pb2 import ConfigProto
from tenfold_services.worker import devices

if TYPE_CHECKING:
    from collections.abc import Iterator

TASK = "/job:ps/replica:0/task:0"
DRIVER = "tenfold_kernels.cuda._driver"


class FakeGPU:
    """A runtime that has no memory and no kernels."""

    compute_capability = (9, 0)

    def __init__(self, index: int, share: float | None) -> None:
        self.index, self.name = index, f"Fake {index}"
        self.memory = int((1 << 30) * (share or 1.0))


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("CUDA_VISIBLE_DEVICES", _runtime.SIMULATOR, _runtime.SIMULATED_GPUS):
        monkeypatch.delenv(name, raising=False)
    for table in ("_runtimes", "_meant", "_shares"):
        monkeypatch.setattr(_runtime, table, {})
    gpus._of_driver.cache_clear()
    yield
    gpus._of_driver.cache_clear()


def no_driver(_: str) -> None:
    raise OSError("no such library")


def a_driver(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """One that finds `count` GPUs."""
    monkeypatch.setattr(ctypes, "CDLL", lambda _: None)
    monkeypatch.setitem(sys.modules, DRIVER, SimpleNamespace(device_count=lambda: count, DriverRuntime=FakeGPU))


def names(options: gpus.GpuOptions = gpus.ALL_GPUS) -> list[str]:
    return [each.name.removeprefix(f"{TASK}/device:") for each in devices.local_devices(TASK, 1, options)]


def said(**fields: Any) -> gpus.GpuOptions:
    config = ConfigProto()
    for key, value in fields.items():
        if key == "count":
            config.device_count["GPU"] = value
        else:
            setattr(config.gpu_options, key, value)
    return devices.gpu_options(config)


def test_without_a_driver_there_is_a_cpu_and_cuda_is_not_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", no_driver)
    monkeypatch.setitem(sys.modules, DRIVER, None)  # importing it would fail
    assert names() == ["CPU:0"]
    assert (devices.found_gpus(), devices.why_no_gpu()) == ((), "")
    # whatever a program says of GPUs is nobody's business then
    assert said(visible_device_list="7,x", per_process_gpu_memory_fraction=0.5) is gpus.ALL_GPUS


def test_a_gpu_is_listed_with_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    a_driver(monkeypatch, 1)
    _, gpu = devices.local_devices(TASK)
    assert (gpu.name, gpu.device_type, gpu.memory_limit) == (f"{TASK}/device:GPU:0", "GPU", 1 << 30)
    assert gpu.physical_device_desc == "device: 0, name: Fake 0, compute capability: 9.0"
    assert devices.found_gpus() == ((1 << 30, gpu.physical_device_desc),)


def test_a_driver_without_a_gpu_or_that_is_broken_leaves_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    a_driver(monkeypatch, 0)
    assert names() == ["CPU:0"]
    gpus._of_driver.cache_clear()
    monkeypatch.setitem(sys.modules, DRIVER, None)
    assert names() == ["CPU:0"]
    monkeypatch.setattr(gpus.importlib.util, "find_spec", lambda _: None)
    assert devices.why_no_gpu() == "the extra cuda is not installed"


def test_a_gpu_that_cannot_be_made_ready_leaves_the_cpu(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    a_driver(monkeypatch, 1)

    def lost(index: int, share: float | None) -> Any:
        raise RuntimeError("CUDA_ERROR_NO_DEVICE")

    monkeypatch.setattr(sys.modules[DRIVER], "DriverRuntime", lost)
    assert names() == ["CPU:0"]
    assert "no GPU can be used: RuntimeError: CUDA_ERROR_NO_DEVICE" in caplog.text


def test_hidden_gpus_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    a_driver(monkeypatch, 2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert names() == ["CPU:0"]


def test_a_program_says_how_many_and_which(monkeypatch: pytest.MonkeyPatch) -> None:
    a_driver(monkeypatch, 3)
    assert names(said(count=0)) == ["CPU:0"]
    assert names(said(count=1)) == ["CPU:0", "GPU:0"]
    assert names(said(count=9)) == ["CPU:0", "GPU:0", "GPU:1", "GPU:2"]
    assert names(said()) == ["CPU:0", "GPU:0", "GPU:1", "GPU:2"]


def test_a_list_of_visible_gpus_is_an_order(monkeypatch: pytest.MonkeyPatch) -> None:
    a_driver(monkeypatch, 3)
    _, first, second = devices.local_devices(TASK, 1, said(visible_device_list="2, 0"))
    assert [each.physical_device_desc.partition(",")[0] for each in (first, second)] == ["device: 2", "device: 0"]
    assert _runtime.runtime_of(first.name) is _runtime.runtime_of_gpu(2)
    # the same again, and fewer of them
    assert names(said(visible_device_list="2,0")) == ["CPU:0", "GPU:0", "GPU:1"]
    assert names(said(visible_device_list="2")) == ["CPU:0", "GPU:0"]
    with pytest.raises(errors.AlreadyExistsError, match=r"GPU:0.*multiple CUDA devices \(0 now, and 2 previously\)"):
        names(said(visible_device_list="0"))


@pytest.mark.parametrize(
    ("visible", "text"),
    [
        ("0,a", "Could not parse entry in 'visible_device_list': 'a'"),
        ("2", "listed an invalid GPU id '2' but visible device count is 2"),
        ("-1", "listed an invalid GPU id '-1'"),
        ("1,1", "duplicate entry: 1,1"),
    ],
)
def test_a_list_of_what_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch, visible: str, text: str) -> None:
    a_driver(monkeypatch, 2)
    with pytest.raises(errors.InvalidArgumentError, match=text):
        names(said(visible_device_list=visible))


def test_a_share_of_the_memory_is_the_firsts_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    a_driver(monkeypatch, 1)
    _, gpu = devices.local_devices(TASK, 1, said(per_process_gpu_memory_fraction=0.25))
    assert gpu.memory_limit == 1 << 28
    _, gpu = devices.local_devices(TASK, 1, said(per_process_gpu_memory_fraction=0.75))
    assert gpu.memory_limit == 1 << 28


@pytest.mark.parametrize(
    ("visible", "found"),
    [(None, (0, 1, 2)), ("", ()), ("-1", ()), ("2,0", (2, 0)), ("1,9,0", (1,)), ("0,0", (0,)), ("GPU-1f", ())],
)
def test_the_simulators_gpus_are_those_that_are_visible(
    monkeypatch: pytest.MonkeyPatch, visible: str | None, found: tuple[int, ...]
) -> None:
    monkeypatch.setenv(_runtime.SIMULATOR, "1")
    monkeypatch.setenv(_runtime.SIMULATED_GPUS, "3")
    if visible is not None:
        monkeypatch.setitem(os.environ, "CUDA_VISIBLE_DEVICES", visible)
    assert gpus._seen() == found
    assert gpus.are_there() == bool(found)


def test_every_life_of_a_device_has_another_incarnation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", no_driver)
    first, second = devices.local_devices(TASK)[0], devices.local_devices(TASK)[0]
    assert first.incarnation != second.incarnation


@pytest.mark.parametrize(("asked", "count"), [(None, 1), (-1, 1), (0, 1), (1, 1), (3, 3), (64, 64), (65, 64)])
def test_a_program_asks_for_cpus_within_bounds(asked: int | None, count: int) -> None:
    config = ConfigProto()
    if asked is not None:
        config.device_count["CPU"] = asked
    assert devices.cpu_count(config) == count
    assert devices.cpu_count(None) == 1


def test_several_cpus_are_names_for_one_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", no_driver)
    found = devices.local_devices(TASK, 3)
    assert [each.name for each in found] == [f"{TASK}/device:CPU:{index}" for index in range(3)]
    for each in found:
        assert (each.device_type, each.memory_limit, each.physical_device_desc) == ("CPU", 256 << 20, "")
        assert each.xla_global_id == -1
        assert each.HasField("locality")
    assert len({each.incarnation for each in found}) == 3


def test_an_incarnation_is_never_nought(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", no_driver)
    asked: list[int] = []
    monkeypatch.setattr(devices.secrets, "randbits", lambda bits: asked.append(bits) or 0)
    assert [each.incarnation for each in devices.local_devices(TASK)] == [1]
    assert asked == [64]


def test_why_a_machine_with_a_driver_has_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for there, driver, extra, why in (
        (True, True, True, ""), (False, False, True, ""), (False, True, True, "CUDA sees none"),
        (False, True, False, "the extra cuda is not installed"),
    ):  # fmt: skip
        monkeypatch.setattr(devices, "are_there", lambda there=there: there)
        monkeypatch.setattr(devices, "has_driver", lambda driver=driver: driver)
        monkeypatch.setattr(devices, "has_extra", lambda extra=extra: extra)
        assert devices.why_no_gpu() == why


def test_what_is_said_of_gpus_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    a_driver(monkeypatch, 1)
    assert devices.gpu_options(None) is gpus.ALL_GPUS
    assert said(count=-3).count == 0
    assert said().count is None
    options = said(count=2, visible_device_list="0", per_process_gpu_memory_fraction=0.5)
    assert options == gpus.GpuOptions(2, "0", 0.5)
