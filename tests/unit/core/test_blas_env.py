"""What is settled before NumPy is loaded: BLAS kernels and threads. Texts of /proc/cpuinfo stand in for processors."""

from __future__ import annotations

import io
import os
import platform
import subprocess
import sys
from typing import Any

import pytest

from tenfold_core import blas_env
from tenfold_core.blas_env import available_cores, prefer_wide_kernels, thread_share

WIDE = "fpu avx2 avx512f avx512dq avx512cd avx512bw avx512vl"


def cpuinfo(vendor: str, family: int, flags: str) -> str:
    one = f"processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel name\t: a: b\nflags\t\t: {flags}\n"
    return f"{one}\n{one}"


@pytest.fixture
def before_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "numpy")


@pytest.mark.usefixtures("before_numpy")
@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        (cpuinfo("AuthenticAMD", 26, WIDE), True),
        (cpuinfo("AuthenticAMD", 27, WIDE.replace("fpu avx2 ", "")), True),  # what the kernels use is enough
        (cpuinfo("AuthenticAMD", 25, WIDE), False),  # known to OpenBLAS
        (cpuinfo("AuthenticAMD", 26, "fpu avx2"), False),  # hidden by the hypervisor
        (cpuinfo("GenuineIntel", 6, WIDE), False),
        ("", False),
        ("nonsense\n:\n", False),
    ],
)
def test_kernels_are_chosen_only_where_openblas_chooses_too_narrow_ones(text: str, chosen: bool) -> None:
    environment: dict[str, str] = {}
    assert prefer_wide_kernels(environment, text) is chosen
    assert environment == ({"OPENBLAS_CORETYPE": "SkylakeX"} if chosen else {})


@pytest.mark.usefixtures("before_numpy")
def test_what_the_user_set_stays() -> None:
    environment = {"OPENBLAS_CORETYPE": "Haswell"}
    assert not prefer_wide_kernels(environment, cpuinfo("AuthenticAMD", 26, WIDE))
    assert environment == {"OPENBLAS_CORETYPE": "Haswell"}


def test_too_late_once_numpy_is_loaded() -> None:
    assert "numpy" in sys.modules
    assert not prefer_wide_kernels({}, cpuinfo("AuthenticAMD", 26, WIDE))


def test_the_command_settles_it_in_time() -> None:
    """Importing the command loads no NumPy."""
    code = "import sys, tenfold.cli.main; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_tasks_of_one_machine_share_its_cores() -> None:
    assert thread_share(1, {}) == {"OPENBLAS_NUM_THREADS": str(available_cores())}
    assert thread_share(1000, {}) == {"OPENBLAS_NUM_THREADS": "1"}
    assert thread_share(2, {"OMP_NUM_THREADS": "7"}) == {}


class ProcFile(io.StringIO):
    """/proc/cpuinfo, that remembers how far it was read."""

    read_to = 0

    def close(self) -> None:
        self.read_to = self.tell()
        super().close()


def on_machine(monkeypatch: pytest.MonkeyPatch, machine: str, answer: ProcFile | OSError) -> None:
    """This is such a machine, and /proc/cpuinfo is such a file."""

    def opened(path: str, **_: Any) -> ProcFile:
        assert path == "/proc/cpuinfo"
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(blas_env, "open", opened, raising=False)


@pytest.mark.usefixtures("before_numpy")
@pytest.mark.parametrize(("machine", "chosen"), [("x86_64", True), ("AMD64", True), ("aarch64", False)])
def test_this_machines_processor_is_looked_at(monkeypatch: pytest.MonkeyPatch, machine: str, chosen: bool) -> None:
    on_machine(monkeypatch, machine, ProcFile(cpuinfo("AuthenticAMD", 26, WIDE)))

    assert prefer_wide_kernels({}) is chosen


@pytest.mark.usefixtures("before_numpy")
def test_a_machine_that_does_not_tell_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    on_machine(monkeypatch, "x86_64", FileNotFoundError())

    assert not prefer_wide_kernels({})


@pytest.mark.usefixtures("before_numpy")
def test_of_a_hundred_processors_the_first_ones_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    file = ProcFile(1000 * cpuinfo("AuthenticAMD", 26, WIDE))
    on_machine(monkeypatch, "x86_64", file)

    assert prefer_wide_kernels({})
    assert file.read_to == 64 * 1024


@pytest.mark.parametrize(("counted", "cores"), [(6, 6), (None, 1)])
def test_cores_are_those_of_this_process_or_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, counted: int | None, cores: int
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: counted)
    monkeypatch.setattr(os, "sched_getaffinity", {0: {3, 5, 9}}.__getitem__, raising=False)
    assert available_cores() == 3

    monkeypatch.delattr(os, "sched_getaffinity")
    assert available_cores() == cores
