"""The work of subjects 2 and 3 with torch RPC and Ray, run by peers.py in an environment that has them.

    python peers_role.py torch-rpc|ray-compiled-graph SECONDS      prints one JSON line

torch RPC: one blocking call that adds one to a scalar in another process, and one that fetches three floats from
there. Ray compiled graph: one actor in another process that adds one to a scalar, through a channel in shared memory.
"""

import functools
import json
import os
import statistics
import sys
import time
import warnings

warnings.simplefilter("ignore")


def repeat(call, seconds):
    """Calls for `seconds` after a warm-up; microseconds at p50 and p99."""
    for _ in range(100):
        call()
    taken, deadline = [], time.monotonic() + seconds
    while time.monotonic() < deadline:
        start = time.perf_counter()
        call()
        taken.append((time.perf_counter() - start) * 1e6)
    taken.sort()
    return {"p50_us": statistics.median(taken), "p99_us": taken[int(0.99 * (len(taken) - 1))]}


def pin(slot):
    """The client on the last core, its server on the one before, as the harness pins them."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, [cores[-1 - slot % len(cores)]])


def torch_add(value):
    return value + 1


@functools.cache
def torch_variable():
    """Three floats in the process that is called, made once."""
    import torch

    return torch.tensor([1.0, 2.0, 3.0])


def torch_process(rank, port, seconds, results):
    pin(1 - rank)
    import torch
    import torch.distributed.rpc as rpc

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    rpc.init_rpc(f"task{rank}", rank=rank, world_size=2)
    if rank == 1:
        one = torch.tensor(2.5)
        assert float(rpc.rpc_sync("task0", torch_add, (one,))) == 3.5
        results.put(
            {
                "null step": repeat(lambda: rpc.rpc_sync("task0", torch_add, (one,)), seconds),
                "tiny variable": repeat(lambda: rpc.rpc_sync("task0", torch_variable) + 1, seconds),
            }
        )
    rpc.shutdown()


def torch_rpc(seconds):
    import socket

    import torch
    import torch.multiprocessing as processes

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    context = processes.get_context("spawn")
    results = context.Queue()
    children = [context.Process(target=torch_process, args=(rank, port, seconds, results)) for rank in range(2)]
    for child in children:
        child.start()
    found = results.get(timeout=60 + 4 * seconds)
    for child in children:
        child.join(30)
    return f"torch {torch.__version__}", found


def ray_compiled_graph(seconds):
    import ray
    from ray.dag import InputNode

    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)

    @ray.remote(num_cpus=0)
    class Task:
        def __init__(self):
            pin(1)

        def add(self, value):
            return value + 1

    task = Task.remote()
    assert ray.get(task.add.remote(2.5)) == 3.5
    call = repeat(lambda: ray.get(task.add.remote(2.5)), seconds)
    with InputNode() as entry:
        graph = task.add.bind(entry)
    compiled = graph.experimental_compile()
    pin(0)
    assert ray.get(compiled.execute(2.5)) == 3.5
    found = {"null step": repeat(lambda: ray.get(compiled.execute(2.5)), seconds), "actor call": call}
    compiled.teardown()
    ray.shutdown()
    return f"ray {ray.__version__}", found


if __name__ == "__main__":
    version, figures = {"torch-rpc": torch_rpc, "ray-compiled-graph": ray_compiled_graph}[sys.argv[1]](
        float(sys.argv[2])
    )
    print(json.dumps({"version": version, "figures": figures}), flush=True)
