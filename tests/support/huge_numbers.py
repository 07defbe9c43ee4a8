"""Kernels meet numbers that ask for too much: `python huge_numbers.py seed tries first op …`, a process of its own.

Each op gets inputs and attributes that it computes from (tests/interop/shape_cases.py), and then one number of a small
input, or of an attribute, is another one: near 0, 2³¹ or 2⁶³, or none. The kernel answers, or says what is wrong by an
error of ours. The process may take so much memory and no more, and `SECONDS` for one call, beyond which the system's
alarm ends it: what was tried is written before it is. Read by tests/kernels/test_huge_numbers.py and fuzz/targets.
"""

from __future__ import annotations

import math
import random
import resource
import signal
import sys
import traceback
from typing import TYPE_CHECKING, Any

import numpy as np
from tests.interop import shape_cases

from support import huge_programs
from tenfold_core import errors, memory_limits, opdefs
from tenfold_core.node_signature import signature
from tenfold_kernels import registry
from tenfold_kernels.resources.state import ResourceManager

if TYPE_CHECKING:
    from collections.abc import Iterator

#: A tensor's bytes, the process's above what it has, and the processor's seconds for one call.
TENSOR, BYTES, SECONDS = 8 << 20, 1 << 30, 8.0
INTEGERS = (
    0, 1, -1, 2, -2, 7, 100, 4097, 1 << 20, (1 << 24) + 1, 1 << 30, (1 << 31) - 1, 1 << 31, -(1 << 31), (1 << 32) - 1,
    1 << 32, 1 << 40, 1 << 53, 1 << 62, (1 << 63) - 1, -(1 << 63), -(1 << 63) + 1,
)  # fmt: skip
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, 1e9, -1e9, float(1 << 31), 1e19, -1e19, 1e38, math.inf, -math.inf, math.nan)
#: Elements of an input that may be sizes, axes, paddings and the like.
_FEW = 8
#: What waits, has an effect outside of its outputs, or belongs to the executors, by parts of names.
LEFT_OUT = (
    "Abort", "Accumulator", "Barrier", "Case", "Dataset", "Enter", "Exit", "File", "For", "If", "Iterator", "MapDefun",
    "Merge", "Partitioned", "PyFunc", "Queue", "Read", "Recv", "RemoteCall", "Restore", "Save", "Send", "Session",
    "Stack", "Stage", "Summary", "Switch", "SymbolicGradient", "Table", "TensorArray", "While", "Writer",
)  # fmt: skip


def names() -> list[str]:
    """The ops that are tried."""
    return [
        name
        for name in opdefs.names()
        if registry.has_kernel(name, "CPU") and not name.startswith("_") and not any(each in name for each in LEFT_OUT)
    ]


class Call:
    """A kernel's node and its inputs."""

    def __init__(self, op: str, attrs: dict[str, Any], inputs: list[Any]) -> None:
        self.op, self.attrs, self.inputs = op, attrs, inputs

    def __repr__(self) -> str:
        shown = [
            f"{each.dtype}{list(each.shape)}" + (f"={each.tolist()}" if each.size < 9 else "") for each in self.inputs
        ]
        return f"{self.op}({', '.join(shown)}) {self.attrs}"

    def __call__(self) -> Any:
        types = signature(opdefs.get(self.op), self.attrs)
        node = registry.KernelNode(
            "n", self.op, self.attrs, types.input_types, types.output_types, "/device:CPU:0", ResourceManager()
        )
        compute = registry.lookup(node, "CPU")(node)
        with registry.quiet():
            return compute(*self.inputs)

    def steered(self) -> Iterator[tuple[str, Any]]:
        """What may be another number: (kind, where)."""
        for place, value in enumerate(self.inputs):
            if value.size <= _FEW and value.dtype.kind in "iuf":
                for at in range(value.size):
                    yield value.dtype.kind, (place, at)
        for attr in opdefs.get(self.op).attrs:
            value = self.attrs.get(attr.name)
            if attr.type == "int":
                yield "attr int", attr.name
            elif attr.type == "float":
                yield "attr float", attr.name
            elif attr.type in ("list(int)", "list(float)") and value:
                for at in range(len(value)):
                    yield f"attr {attr.type[5:-1]}", (attr.name, at)

    def changed(self, kind: str, where: Any, number: Any) -> Call | None:
        """With that number there; None where the type has none such."""
        attrs, inputs = dict(self.attrs), list(self.inputs)
        if not kind.startswith("attr"):
            place, at = where
            value = inputs[place] = inputs[place].copy()
            if value.dtype.kind != "f" and not np.iinfo(value.dtype).min <= number <= np.iinfo(value.dtype).max:
                return None
            value.reshape(-1)[at] = number
        elif isinstance(where, tuple):
            name, at = where
            attrs[name] = [*attrs[name][:at], number, *attrs[name][at + 1 :]]
        else:
            definition = next(attr for attr in opdefs.get(self.op).attrs if attr.name == where)
            if definition.minimum is not None and definition.type == "int" and number < definition.minimum:
                return None
            # how many inputs or outputs there are is another node
            arguments = (*opdefs.get(self.op).inputs, *opdefs.get(self.op).outputs)
            if any(argument.number_attr == where for argument in arguments):
                return None
            attrs[where] = number
        return Call(self.op, attrs, inputs)


def _value(item: Any, chance: random.Random) -> Any:
    """An array for an input, or None for a type that has none."""
    dtype = item.dtype
    if dtype.is_ref_dtype or dtype.name in ("resource", "variant") or dtype.is_carried:
        return None
    if item.value is not None:
        return np.array(item.value).astype(dtype.as_numpy_dtype)
    shape = chance.choice(([], [2], [3], [2, 3], [1, 4, 4, 1])) if item.shape is None else item.shape
    sizes = [chance.choice((1, 2, 3)) if size is None else size for size in shape]
    draw = np.random.default_rng(chance.randrange(1 << 30))
    if dtype.name == "string":
        return np.full(sizes, b"1", object)
    if dtype.is_bool or dtype.is_integer:
        return draw.integers(0, 2, sizes).astype(dtype.as_numpy_dtype)
    return np.asarray(draw.uniform(0.1, 1, sizes)).astype(dtype.as_numpy_dtype)


def good_calls(op: str, chance: random.Random, most: int) -> list[Call]:
    """Calls that give a value, of the program that is there for the op, else of cases drawn for it."""
    if known := huge_programs.recorded(op):
        return [Call(op, attrs, inputs) for attrs, inputs in known[:most]]
    cases = list(shape_cases.cases_of(op))
    chance.shuffle(cases)
    found: list[Call] = []
    for case in cases:
        inputs = [_value(item, chance) for item in case.inputs]
        if any(each is None for each in inputs):
            continue
        call = Call(op, dict(case.attrs), inputs)
        try:
            call()
        except Exception:
            continue
        found.append(call)
        if len(found) == most:
            break
    return found


def calls(op: str, seed: int, most: int) -> list[Call]:
    """`most` calls of an op with one number changed, drawn by the seed; the same each time."""
    chance = random.Random(f"{op} {seed}")
    made: list[Call] = []
    for call in good_calls(op, chance, 3):
        for kind, where in call.steered():
            for number in FLOATS if kind in ("f", "attr float") else INTEGERS:
                changed = call.changed(kind, where, number)
                if changed is not None:
                    made.append(changed)
    return made if len(made) <= most else chance.sample(made, most)


def attempt(call: Call) -> str:
    """What is wrong with the answer; "" for nothing."""
    try:
        call()
    except errors.InternalError as error:
        return f"InternalError: {error.message}"
    except errors.OpError:
        return ""
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        return f"{type(error).__name__}: {error} at {frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno}"
    return ""


def bound() -> None:
    """Lets this process have `BYTES` more than it has now."""
    memory_limits.limit_tensor(TENSOR)
    with open("/proc/self/status") as status:
        taken = next(int(line.split()[1]) << 10 for line in status if line.startswith("VmData:"))
    resource.setrlimit(resource.RLIMIT_DATA, (taken + BYTES, resource.RLIM_INFINITY))


def run(seed: int, most: int, first: int, ops: list[str]) -> None:
    """Writes "op number" before each call, "! …" for each fault and "." at the end; begins with number `first`."""
    for op in ops:
        made = calls(op, seed, most)
        for number, call in enumerate(made):
            if number < first:
                continue
            print(f"{op} {number} {call!r}"[:1000].replace("\n", " "), flush=True)
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            fault = attempt(call)
            left, _ = signal.setitimer(signal.ITIMER_PROF, 0)
            if not fault and SECONDS - left > SECONDS / 2:
                fault = f"it took {SECONDS - left:.1f} s"
            if fault:
                print(f"! {fault}"[:500].replace("\n", " "), flush=True)
        first = 0
    print(".", flush=True)


if __name__ == "__main__":
    for each in names():
        registry.has_kernel(each, "CPU")
    bound()
    run(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
