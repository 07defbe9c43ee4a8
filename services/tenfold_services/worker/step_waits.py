"""What steps wait for now, in words: told to a client whose step takes long (rpc/examine_service.py, server.py).

Only what waits for others is told, and not what computes: a dequeue, a gradient that has not come, a lock, a tensor of
another task. A step that waits for room in a queue is not in trouble: its consumer is at work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core.rendezvous_key import parse_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .part_run import PartRun

#: Waits that one answer tells at most, and characters of each.
MOST, _LENGTH = 20, 400
#: How a line about a tensor begins.
TENSOR = "a tensor of "


def wait_texts(task: str, runs: Iterable[PartRun]) -> list[str]:
    """What the runs on `task` wait for, each once: kernels first. Tensors only if nothing else keeps the runs waiting:
    whoever makes them tells why he has not. Any thread."""
    kernels: dict[str, None] = {}
    tensors: dict[str, None] = {}
    for run in runs:
        nodes, keys = run.waits()
        for node, waiting in nodes:
            why = waiting.why() if waiting.why is not None else ""
            if why:
                holder = node.node_def.input[0].partition(":")[0] if node.node_def.input else ""
                of = f" of '{holder}'" if holder else ""
                kernels[f"'{node.name}' ({node.op}{of}) at {task}: {why}"[:_LENGTH]] = None
        for key in keys:
            parsed = parse_key(key)
            sender = parsed.send_device.partition("/device:")[0]
            if sender != task:
                tensors[f"{TENSOR}{sender} ({parsed.tensor_name}) at {task}"[:_LENGTH]] = None
    return list(kernels or tensors)[:MOST]
