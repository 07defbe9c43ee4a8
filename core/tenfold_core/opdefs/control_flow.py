"""Op definitions: branches, loops, function calls and ordering.

A row each: name, inputs, outputs, attributes (TensorFlow's registry at 2.21 is the source of every name, order and
default), flags, and the function that infers static shapes. See `tenfold_core/op_def.py` for the notation.
"""

from __future__ import annotations

from tenfold_core.opdefs import shape_fns as s
from tenfold_core.opdefs import shape_fns_resources as r
from tenfold_core.opdefs.table import family

op = family("control_flow")

op("Abort", "", "", "error_msg: string = ''", "exit_without_error: bool = false")
op(
    "Assert",
    "condition: bool, data: T",
    "",
    "T: list(type) >= 1",
    "summarize: int = 3",
    stateful=True,
    shape=s.no_outputs,
)
op(
    "Case",
    "branch_index: int32, input: Tin",
    "output: Tout",
    "Tin: list(type) >= 0",
    "Tout: list(type) >= 0",
    "branches: list(func) >= 1",
    "output_shapes: list(shape) = []",
    stateful=True,
    shape=r.output_shapes,
    sized_by="*",
)
op("ControlTrigger", "", "", shape=s.no_outputs)
op(
    "Enter",
    "data: T",
    "output: T",
    "T: type",
    "frame_name: string",
    "is_constant: bool = false",
    "parallel_iterations: int = 10",
    shape=r.enter,
)
op("Exit", "data: T", "output: T", "T: type", shape=s.unchanged)
op(
    "For",
    "start: int32, limit: int32, delta: int32, input: T",
    "output: T",
    "T: list(type) >= 0",
    "body: func",
    sized_by="*",
)
op(
    "If",
    "cond: Tcond, input: Tin",
    "output: Tout",
    "Tcond: type",
    "Tin: list(type) >= 0",
    "Tout: list(type) >= 0",
    "then_branch: func",
    "else_branch: func",
    "output_shapes: list(shape) = []",
    stateful=True,
    shape=r.output_shapes,
    sized_by="*",
)
op("LoopCond", "input: bool", "output: bool", shape=r.scalar)
op("Merge", "inputs: N * T", "output: T, value_index: int32", "T: type", "N: int >= 1", shape=r.merge)
op("NextIteration", "data: T", "output: T", "T: type", shape=s.unchanged)
op("NoOp", "", "", shape=s.no_outputs)
op("Timestamp", "", "ts: double", stateful=True, shape=s.scalar)
op(
    "PartitionedCall",
    "args: Tin",
    "output: Tout",
    "Tin: list(type) >= 0",
    "Tout: list(type) >= 0",
    "f: func",
    "config: string = ''",
    "config_proto: string = ''",
    "executor_type: string = ''",
    sized_by="*",
)
op(
    "Print",
    "input: T, data: U",
    "output: T",
    "T: type",
    "U: list(type) >= 0",
    "message: string = ''",
    "first_n: int = -1",
    "summarize: int = 3",
    stateful=True,
    shape=s.unchanged,
)
op(
    "PrintV2",
    "input: string",
    "",
    "output_stream: string = 'stderr'",
    "end: string = '\\n'",
    stateful=True,
    shape=s.no_outputs,
)
op(
    "RefEnter",
    "data: Ref(T)",
    "output: Ref(T)",
    "T: type",
    "frame_name: string",
    "is_constant: bool = false",
    "parallel_iterations: int = 10",
    shape=s.unchanged,
)
op("RefExit", "data: Ref(T)", "output: Ref(T)", "T: type", shape=s.unchanged)
op("RefMerge", "inputs: Ref(N * T)", "output: Ref(T), value_index: int32", "T: type", "N: int >= 1", shape=r.merge)
op("RefNextIteration", "data: Ref(T)", "output: Ref(T)", "T: type", shape=s.unchanged)
op("RefSelect", "index: int32, inputs: Ref(N * T)", "output: Ref(T)", "T: type", "N: int >= 1", shape=r.ref_select)
op(
    "RefSwitch",
    "data: Ref(T), pred: bool",
    "output_false: Ref(T), output_true: Ref(T)",
    "T: type",
    allows_uninitialized_input=True,
    shape=r.switch,
)
op(
    "RemoteCall",
    "target: string, args: Tin",
    "output: Tout",
    "Tin: list(type) >= 1",
    "Tout: list(type) >= 1",
    "f: func",
    stateful=True,
    sized_by="*",
)
op(
    "StatefulPartitionedCall",
    "args: Tin",
    "output: Tout",
    "Tin: list(type) >= 0",
    "Tout: list(type) >= 0",
    "f: func",
    "config: string = ''",
    "config_proto: string = ''",
    "executor_type: string = ''",
    stateful=True,
    distributed_communication=True,
    sized_by="*",
)
op(
    "StatelessCase",
    "branch_index: int32, input: Tin",
    "output: Tout",
    "Tin: list(type) >= 0",
    "Tout: list(type) >= 0",
    "branches: list(func) >= 1",
    "output_shapes: list(shape) = []",
    shape=r.output_shapes,
    sized_by="*",
)
op(
    "StatelessIf",
    "cond: Tcond, input: Tin",
    "output: Tout",
    "Tcond: type",
    "Tin: list(type) >= 0",
    "Tout: list(type) >= 0",
    "then_branch: func",
    "else_branch: func",
    "output_shapes: list(shape) = []",
    shape=r.output_shapes,
    sized_by="*",
)
op(
    "StatelessWhile",
    "input: T",
    "output: T",
    "T: list(type) >= 0",
    "cond: func",
    "body: func",
    "output_shapes: list(shape) = []",
    "parallel_iterations: int = 10",
    shape=r.loop,
    sized_by="*",
)
op("Switch", "data: T, pred: bool", "output_false: T, output_true: T", "T: type", shape=r.switch)
op(
    "SymbolicGradient",
    "input: Tin",
    "output: Tout",
    "Tin: list(type) >= 1",
    "Tout: list(type) >= 1",
    "f: func",
    shape=r.inputs_of_gradient,
    sized_by="*",
)
op("ToBool", "input: T", "output: bool", "T: type", shape=s.scalar)
op(
    "While",
    "input: T",
    "output: T",
    "T: list(type) >= 0",
    "cond: func",
    "body: func",
    "output_shapes: list(shape) = []",
    "parallel_iterations: int = 10",
    stateful=True,
    shape=r.loop,
    sized_by="*",
)
op(
    "_SwitchN",
    "data: T, output_index: int32",
    "outputs: num_outs * T",
    "num_outs: int >= 1",
    "T: type",
    shape=r.branches,
)
