"""2 and 3 once more, compared with other runtimes: torch RPC and a Ray compiled graph, where the work is the same.

Both are optional, in .venv-peers (or --peers PYTHON); one that is not installed is skipped, with a note:

    python -m venv .venv-peers
    .venv-peers/bin/pip install torch==2.13.0 ray
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cross_task
import harness
import remote_null_step
from harness import PS_WORKER, REMOTE, Case, Deployment, Effort, Side, Subject, Wish

if TYPE_CHECKING:
    from collections.abc import Iterator

PEERS = {"torch-rpc": Side("torch rpc", "torch"), "ray-compiled-graph": Side("ray compiled graph", "ray")}
#: Name in the peers' reports → Tenfold's case that does the same work.
SAME_WORK = {
    "null step": (remote_null_step.SUBJECT, "feed and fetch of a scalar, remote", REMOTE),
    "tiny variable": (cross_task.SUBJECT, "tiny variable ps → worker", PS_WORKER),
}


def ask_peer(python: str | None, name: str, seconds: float) -> dict[str, Any]:
    """Figures of one peer, or why there are none, under "skipped"."""
    if python is None:
        return {"skipped": "there is no environment .venv-peers"}
    done = subprocess.run(
        [python, str(harness.HERE / "peers_role.py"), name, str(seconds)],
        capture_output=True,
        text=True,
        timeout=180,
    )
    if done.returncode:
        return {"skipped": (done.stderr.strip().splitlines() or ["it failed"])[-1][:200]}
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


def case_of(subject: Subject, name: str) -> Case:
    return next(case for case in subject.cases if case.name == name)


def rows(effort: Effort, wish: Wish) -> Iterator[dict[str, Any]]:
    """Measures the subject; a round starts the peers afresh, so there are three of them only."""
    python = wish.pythons.get("peers")
    notes = []
    measured: dict[str, dict[str, dict[int, dict[str, float]]]] = {work: {} for work in SAME_WORK}
    with tempfile.TemporaryDirectory(prefix="tenfold-bench-", ignore_cleanup_errors=True) as folder:
        ours = {
            work: Deployment(harness.TENFOLD, topology, subject.module, wish.pythons, Path(folder))
            for work, (subject, _name, topology) in SAME_WORK.items()
        }
        try:
            for work, (subject, name, _topology) in SAME_WORK.items():
                ours[work].wait_ready()
                ours[work].build(case_of(subject, name), Path(folder))
                ours[work].run(0.3 * effort.warm_up_scale, 3)
            skipped: dict[str, str] = {}
            for number in range(3):
                for work, deployment in ours.items():
                    figures = harness.round_figures(deployment.run(effort.seconds, 3), "latency")
                    measured[work].setdefault("tenfold", {})[number] = figures
                for name, side in PEERS.items():
                    if name in skipped:
                        continue
                    answer = ask_peer(python, name, effort.seconds)
                    if "skipped" in answer:
                        skipped[name] = answer["skipped"]
                        continue
                    if number == 0:
                        notes.append(answer["version"])
                    for work, figures in answer["figures"].items():
                        if work in measured:
                            measured[work].setdefault(side.name, {})[number] = figures
        finally:
            for deployment in ours.values():
                deployment.stop()
    sides = {"tenfold": harness.TENFOLD, **{side.name: side for side in PEERS.values()}}
    failures = {PEERS[name].name: f"skipped: {why}" for name, why in skipped.items()}
    for work, rounds in measured.items():
        case = Case(f"{work}, beside other runtimes", SAME_WORK[work][2], case_of(*SAME_WORK[work][:2]).build)
        row = harness.row_of(case, rounds, sides, failures, "equal", 0.0)
        row["note"] = ", ".join(notes)
        yield row


SUBJECT = Subject("2, 3", "peers", "other peers", rows=rows)

if __name__ == "__main__":
    harness.main(SUBJECT)
