"""What a process must settle before NumPy is loaded: the BLAS's choice of processor kernels, and its threads.

OpenBLAS, which NumPy's wheels carry, reads OPENBLAS_CORETYPE and OPENBLAS_NUM_THREADS once, when it is loaded. The
`tenfold` command calls `prefer_wide_kernels` first thing (cli/main.py), and `tenfold up` shares the cores out among
its tasks (cli/local.py). A variable that the user has set is never touched. Imports nothing but the standard library.
"""

from __future__ import annotations

import os
import platform
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping

_CORE_TYPE = "OPENBLAS_CORETYPE"
#: Any of these says that the user chose a number of threads.
_THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
#: What OpenBLAS's SkylakeX kernels use.
_WIDE = frozenset(("avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"))
#: The first AMD family (Zen 5) that OpenBLAS does not know yet and takes for a processor without AVX-512. It is also
#: the first one that computes 512 bits at once: twice as fast there, nothing gained on Zen 4, which is known.
_FIRST_UNKNOWN_AMD_FAMILY = 26


def prefer_wide_kernels(environment: MutableMapping[str, str] = os.environ, cpuinfo: str | None = None) -> bool:
    """Sets OPENBLAS_CORETYPE where OpenBLAS would choose too narrow kernels; whether it did. Never fails.

    `cpuinfo` is the text of /proc/cpuinfo. Does nothing once NumPy is loaded: it would be too late.
    """
    if environment.get(_CORE_TYPE) or "numpy" in sys.modules:
        return False
    if cpuinfo is None:
        cpuinfo = _read_cpuinfo()
    if not _is_underestimated(cpuinfo):
        return False
    environment[_CORE_TYPE] = "SkylakeX"
    return True


def thread_share(tasks: int, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that give each of `tasks` processes on this machine its share of the cores; {} where a user chose.

    At least one thread each.
    """
    if any(environment.get(name) for name in _THREAD_VARIABLES):
        return {}
    return {"OPENBLAS_NUM_THREADS": str(max(1, available_cores() // max(1, tasks)))}


def available_cores() -> int:
    """The cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _read_cpuinfo() -> str:
    if platform.machine() not in ("x86_64", "AMD64"):
        return ""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            return file.read(65_536)
    except OSError:
        return ""


def _is_underestimated(cpuinfo: str) -> bool:
    """Whether the first processor has AVX-512 and OpenBLAS does not know it."""
    facts: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        if not line.strip() and facts:
            break
        name, colon, value = line.partition(":")
        if colon:
            facts[name.strip()] = value.strip()
    family = facts.get("cpu family", "")
    return (
        facts.get("vendor_id") == "AuthenticAMD"
        and family.isdecimal()
        and int(family) >= _FIRST_UNKNOWN_AMD_FAMILY
        and set(facts.get("flags", "").split()) >= _WIDE
    )
