"""What is settled before NumPy is loaded: BLAS kernels and threads. Texts of /proc/cpuinfo stand in for processors."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
