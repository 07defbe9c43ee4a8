"""Many steps, with a check that nothing grows: 1,000,000 null steps and 10,000 steps of 64 MB, on Tenfold alone.

    python benchmarks/soak.py [--null-steps 1000000] [--large-steps 10000] [--megabytes 64]

Watched in the client's process and in the servers: resident memory, memory shared with others, open descriptors,
threads, mappings of anonymous shared memory, and what lies in /dev/shm. After a warm-up of a tenth of the steps every
figure must stay where it is, but for a small allowance; ends with status 1 if one does not. At the end one server is
killed (SIGKILL) while steps run, and nothing may be left in /dev/shm.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import dense_pull
import harness
import remote_null_step
from harness import PS_WORKER, REMOTE, Deployment, Subject

#: Growth that is no leak: allocator noise in MiB, and a few descriptors for a connection made anew.
ALLOWED = {"rss_mib": 24.0, "shared_mib": 8.0, "descriptors": 4.0, "threads": 2.0, "shared_maps": 2.0}
SAMPLES = 10
#: Seconds for one of the SAMPLES parts, which is one command to the client.
STRETCH_TIMEOUT_S = 3600.0


def look(pid: int) -> dict[str, float]:
    """What one process holds at this moment."""
    fields = {}
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        fields[name] = value.split()
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return {
        "rss_mib": int(fields["VmRSS"][0]) / 1024,
        "shared_mib": int(fields["RssShmem"][0]) / 1024,
        "descriptors": float(len(os.listdir(f"/proc/{pid}/fd"))),
        "threads": float(fields["Threads"][0]),
        "shared_maps": float(sum("memfd:" in line or "/dev/shm/" in line for line in maps)),
    }


def in_shared_folder() -> set[str]:
    folder = Path("/dev/shm")
    return {each.name for each in folder.iterdir()} if folder.exists() else set()


def soak(deployment: Deployment, case: Any, steps: int, folder: Path) -> dict[str, Any]:
    """Runs `steps` steps in SAMPLES parts, and reads the figures of all processes after each."""
    deployment.wait_ready()
    deployment.build(case, folder)
    processes = {process.name: process.popen.pid for process in deployment.servers + deployment.clients}
    samples: dict[str, list[dict[str, float]]] = {name: [] for name in processes}
    rates = []
    for number in range(SAMPLES):
        answer = deployment.run(0.0, max(1, steps // SAMPLES), STRETCH_TIMEOUT_S)[0]
        rates.append(answer["p50_us"])
        for name, pid in processes.items():
            samples[name].append(look(pid))
        memory = ", ".join(f"{name} {values[-1]['rss_mib']:.0f} MiB" for name, values in samples.items())
        done = (number + 1) * (steps // SAMPLES)
        print(f"  {case.name}: {done:,} steps, p50 {rates[-1]:.0f} µs, {memory}", flush=True)
    growth = {name: {key: values[-1][key] - values[0][key] for key in ALLOWED} for name, values in samples.items()}
    leaks = [
        f"{name}: {key} grew by {grown:.1f}, allowed {ALLOWED[key]:g}"
        for name, each in growth.items()
        for key, grown in each.items()
        if grown > ALLOWED[key]
    ]
    return {"case": case.name, "steps": steps, "p50_us": rates, "samples": samples, "growth": growth, "leaks": leaks}


def kill_while_stepping(deployment: Deployment) -> str:
    """SIGKILL to a server while the client runs steps; the client's error."""
    victim = deployment.servers[0].popen
    threading.Timer(0.5, victim.kill).start()
    try:
        deployment.run(30.0, 3)
    except harness.SideFailedError as error:
        return str(error).splitlines()[0]
    return "the client noticed nothing within 30 s"


def main() -> None:
    parser = argparse.ArgumentParser(description="Many steps, and whether anything grows.")
    parser.add_argument("--null-steps", type=int, default=1_000_000)
    parser.add_argument("--large-steps", type=int, default=10_000)
    parser.add_argument("--megabytes", type=int, choices=(1, 16, 64), default=64)
    parser.add_argument("--json", help="write the samples here")
    options = parser.parse_args()

    before, started, found = in_shared_folder(), time.monotonic(), []
    plan: list[tuple[Subject, str, Any, int]] = [
        (remote_null_step.SUBJECT, "feed and fetch of a scalar, remote", REMOTE, options.null_steps),
        (dense_pull.SUBJECT, f"pull {options.megabytes} MB", PS_WORKER, options.large_steps),
    ]
    with tempfile.TemporaryDirectory(prefix="tenfold-soak-", ignore_cleanup_errors=True) as folder:
        for subject, name, topology, steps in plan:
            case = next(case for case in subject.cases if case.name == name)
            pythons = {"tenfold": sys.executable}
            deployment = Deployment(harness.TENFOLD, topology, subject.module, pythons, Path(folder))
            try:
                found.append(soak(deployment, case, steps, Path(folder)))
                found[-1]["after kill -9 of a server"] = kill_while_stepping(deployment)
                print(f"  after kill -9 of a server: {found[-1]['after kill -9 of a server'][:160]}")
            finally:
                deployment.stop()
    left = sorted(in_shared_folder() - before)
    leaks = [leak for each in found for leak in each["leaks"]]
    if left:
        leaks.append(f"left in /dev/shm: {', '.join(left[:8])}")
    print(f"{time.monotonic() - started:.0f} s: " + ("\n  ".join(["LEAKS", *leaks]) if leaks else "flat, nothing left"))
    if options.json:
        Path(options.json).write_text(json.dumps({"runs": found, "left": left, "leaks": leaks}, indent=1) + "\n")
    sys.exit(bool(leaks))


if __name__ == "__main__":
    main()
