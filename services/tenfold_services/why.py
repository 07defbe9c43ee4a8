"""What a task says when somebody asks why nothing goes on: why.proto's TaskAnswer, put together from what is known.

Asked by rpc/examine_service.py for the control service, and by client/tenfold/runs/program_why.py, which adds what the
program knows. Nothing is noted for it beforehand; control_api/tenfold_control_api/why draws the conclusion.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

from tenfold_compiler.write.codegen import FILENAME
from tenfold_compiler.write.generated_code import GeneratedCode
from tenfold_core.thread_stacks import thread_stacks
from tenfold_protos.why_pb2 import OpenSession, RunningStep, StepWait, TaskAnswer

from .worker.dynamic_executor import DynamicExecution
from .worker.waits import resource_uses, step_waits

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from .master.master import Master
    from .worker.waits import StepRun
    from .worker.worker import Worker

#: Waits, steps, uses and sessions that one answer holds.
_MOST = 500

_CALL, _ADVANCE = GeneratedCode.call.__code__, DynamicExecution._advance.__code__


def task_answer(task: str, worker: Worker, master: Master, runs: Sequence[StepRun], stacks: bool) -> TaskAnswer:
    """What the server of `task` says, whose steps are `runs`; with the threads of its process where `stacks` are
    wanted. Any thread; takes some 100 µs, and a millisecond for each 10,000 nodes of registered graphs where steps wait
    for resources."""
    found = TaskAnswer(task=task, host=socket.gethostname(), pid=os.getpid())
    running, waits = step_waits(runs)
    known = {each.step for each in running}
    for session in master.open_sessions:
        found.session.append(OpenSession(handle=session.handle, owner=session.owner, own=not session.client))
        for step, parts in session.parts_waited_for():
            about: dict[str, Any] = {"step": step, "session": session.handle, "master": task}
            if step not in known:
                running.append(RunningStep(**about, computes=False))
            waits += [StepWait(**about, kind="part", sender=part) for part in parts if part != task]
    wanted = {each.resource for each in waits if each.resource}
    # a resource lies where its waiters wait
    uses = resource_uses(wanted, worker.programs(), runs) if wanted else []
    found.cut = max(len(waits), len(running), len(uses), len(found.session)) > _MOST
    found.wait.extend(waits[:_MOST])
    found.running.extend(running[:_MOST])
    found.use.extend(uses[:_MOST])
    del found.session[_MOST:]
    if stacks:
        found.thread.extend(thread_stacks(computed_node))
    return found


def computed_node(frame: FrameType, inner: FrameType | None) -> tuple[str, str] | None:
    """The name and the op of the node that the runtime's frame `frame` computes; `inner` is the one that it called."""
    if inner is None:
        return None
    if frame.f_code is _ADVANCE:
        token = frame.f_locals.get("token")
        return None if token is None else (token.node.name, token.node.op)
    if inner.f_code.co_filename != FILENAME:
        return None
    outer: FrameType | None = frame
    while outer is not None and outer.f_code is not _CALL:
        outer = outer.f_back
    code = None if outer is None else outer.f_locals.get("self")
    if not isinstance(code, GeneratedCode) or inner.f_code not in code.codes:
        return None
    index = code.node_at_line.get(inner.f_lineno or 0)
    return None if index is None else (code.nodes[index].name, code.nodes[index].op)
