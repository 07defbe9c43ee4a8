"""A run of elementwise ops, with reductions at its ends, as one compiled function.

    call(a, b, s):                      a, b of one shape, r a row of it, s a scalar
        for i in range(n):              one pass; intermediate values live in registers
            t0 = a[i] + s
            out[i] = t0 * b[i]

`fused` takes a FusedRun and gives a function of arrays that behaves as its nodes run one after the other: when the
arrays are not what it was compiled for (another rank, strided, shapes that differ), it calls `fallback`, the nodes
themselves. Large arrays are cut into parts for several threads (shares.py). Blocks while it compiles: 0.3 s for a short
run, 0.7 s for 400 ops, so that it belongs in a background thread (compiler.py). The compiled code is kept on disk
(cache.py). Numba is imported here on use only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from . import expressions
from .expressions import cast
from .shares import Shares

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_kernels.fusion.cache import FusionCache

#: What an array is to the run's loop: one element a run, one an iteration, one a column (`row`), one a row (`column`);
#: or the sizes that the loop's arrays must have. What stands aside is the fallback's alone.
Role: TypeAlias = Literal["scalar", "full", "row", "column", "shape", "aside"]
#: Where an operand comes from: an input, an earlier op, or a constant, by number.
Source: TypeAlias = tuple[Literal["input", "op", "constant"], int]


@dataclass(frozen=True, slots=True)
class FusedInput:
    dtype: np.dtype[Any]
    role: Role


@dataclass(frozen=True, slots=True)
class FusedOp:
    """One node. `reduce` says what becomes of its loop: an element each, or a sum over all elements or all rows."""

    op: str
    attrs: tuple[tuple[str, Any], ...]
    sources: tuple[Source, ...]
    dtype: np.dtype[Any]
    reduce: Literal["", "all", "rows"] = ""


@dataclass(frozen=True, slots=True)
class FusedRun:
    """What is compiled: ops in topological order over inputs of one shape of `rank`; rank 0 is a run of scalars."""

    rank: int
    inputs: tuple[FusedInput, ...]
    ops: tuple[FusedOp, ...]
    #: (value, type) of the scalars that are known beforehand.
    constants: tuple[tuple[Any, np.dtype[Any]], ...]
    #: The ops whose values are wanted outside, in order.
    outputs: tuple[int, ...]


#: Ops that end a run by reducing it, and the expression they add up.
REDUCTIONS = frozenset(("Sum", "Mean", "L2Loss", "BiasAddGrad"))


def source_and_signature(run: FusedRun) -> tuple[str, str]:
    """What FusionCache.function compiles for the run."""
    return write_source(run), _signature(run)


def fused(run: FusedRun, fallback: Callable[..., Any], cache: FusionCache) -> Callable[..., Any]:
    """The compiled run as a kernel: inputs by position → one array, or a tuple of them. Blocks while it compiles."""
    native = cache.function(*source_and_signature(run))
    namespace: dict[str, Any] = {"native": native, "fallback": fallback, "empty": np.empty, "odd": []}
    namespace.update((f"T{i}", run.ops[i].dtype) for i in run.outputs)
    namespace["contiguous"] = np.ascontiguousarray
    if is_cut(run):
        roles = [run.inputs[i].role for i in _read(run)]
        namespace["shared"] = Shares(native, roles, len(run.ops), len(run.outputs))
    text = _wrapper(run, "call") + _wrapper(run, "of_any_layout")
    exec(compile(text, "<tenfold fused call>", "exec", dont_inherit=True), namespace)
    call: Callable[..., Any] = namespace["call"]
    return call


def is_cut(run: FusedRun) -> bool:
    """Whether the run's arrays have rows that do not depend on each other."""
    roles = [given.role for given in run.inputs]
    by_row = "row" in roles or "column" in roles
    return run.rank > by_row and "shape" not in roles and not any(op.reduce for op in run.ops)


def write_source(run: FusedRun) -> str:
    """The text of `run(…)` → True when the arrays do not fit: a function of Numba's subset of Python."""
    return _ScalarWriter(run).text() if run.rank == 0 else _LoopWriter(run).text()


class _Writer:
    """What both kinds of runs share: names of operands and expressions."""

    def __init__(self, run: FusedRun) -> None:
        self.run = run
        self.lines: list[str] = []

    def operand(self, source: Source) -> str:
        kind, number = source
        if kind == "constant":
            return f"k{number}"
        return f"t{number}" if kind == "op" else self.input(number)

    def input(self, number: int) -> str:
        raise NotImplementedError

    def dtype_of(self, source: Source) -> np.dtype[Any]:
        kind, number = source
        if kind == "constant":
            return self.run.constants[number][1]
        return self.run.ops[number].dtype if kind == "op" else self.run.inputs[number].dtype

    def expression(self, op: FusedOp) -> str:
        types = [self.dtype_of(source) for source in op.sources]
        return expressions.write(op.op, dict(op.attrs), [self.operand(s) for s in op.sources], types, op.dtype)

    def head(self) -> None:
        arguments = [f"a{i}" for i in _read(self.run)] + [f"o{i}" for i in _out_arguments(self.run)]
        self.lines.append(f"def run({', '.join(arguments)}):")
        self.lines.extend(f"    k{i} = {expressions.literal(*c)}" for i, c in enumerate(self.run.constants))


class _ScalarWriter(_Writer):
    """Scalars only: straight code. Inputs come as numbers, outputs of one type go to one vector."""

    def input(self, number: int) -> str:
        return f"x{number}"

    def text(self) -> str:
        self.head()
        for number, given in enumerate(self.run.inputs):
            self.lines.append(f"    x{number} = {cast(f'a{number}', given.dtype)}")
        for number, op in enumerate(self.run.ops):
            self.lines.append(f"    t{number} = {self.expression(op)}")
        for output, (argument, place) in _scalar_places(self.run).items():
            self.lines.append(f"    o{argument}[{place}] = t{output}")
        return "\n".join([*self.lines, "    return False", ""])


#: A flat loop is cut after this many ops (twice as many at the latest), where few values are alive: in a longer one the
#: processor waits for each result, because it cannot see the next elements' work, and LLVM needs more than linear time.
_LOOP_OPS = 64
_LIVE_AT_CUT = 4


class _LoopWriter(_Writer):
    """Arrays: loops over all elements, or two nested ones over rows and columns where there are rows."""

    def __init__(self, run: FusedRun) -> None:
        super().__init__(run)
        #: What the outer of two loops begins with.
        self.of_row: list[str] = []
        #: Op → its loop, and the loop that is being written.
        self.loop_of = [0] * len(run.ops)
        self.now = 0
        self.by_row = any(given.role in ("row", "column") for given in run.inputs) or any(
            op.reduce == "rows" for op in run.ops
        )

    def input(self, number: int) -> str:
        role = self.run.inputs[number].role
        return f"x{number}" if role in ("scalar", "column") else f"f{number}[{'c' if self.by_row else 'i'}]"

    def operand(self, source: Source) -> str:
        kind, number = source
        if kind == "op" and self.loop_of[number] != self.now:
            return f"m{number}[i]"
        return super().operand(source)

    def _cut(self) -> dict[int, list[int]]:
        """Where a new loop begins (op → the earlier ops whose values it or later ones use)."""
        ops, begin = self.run.ops, 0
        cuts: dict[int, list[int]] = {}
        if self.by_row:
            return {}
        last_use = [0] * len(ops)
        for number, op in enumerate(ops):
            for kind, source in op.sources:
                if kind == "op":
                    last_use[source] = number
        while len(ops) - begin > 2 * _LOOP_OPS:
            best: tuple[int, int, list[int]] | None = None
            for at in range(begin + _LOOP_OPS, begin + 2 * _LOOP_OPS):
                alive = [n for n in range(at) if last_use[n] >= at]
                if len(alive) <= _LIVE_AT_CUT and (best is None or len(alive) < best[0]):
                    best = len(alive), at, alive
            if best is None:
                return cuts
            begin = best[1]
            cuts[begin] = best[2]
        return cuts

    def text(self) -> str:
        run = self.run
        self.head()
        full = [i for i, given in enumerate(run.inputs) if given.role == "full"]
        model = f"a{full[0]}"
        for i in full[1:]:
            self.lines.append(f"    if a{i}.shape != {model}.shape: return True")
        self.lines.append(f"    n = {model}.size")
        if self.by_row:
            self.lines.append(f"    columns = {model}.shape[{run.rank - 1}]")
            self.lines.append("    if columns == 0: return True")
            self.lines.append("    rows = n // columns")
        self.lines.extend(
            f"    if a{i}.shape[0] != columns: return True" for i, g in enumerate(run.inputs) if g.role == "row"
        )
        for i, given in enumerate(run.inputs):
            if given.role == "shape":
                sizes = [f"a{i}[{d}] != {model}.shape[{d}]" for d in range(run.rank)]
                self.lines.append(f"    if a{i}.shape[0] != {run.rank} or {' or '.join(sizes)}: return True")
            if given.role == "column":
                sizes = [f"a{i}.shape[{d}] != {model}.shape[{d}]" for d in range(run.rank - 1)]
                self.lines.append(f"    if {' or '.join(sizes)} or a{i}.shape[{run.rank - 1}] != 1: return True")
        if any(op.reduce for op in run.ops):
            # what a sum of nothing is, the kernels know
            self.lines.append("    if n == 0: return True")
        for i, given in enumerate(run.inputs):
            if given.role == "scalar":
                self.lines.append(f"    x{i} = {cast(f'a{i}', given.dtype)}")
            elif given.role == "full":
                self._flatten(f"f{i}", f"a{i}")
            elif given.role == "column":
                self.lines.append(f"    f{i} = a{i}.reshape(rows)")
                self.of_row.append(f"        x{i} = f{i}[r]")
            elif given.role == "row":
                self.lines.append(f"    f{i} = a{i}")
        for i in run.outputs:
            if not run.ops[i].reduce:
                self._flatten(f"g{i}", f"o{i}")
            elif run.ops[i].reduce == "rows":
                self.lines.append(f"    o{i}[:] = 0")
        for i, op in enumerate(run.ops):
            if op.reduce == "all":
                self.lines.append(f"    s{i} = {expressions.literal(0, op.dtype)}")
        self._loop()
        self._finish()
        return "\n".join([*self.lines, "    return False", ""])

    def _flatten(self, name: str, array: str) -> None:
        """Names a view of an array as the loop wants it: flat, or by rows, of which the loop takes one at a time."""
        if self.by_row:
            self.lines.append(f"    {name}_rows = {array}.reshape((rows, columns))")
            self.of_row.append(f"        {name} = {name}_rows[r]")
        else:
            self.lines.append(f"    {name} = {array}.reshape(n)")

    def _loop(self) -> None:
        pad = "        "
        if self.by_row:
            self.lines += ["    for r in range(rows):", *self.of_row, "        for c in range(columns):"]
            pad = "            "
        cuts = self._cut()
        kept = {number for alive in cuts.values() for number in alive}
        for number in sorted(kept):
            self.lines.append(f"    m{number} = np.empty(n, np.{_numpy_name(self.run.ops[number].dtype)})")
        if not self.by_row:
            self.lines.append("    for i in range(n):")
        for number, op in enumerate(self.run.ops):
            if number in cuts:
                self.now += 1
                self.lines.append("    for i in range(n):")
            self.loop_of[number] = self.now
            if op.reduce:
                value = self.operand(op.sources[0])
                if op.op == "L2Loss":
                    value = f"{value} * {value}"
                if op.reduce == "all":
                    self.lines.append(f"{pad}s{number} = add_any_order(s{number}, {value})")
                else:
                    self.lines.append(f"{pad}o{number}[c] += {value}")
                continue
            self.lines.append(f"{pad}t{number} = {self.expression(op)}")
            if number in kept:
                self.lines.append(f"{pad}m{number}[i] = t{number}")
            if number in self.run.outputs:
                self.lines.append(f"{pad}g{number}[{'c' if self.by_row else 'i'}] = t{number}")

    def _finish(self) -> None:
        for number, op in enumerate(self.run.ops):
            if op.reduce != "all":
                continue
            total = f"s{number}"
            if op.op == "Mean":
                total = f"{total} / np.{op.dtype.name}(n)"
            elif op.op == "L2Loss":
                total = f"{total} / {expressions.literal(2, op.dtype)}"
            self.lines.append(f"    o{number}[0] = {total}")


def _numpy_name(dtype: np.dtype[Any]) -> str:
    return "bool_" if dtype.kind == "b" else dtype.name


def _scalar_places(run: FusedRun) -> dict[int, tuple[int, int]]:
    """Output op → (its vector, by the number of that vector's first op, and the place in it)."""
    vectors: dict[np.dtype[Any], list[int]] = {}
    for output in run.outputs:
        vectors.setdefault(run.ops[output].dtype, []).append(output)
    return {output: (group[0], place) for group in vectors.values() for place, output in enumerate(group)}


def _out_arguments(run: FusedRun) -> Sequence[int]:
    """The numbers of the output arguments."""
    if run.rank:
        return run.outputs
    return sorted({argument for argument, _ in _scalar_places(run).values()})


def _read(run: FusedRun) -> list[int]:
    """The numbers of the inputs that the compiled code gets."""
    return [i for i, given in enumerate(run.inputs) if given.role != "aside"]


def _signature(run: FusedRun) -> str:
    """Numba's types of the arguments, as text: part of the cache's key, and evaluated with `types` in sight."""
    arguments = []
    for given in (run.inputs[i] for i in _read(run)):
        if given.role == "scalar":
            # numbers arrive as Python's own, which hold every element type exactly
            arguments.append({"f": "types.float64", "b": "types.boolean"}.get(given.dtype.kind, "types.int64"))
        else:
            arguments.append(f"types.Array({type_name(given.dtype)}, {_rank(run, given)}, 'C', readonly=True)")
    for i in _out_arguments(run):
        rank = 1 if not run.rank or run.ops[i].reduce else run.rank
        arguments.append(f"types.Array({type_name(run.ops[i].dtype)}, {rank}, 'C')")
    return f"types.boolean({', '.join(arguments)})"


def type_name(dtype: np.dtype[Any]) -> str:
    """Numba's name of the type."""
    return "types.boolean" if dtype.kind == "b" else f"types.{dtype.name}"


def _rank(run: FusedRun, given: FusedInput) -> int:
    return 1 if given.role in ("row", "shape") else run.rank


def _wrapper(run: FusedRun, name: str) -> str:
    """The Python side of a call: makes the outputs, calls, gives up politely. Once some array came strided, all calls
    are `of_any_layout`, which copies such arrays, large ones block by block (shares.py): Numba takes 0.2 ms to say that
    it has no code for one.
    """
    names = [f"a{i}" for i in range(len(run.inputs))]
    scalars = [f"a{i}" for i, given in enumerate(run.inputs) if given.role == "scalar"]
    lines = [f"def {name}({', '.join(names)}):"]
    back = f"return fallback({', '.join(names)})"
    if name == "call":
        lines.append(f"    if odd: return of_any_layout({', '.join(names)})")
    else:
        ranks = {f"a{i}": _rank(run, run.inputs[i]) for i in _read(run) if f"a{i}" not in scalars}
        if ranks:
            lines.append(f"    if {' or '.join(f'{a}.ndim != {rank}' for a, rank in ranks.items())}: {back}")
        cut = {f"a{i}": run.inputs[i].role for i in _read(run)} if is_cut(run) else {}
        of_rows = [a for a in ranks if cut.get(a) in ("full", "column")]
        lines += [f"    {a} = contiguous({a})" for a in ranks if a not in of_rows]
        if of_rows:
            model = next(f"a{i}" for i, given in enumerate(run.inputs) if given.role == "full")
            lines.append(f"    if {model}.size < shared.least: " + "; ".join(f"{a} = contiguous({a})" for a in of_rows))
    if scalars:
        lines.append(f"    if {' or '.join(f'{name}.ndim' for name in scalars)}: {back}")
    results = []
    if run.rank == 0:
        places = _scalar_places(run)
        outs = _out_arguments(run)
        sizes = {out: sum(argument == out for argument, _ in places.values()) for out in outs}
        lines += [f"    o{out} = empty({sizes[out]}, T{out})" for out in outs]
        for output in run.outputs:
            argument, place = places[output]
            results.append(f"o{argument}.reshape(())" if sizes[argument] == 1 else f"o{argument}[{place}, ...]")
    else:
        full = [i for i, given in enumerate(run.inputs) if given.role == "full"]
        lines.append(f"    shape = a{full[0]}.shape")
        for i in run.outputs:
            if run.ops[i].reduce == "rows":
                # a value of another rank than expected must reach the check inside, not fail here
                lines.append(f"    o{i} = empty(shape[-1:], T{i})")
            else:
                lines.append(f"    o{i} = empty({'1' if run.ops[i].reduce else 'shape'}, T{i})")
            results.append(f"o{i}.reshape(())" if run.ops[i].reduce == "all" else f"o{i}")
    arguments = [f"a{i}.item()" if f"a{i}" in scalars else f"a{i}" for i in _read(run)]
    arguments += [f"o{i}" for i in _out_arguments(run)]
    native = "native"
    if is_cut(run):
        native = f"(native if a{full[0]}.size < shared.least else shared)"
    lines += [
        "    try:",
        f"        if not {native}({', '.join(arguments)}): return {', '.join(results)}",
        # strided, unaligned, or of another rank: no matching definition
        f"    except TypeError: {'odd.append(1)' if name == 'call' else 'pass'}",
        f"    {back}",
    ]
    return "\n".join(lines) + "\n"
