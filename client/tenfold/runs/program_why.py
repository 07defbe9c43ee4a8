"""What a program of a run answers when the control service asks why nothing goes on (docs/why.md).

The order comes with the answer to a report; `answer` collects on the reports' thread, which runs whatever the program's
own threads wait for, and program_report.py sends it. Nothing is imported that the program does not use already.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
from typing import TYPE_CHECKING, Any

from tenfold_core import errors

if TYPE_CHECKING:
    from tenfold.control import ControlClient
    from tenfold.runs.program_report import Place
    from tenfold_protos.why_pb2 import TaskAnswer

log = logging.getLogger(__name__)

#: Seconds that the upload may take: later nobody waits for it.
_UPLOAD_S = 2.0
#: Calls of Session.run, and names of each, that are told.
_STEPS, _NAMES = 100, 10


def send(client: ControlClient, place: Place, asked: str) -> None:
    """Sends the answer to the question `asked`. Blocks for a moment; never raises an OpError."""
    from tenfold_core.device import task_name

    found = answer(task_name(place.job, place.index))
    try:
        client.answer_why(place.run, asked, place.job, place.index, found, timeout=_UPLOAD_S)
    except errors.OpError as error:
        log.info("the control service does not take the answer to %s: %s", asked, error)


def answer(task: str) -> TaskAnswer:
    """What this process, which is `task`, says: its server's waits, its steps, its threads. Any thread; some ms."""
    from tenfold_core.thread_stacks import thread_stacks
    from tenfold_protos.why_pb2 import TaskAnswer

    found = TaskAnswer()
    inprocess = sys.modules.get("tenfold.session.inprocess")
    for server in inprocess.running() if inprocess is not None else ():
        if server.task == task or not found.task:
            try:
                found = server.why()
            except errors.OpError:
                continue  # it has not started
            if server.task == task:
                break
    found.task, found.host, found.pid = task, socket.gethostname(), os.getpid()
    notices = sys.modules.get("tenfold.session.step_notices")
    for names, seconds in notices.notices.under_way()[:_STEPS] if notices is not None else ():
        found.client_step.add(name=names[:_NAMES], seconds=seconds)
    found.thread.extend(thread_stacks(_node_of()))
    return found


def _node_of() -> Any:
    """What finds the node that a frame computes; without a server in this process nothing computes."""
    services = sys.modules.get("tenfold_services.why")
    return (lambda frame, inner: None) if services is None else services.computed_node
