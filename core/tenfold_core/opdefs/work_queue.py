"""Op definitions of DeepRec: work queues, which spread the parts of an input over workers of different speeds.

A row each: name, inputs, outputs, attributes (DeepRec's core/ops/work_queue_ops.cc is the source of every name, order and
default), flags, and the function that infers static shapes. See `tenfold_core/op_def.py` for the notation. The works that
are saved are a vector here, which DeepRec's shape function calls a scalar.
"""

from __future__ import annotations

from tenfold_core.opdefs import shape_fns_resources as r
from tenfold_core.opdefs.shape_fns import always
from tenfold_core.opdefs.table import family

op = family("work_queue")

op("WorkQueueClose", "handle: resource", "", stateful=True)
op("WorkQueueCreate", "handle: resource", "", "shared_name: string", stateful=True)
op(
    "WorkQueueHandleOp",
    "",
    "resource: resource",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
    shape=r.scalar,
)
op("WorkQueueIsInitialized", "handle: resource", "is_initialized: bool", stateful=True, shape=r.scalar)
op("WorkQueuePut", "handle: resource, works: string", "", stateful=True)
op("WorkQueueRestore", "handle: resource, works: string", "", stateful=True)
op("WorkQueueSave", "handle: resource", "works: string", stateful=True, shape=always([None]))
op("WorkQueueSize", "handle: resource", "size: int64", stateful=True, shape=r.scalar)
op(
    "WorkQueueTake",
    "handle: resource",
    "work: string",
    "num_clients: int >= 1 = 1",
    stateful=True,
    shape=r.scalar,
)
