"""What runs of parts wait for, as their drivers know it: in words for a client whose step takes long, in facts for why.

Read on request, from any thread, without a lock: nothing is noted for it while steps run. The runs are
graph_manager.py's, and on callers' threads those of services: master/caller_steps.py; ../why.py adds the rest.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenfold_core.rendezvous_key import parse_key
from tenfold_kernels.resources.waiting import ROOM
from tenfold_protos.why_pb2 import ResourceUse, RunningStep, StepWait

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from tenfold_compiler.part.part_graph import PartNode
    from tenfold_kernels.resources.waiting import Waiting

    from .loaded_program import LoadedProgram
    from .part_run import PartRun

#: Waits that one answer names at most, and characters of each.
_MOST, _LENGTH = 20, 400
#: How a line about a tensor begins.
TENSOR = "a tensor of "

#: Ops that put something in and take something out, and what is put before and behind the resource's name.
_USES = (
    (re.compile(r"QueueEnqueue|\w*AccumulatorApplyGradient$|Stage$"), True, "", ""),
    (re.compile(r"Queue|ReaderRead|\w*AccumulatorTakeGradient$|Unstage$"), False, "", ""),
    (re.compile(r"BarrierInsertMany$"), True, "", "_queue"),
    (re.compile(r"BarrierTakeMany$"), False, "", "_queue"),
    (re.compile(r"MapStage$"), True, "unordered map ", ""),
    (re.compile(r"MapUnstage"), False, "unordered map ", ""),
    (re.compile(r"OrderedMapStage$"), True, "ordered map ", ""),
    (re.compile(r"OrderedMapUnstage"), False, "ordered map ", ""),
)
#: Ops of queues that move nothing, and those that make one.
_NO_USE = re.compile(r"Queue(Close|Size|IsClosed)|\w*Queue(V2)?$")
#: What stands before the name of a resource that its node keeps for itself.
_PRIVATE = re.compile(r"^_\d+_")
#: Nodes that one answer looks at.
_NODES = 200_000


@dataclass(frozen=True, slots=True)
class StepRun:
    """A step under way here, and our part of it."""

    #: The task that it runs as: the worker's name in the cluster of its session.
    task: str
    #: None for a step that has no part here, but whose caller is.
    run: PartRun | None
    step: int
    session: str
    #: The task whose master runs the step.
    master: str
    #: When it began here (monotonic seconds); 0 where that is not known.
    began: float = 0.0
    #: Tasks whose parts of the step have not answered, as far as this run waits for them itself.
    parts: tuple[str, ...] = ()

    def waitings(self) -> dict[Waiting, PartNode]:
        """As PartRun.waitings."""
        return {} if self.run is None else self.run.waitings()

    def missing(self) -> list[tuple[str, str]]:
        """Tensors of other tasks that have not come: who sends them, and their names."""
        keys = map(parse_key, [] if self.run is None else self.run.missing())
        return [(key.send_task, key.tensor_name) for key in keys if key.send_task != self.task]


def wait_texts(runs: Iterable[StepRun]) -> list[str]:
    """What the runs wait for, in words, each once; for a client whose step takes long. Any thread.

    Kernels that wait: a dequeue, a gradient that has not come, a lock. Tensors of other tasks only if no kernel does:
    their makers say why they have not come. What computes, or waits for room in a queue, is not in trouble.
    """
    kernels: dict[str, None] = {}
    tensors: dict[str, None] = {}
    for each in runs:
        for waiting, node in each.waitings().items():
            lack = waiting.lack() if waiting.lack is not None else None
            if lack is not None and lack.kind != ROOM:
                holder = node.node_def.input[0].partition(":")[0] if node.node_def.input else ""
                of = f" of '{holder}'" if holder else ""
                kernels[f"'{node.name}' ({node.op}{of}) at {each.task}: {lack.text}"[:_LENGTH]] = None
        for sender, name in each.missing():
            tensors[f"{TENSOR}{sender} ({name}) at {each.task}"[:_LENGTH]] = None
    return list(kernels or tensors)[:_MOST]


def step_waits(runs: Collection[StepRun]) -> tuple[list[RunningStep], list[StepWait]]:
    """The steps that have a part among the `runs`, and what they wait for."""
    running: list[RunningStep] = []
    found: list[StepWait] = []
    now = time.monotonic()
    for each in runs:
        if each.run is not None and each.run.ended:
            continue
        about: dict[str, Any] = {"step": each.step, "session": each.session, "master": each.master}
        seconds = now - each.began if each.began else 0.0
        before = len(found)
        for waiting, node in each.waitings().items():
            wait = StepWait(**about, node=node.name[:_LENGTH], op=node.op, seconds=now - waiting.since)
            wait.MergeFrom(_of_kernel(waiting, runs))
            found.append(wait)
        for sender, name in each.missing():
            found.append(StepWait(**about, kind="tensor", sender=sender, tensor=name[:_LENGTH], seconds=seconds))
        for sender in each.parts:
            found.append(StepWait(**about, kind="part", sender=sender, seconds=seconds))
        computes = all(wait.kind == "kernel" for wait in found[before:])
        running.append(RunningStep(**about, seconds=seconds, computes=computes))
    return running, found


def _of_kernel(waiting: Waiting, runs: Iterable[StepRun]) -> StepWait:
    """What a kernel's result has not come for."""
    lack = waiting.lack() if waiting.lack is not None else None
    if lack is None:
        return StepWait(kind="kernel")
    holder = next(
        (each.step for each in runs if lack.holder and each.run is not None and each.run.holds(lack.holder)), 0
    )
    return StepWait(
        kind=lack.kind,
        resource=_PRIVATE.sub("", lack.resource)[:_LENGTH],
        have=lack.have,
        need=lack.need,
        holder=holder,
    )


def resource_uses(
    wanted: Collection[str],
    programs: Iterable[tuple[str, str, LoadedProgram]],
    runs: Collection[StepRun],
) -> list[ResourceUse]:
    """The operations of the `programs`, each with its session and the task of its master, that give to one of the
    resources `wanted` or take from it; and in which of the `runs` they are."""
    found: dict[tuple[str, str, str], ResourceUse] = {}
    left = _NODES
    for session, master, program in programs:
        nodes = program.compiled.part.nodes
        left -= len(nodes)
        if left < 0:
            break
        live = [(each.step, each.run) for each in runs if each.run is not None]
        steps = [step for step, run in live if run.policy is program.policy and not run.ended]
        for node in nodes:
            use = _use(node, nodes)
            if use is None or use[0] not in wanted:
                continue
            resource, gives = use
            key = (resource, node.name, session)
            if key not in found:
                found[key] = ResourceUse(
                    resource=resource[:_LENGTH],
                    node=node.name[:_LENGTH],
                    op=node.op,
                    gives=gives,
                    session=session,
                    master=master,
                )
            found[key].step.extend(steps)
    return list(found.values())


def _use(node: PartNode, nodes: Sequence[PartNode]) -> tuple[str, bool] | None:
    """The resource that a node gives to (True) or takes from; None for one that does neither."""
    if _NO_USE.match(node.op):
        return None
    for op, gives, before, behind in _USES:
        if op.match(node.op):
            holder = node
            if node.inputs:
                # a reader's queue is its second input
                index = node.inputs[1 if node.op.startswith("Reader") and len(node.inputs) > 1 else 0][0]
                holder = nodes[index] if "tage" not in node.op else node
            name = holder.attrs.get("shared_name") or b""
            text = name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
            return f"{before}{text or holder.name}{behind}", gives
    return None
