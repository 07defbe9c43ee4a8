"""The ops that the runtime treats itself, by what it does with them: no other list of them is kept.

The services' passes look for them in graphs, their executors treat the nodes, and the client's control flow asks what an
operation is. Names and groups are those of TensorFlow's graph.cc (Node::GetNodeClassForOp).
"""

from __future__ import annotations

import re

RECV_OPS = frozenset(("_Recv", "_HostRecv"))
SEND_OPS = frozenset(("_Send", "_HostSend"))
#: The attribute of a _Recv whose tensor is alive in every step: nothing that it comes from stands behind a branch or a
#: loop. The master knows the whole graph; TensorFlow does not look at the attribute.
ALIVE_ATTR = "_alive"
#: Two outputs, of which a bool keeps one alive.
SWITCH_OPS = frozenset(("Switch", "RefSwitch"))
#: Any number of outputs, of which a number keeps one alive.
SWITCH_N_OPS = frozenset(("_SwitchN",))
MERGE_OPS = frozenset(("Merge", "RefMerge"))
ENTER_OPS = frozenset(("Enter", "RefEnter"))
EXIT_OPS = frozenset(("Exit", "RefExit"))
NEXT_ITERATION_OPS = frozenset(("NextIteration", "RefNextIteration"))
#: Ops that are alive whatever they wait for.
TRIGGER_OPS = frozenset(("ControlTrigger",))
#: Ops that make outputs dead.
BRANCH_OPS = SWITCH_OPS | SWITCH_N_OPS
#: Ops that make deadness or frames, or end deadness: a part with one of them runs on the dynamic executor.
DYNAMIC_OPS = TRIGGER_OPS | BRANCH_OPS | MERGE_OPS | ENTER_OPS | EXIT_OPS | NEXT_ITERATION_OPS
#: Those that an executor runs itself, with what a loop tests: dead tensors and frames are its own.
FLOW_OPS = (DYNAMIC_OPS - TRIGGER_OPS) | frozenset(("LoopCond",))
#: What moves values between partitions, feeds, fetches and functions.
TRANSFER_OPS = RECV_OPS | SEND_OPS | frozenset(("_Arg", "_Retval"))
#: Ops whose one output is their first input, whatever the types: no kernel, no copy.
ALIAS_OPS = frozenset(("Identity", "StopGradient", "PreventGradient", "RefIdentity", "LoopCond"))
#: Ops that only order others.
ORDER_OPS = frozenset(("NoOp",))
#: Copies between the host's memory and a GPU's, or two GPUs'. A worker puts them into its part; no graph has them.
COPY_OPS = frozenset(("_CopyToDevice", "_BeginCopyToHost", "_CopyToHost"))
#: Many tensors as one, and the tensors out of it: Tenfold's own, put into a graph before it is cut.
BUNDLE_OPS = frozenset(("_Bundle", "_Unbundle"))
#: Ops that give the same value in every step of a session.
CONSTANT_OPS = frozenset(("Const", "VarHandleOp"))
#: Ops that look at nothing but the shapes of their inputs.
METADATA_OPS = frozenset(("Shape", "ShapeN", "Size", "Rank"))
#: Ops that hand out nothing but shapes, counts and positions of what they are given.
_OF_LISTS = ("TensorArraySize", "TensorArraySizeV2", "TensorArraySizeV3", "TensorListLength", "VariableShape")
_POSITIONS = ("ArgMax", "ArgMin", "BroadcastGradientArgs", "ConcatOffset", "Where")
COUNTING_OPS = METADATA_OPS | frozenset((*_OF_LISTS, *_POSITIONS))
#: Ops whose outputs are elements of their first input, whatever the others say.
_PICKING = ("DynamicPartition", "Gather", "GatherNd", "GatherV2", "RandomShuffle", "Slice", "StridedSlice")
PICKING_OPS = frozenset((*_PICKING, "Reshape", "Transpose"))
#: Those of which only the first output is so.
UNIQUE_OPS = frozenset(("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2"))
_TABLES = ("HashTable", "MutableHashTable", "MutableHashTableOfTensors", "MutableDenseHashTable")
_QUEUES = ("FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "RandomShuffleQueue")
_READERS = (
    "FixedLengthRecordReader",
    "IdentityReader",
    "LMDBReader",
    "TFRecordReader",
    "TextLineReader",
    "WholeFileReader",
)
_ACCUMULATORS = ("ConditionalAccumulator", "ResourceConditionalAccumulator", "SparseConditionalAccumulator")
#: Ops that stand for those of several lookups. Their names say the first of them only, and each graph joins its own.
JOINED_OPS = frozenset(("KvResourceGathers", "KvResourceSparseApplies"))
#: Ops that hold a variable, which every session finds by its name; `shape` and `dtype` say how large it is.
VARIABLE_OPS = frozenset(("Variable", "VariableV2", "VarHandleOp"))
#: Ops that hold a table, by a handle or a reference.
TABLE_OPS = frozenset(name + version for name in _TABLES for version in ("", "V2"))
_LOOK_UPS = ("LookupTableFind", "LookupTableSize", "LookupTableExport")
#: Ops that take a handle or a reference of a variable or a table, and read what is behind it.
STATE_READING_OPS = frozenset(
    (
        *("ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableShape"),
        *("VarIsInitializedOp", "IsVariableInitialized"),
        *(name + version for name in _LOOK_UPS for version in ("", "V2")),
    )
)
#: Ops that take a variable or a table and change it are those that begin so.
UPDATE_OPS = re.compile("(Kv)?(Resource)?(Sparse|StridedSlice)?(Apply|Applies|Assign|Scatter|CountUpTo)")
#: Ops that save variables as they are at one moment.
CUT_OPS = frozenset(("SaveV2", "IncrSave"))
#: Other state that every session finds by its name, if it has one: tables, queues, readers and such.
NAMED_STATE_OPS = frozenset(
    (
        *("Barrier", "MutexV2", *_ACCUMULATORS),
        *TABLE_OPS,
        *(name + version for name in (*_QUEUES, *_READERS) for version in ("", "V2")),
    )
)
