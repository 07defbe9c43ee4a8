"""What was measured and where: machine, versions, commit, and what may disturb the figures."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Seconds over which the load of the machine is measured.
_LOOK_S = 0.5


def machine() -> dict[str, Any]:
    """Where this was measured, for the head of a report."""
    model = "unknown"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory, 1),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "governor": _first_line(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")) or "none to be seen",
        "python": platform.python_version(),
        "load": [round(value, 2) for value in os.getloadavg()],
    }


def versions(pythons: Mapping[str, str]) -> dict[str, str]:
    """The versions of what is measured, from each side's own interpreter."""
    # pkg_resources: of the Python 3.7 of TensorFlow 1.15
    asked = (
        "try:\n import importlib.metadata as m\n found = [(d.name, d.version) for d in m.distributions()]\n"
        "except ImportError:\n import pkg_resources as m\n"
        " found = [(d.project_name, d.version) for d in m.working_set]\n"
        "print(['%s %s' % each for each in found])"
    )
    wanted = (
        *("tenfold", "tensorflow", "tensorflow-cpu", "tensorflow_cpu", "numpy", "grpcio", "numba"),
        *("torch", "fbgemm_gpu-cpu", "ray"),
    )
    found: dict[str, str] = {}
    for runtime, python in pythons.items():
        listed = subprocess.run([python, "-c", asked], check=True, capture_output=True, text=True).stdout
        names = [each.strip(" '\"[]\n") for each in listed.split(",")]
        found[runtime] = ", ".join(sorted({each for each in names if each.split(" ")[0].lower() in wanted}))
    return found


def commit(folder: Path) -> str:
    """The commit that was measured, and whether the files differ from it."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=60)
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        name = git("rev-parse", "--short=12", "HEAD")
        return f"{name} and changes to it" if name and git("status", "--porcelain", "-uno") else name or "unknown"
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"


def busy() -> dict[str, float]:
    """Load average of the last minute, and the cores in use over the next half second. Blocks for it.

    The load average includes this program's own work of the last minute; the cores in use are other processes'.
    """
    before = _core_seconds()
    time.sleep(_LOOK_S)
    return {"load": round(os.getloadavg()[0], 2), "cores": round((_core_seconds() - before) / _LOOK_S, 2)}


def doubts(found: Mapping[str, float]) -> list[str]:
    """Why times taken now are less reliable; `found` is the result of `busy`."""
    if found["load"] <= 1.0:
        return []
    load, cores = found["load"], found["cores"]
    return [f"the load average is {load:g}, {cores:g} cores are in use: the machine is not ours alone"]


def keep_caches() -> list[str]:
    """Makes the started processes write and use bytecode caches, as by default; returns notes for the report."""
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", None) is None:
        return []
    return ["PYTHONDONTWRITEBYTECODE is set; the measured processes run without it, on all sides"]


def _first_line(path: Path) -> str:
    try:
        return path.read_text().partition("\n")[0].strip()
    except OSError:
        return ""


def _core_seconds() -> float:
    """Seconds that all cores together have worked, ever: user, nice, system, interrupts, not idle and not waiting."""
    fields = _first_line(Path("/proc/stat")).split()[1:]
    worked = [int(each) for number, each in enumerate(fields[:7]) if number not in (3, 4)]
    return sum(worked) / os.sysconf("SC_CLK_TCK")
