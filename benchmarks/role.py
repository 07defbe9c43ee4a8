"""One process of one side: a server, or a client that builds programs and times their steps.

Started by harness/processes.py. Its orders come as JSON lines on standard input, its answers go as JSON lines to
standard output; it ends when its input does. The first order says which process it is. This file, harness and the
subjects are all that both runtimes share; they import NumPy and nothing of either runtime until `load_runtime`.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness import Measure, Side


def load_runtime(name: str) -> Any:
    """The module that programs call `tf`."""
    if name in ("tenfold", "baseline"):
        return importlib.import_module("tenfold")
    if name == "peers":
        torch = importlib.import_module("torch")
        torch.set_num_threads(len(os.sched_getaffinity(0)))
        return torch
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    tf = importlib.import_module("tensorflow.compat.v1")
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    return tf


def start_server(tf: Any, side: Side, cluster: Mapping[str, Any], task: str) -> Any:
    from harness import session_config

    job, _, index = task.partition(":")
    config = session_config(tf, side)
    return tf.train.Server(tf.train.ClusterSpec(cluster), job_name=job, task_index=int(index), config=config)


def usage() -> dict[str, float]:
    """What this process has used so far: minor page faults, seconds of processor time, and its peak memory in MiB."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    # not ru_maxrss, which counts the process that started this one
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return {"faults": used.ru_minflt, "cpu_s": used.ru_utime + used.ru_stime, "peak_mib": int(peak.split()[1]) / 1024}


def timed(measure: Measure, seconds: float, least: int) -> dict[str, Any]:
    """Runs steps one after the other for about `seconds` of step time, and at most four times that with `between`."""
    step, between, clock = measure.step, measure.between, time.perf_counter_ns
    taken: list[int] = []
    spent, budget = 0, int(seconds * 1e9)
    for _ in range(measure.run_in):
        step()
    used, start = usage(), time.time()
    deadline = clock() + 4 * budget
    if measure.window is not None:
        # a step may take longer than the window: it is made longer then
        taken = next(filter(None, map(measure.window, (seconds, 4 * seconds, 16 * seconds))), [])
        least = budget = 0
    while len(taken) < least or (spent < budget and clock() < deadline):
        if between is not None:
            between()
        before = clock()
        step()
        taken.append(clock() - before)
        spent += taken[-1]
    end, now = time.time(), usage()
    taken.sort()
    if not taken:
        raise TimeoutError(f"no step ended within {seconds:g} s")
    p50, p99 = (taken[min(len(taken) - 1, int(share * len(taken)))] / 1e3 for share in (0.5, 0.99))
    spending = {**{name: now[name] - used[name] for name in ("faults", "cpu_s")}, "peak_mib": now["peak_mib"]}
    return {"steps": len(taken), "p50_us": p50, "p99_us": p99, "start": start, "end": end, "usage": spending}


def serve_client(tf: Any, side: Side, order: Mapping[str, Any], answers: Any) -> None:
    """The command loop of a client."""
    import numpy as np
    from harness import Context

    subject = importlib.import_module(order["module"]).SUBJECT
    cases = {case.name: case for case in subject.cases}
    target = order["target"]
    server = None
    if order["task"] is not None:
        if side.direct:
            target = ""
        else:
            server = start_server(tf, side, order["cluster"], order["task"])
            target = server.target
    context = Context(tf, side, target, order["cluster"], order["index"], Path(order["folder"]))
    answers({"ready": True})

    measure: Measure | None = None
    for line in sys.stdin:
        command = json.loads(line)
        try:
            if command["do"] == "build":
                measure = cases[command["case"]].build(context)
                if command["npz"]:
                    arrays: dict[str, Any] = {key: np.asarray(value) for key, value in measure.result().items()}
                    np.savez(command["npz"], **arrays)
                answers({"first_s": measure.first_s, "floor_s": measure.floor_s})
            elif command["do"] == "round":
                assert measure is not None
                answers(timed(measure, command["seconds"], command["least"]))
            else:
                # What the program held should be gone before the next case.
                measure = None
                context.close_sessions()
                gc.collect()
                answers({})
        except Exception as error:
            answers({"error": f"{type(error).__name__}: {str(error)[:600]}"})


def main() -> None:
    # What the runtimes print must not mix with the answers.
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def answer(message: Mapping[str, Any]) -> None:
        out.write(json.dumps(message) + "\n")
        out.flush()

    order = json.loads(sys.stdin.readline())
    # Before any import of a runtime, whose thread pools are sized by it.
    os.sched_setaffinity(0, order["cores"])
    from harness import side_from_json

    side = side_from_json(order["side"])
    tf = load_runtime(side.client or side.runtime if order["role"] == "client" else side.runtime)
    if order["role"] == "server":
        server = start_server(tf, side, order["cluster"], order["task"])
        answer({"ready": True})
        for _ in sys.stdin:
            answer(usage())
        del server
    else:
        serve_client(tf, side, order, answer)
    # Nothing to be saved, and TensorFlow's servers cannot be stopped.
    os._exit(0)


if __name__ == "__main__":
    main()
