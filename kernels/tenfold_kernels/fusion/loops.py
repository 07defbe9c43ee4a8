"""A loop of scalars as one compiled function: variables in registers, a turn in a few nanoseconds.

    call(stop, a, b, stack):
        code = run(first, turns, o0, q0, tops, a, b)      so many turns, then a look at `stop`
        o0[0] = v6 …                                      variables and results, a vector a type

The compiler writes the lines of the loop (tenfold_compiler/write/loop_writer.py); here they become a function of
Numba's subset, and a call of arrays that behaves as the nodes do. What is pushed on a stack goes into a vector that the
stack takes over when the loop has ended; what is popped comes from one. Nothing outside of the call changes before:
whatever does not fit (an array for a scalar, an empty stack, a division by zero) runs the nodes from the beginning,
`fallback`, which raise what they raise. Compiled by cache.py, as runs.py's are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cuda._arrays import DeviceArray
from tenfold_kernels.loop_turns import MOST_TURNS, too_many_turns
from tenfold_kernels.resources.tensor_arrays import Stack

from .expressions import cast
from .runs import type_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_kernels.fusion.cache import FusionCache

#: A line that says "the next turn of this loop begins"; of a loop inside of it.
NEXT_TURN, NEXT_INNER_TURN = "@", "@@"
#: What `run` returns: it is done, there are more turns, the nodes must do it, a stack's vector is full.
DONE, MORE_TURNS, GIVE_UP, MORE_ROOM = range(4)
#: Ops until `stop` is looked at, about a millisecond; turns of inner loops within one turn, about a second.
_OPS_OF_A_SLICE, _INNER_TURNS = 1 << 18, 1 << 27
#: Elements of a stack's vector at first; it grows by as much each time.
_ROOM, _GROWTH = 1024, 4


@dataclass(frozen=True, slots=True)
class StackInput:
    """A stack that the loop either pushes to or pops from."""

    dtype: np.dtype[Any]
    pushes: bool


@dataclass(frozen=True, slots=True)
class ScalarLoop:
    """What is compiled. Names are those of the lines; a loop's inputs are its numbers and then its stacks."""

    #: (name, type) of scalars; of what is tested, Python's own bools, the type is None.
    inputs: tuple[tuple[str, np.dtype[Any] | None], ...]
    #: Stack i is popped by `p{i} -= 1; … = q{i}[p{i}]`.
    stacks: tuple[StackInput, ...]
    #: What a loop has from turn to turn, and what is read of it when it has ended.
    variables: tuple[tuple[str, np.dtype[Any]], ...]
    outputs: tuple[tuple[str, np.dtype[Any]], ...]
    #: Give the variables their first values; the turns.
    begin: tuple[str, ...]
    turns: tuple[str, ...]

    @property
    def source(self) -> tuple[str, str]:
        """(source, signature) for FusionCache.function."""
        return self._text(), self._signature()

    def build(
        self, fallback: Callable[..., Any], cache: FusionCache, most_turns: int = MOST_TURNS
    ) -> Callable[..., Any]:
        """(stop, *inputs) → a tuple of arrays, of Nones once `stop` is not empty. Blocks while it compiles.

        A call that takes more than `most_turns`, about, raises ResourceExhaustedError.
        """
        return _call(self, cache.function(*self.source), fallback, most_turns)

    def places(self) -> tuple[dict[np.dtype[Any], int], dict[str, tuple[int, int]]]:
        """(the size of each type's vector, name → vector and place in it)."""
        sizes: dict[np.dtype[Any], int] = {}
        places: dict[str, tuple[int, int]] = {}
        for name, dtype in dict([*self.variables, *self.outputs]).items():
            at = sizes.setdefault(dtype, 0)
            places[name] = list(sizes).index(dtype), at
            sizes[dtype] += 1
        return sizes, places

    def _text(self) -> str:
        sizes, places = self.places()
        stacks = range(len(self.stacks))
        arguments = [f"o{i}" for i in range(len(sizes))] + [f"q{i}" for i in stacks] + ["tops"] * bool(stacks)
        arguments += [f"a{i}" for i in range(len(self.inputs))]
        at = {name: f"o{vector}[{place}]" for name, (vector, place) in places.items()}
        lines = [f"def run({', '.join(('first', 'n', *arguments))}):"]
        lines += [f" {name} = {cast(f'a{i}', d) if d else f'a{i}'}" for i, (name, d) in enumerate(self.inputs)]
        lines += [f" p{i} = tops[{i}]" for i in stacks]
        lines += [" if first:", *(f" {line}" for line in self.begin), " else:"]
        lines += [f"  {name} = {at[name]}" for name, _ in self.variables]
        kept = [f"tops[{i}] = p{i}" for i in stacks]
        over = [f"{at[name]} = {name}" for name, _ in self.variables] + [*kept, f"return {MORE_TURNS}"]
        for line in self.turns:
            pad = line[: len(line) - len(line.lstrip())]
            if line.lstrip() == NEXT_TURN:
                lines += [f"{pad}n -= 1", f"{pad}if n <= 0:", *(f"{pad} {part}" for part in over)]
            elif line.lstrip() == NEXT_INNER_TURN:
                lines += [f"{pad}n -= 1", f"{pad}if n < {-_INNER_TURNS}: return {GIVE_UP}"]
            else:
                lines.append(line)
        lines += [f" {line}" for line in (*(f"{at[name]} = {name}" for name, _ in self.outputs), *kept)]
        return "\n".join([*lines, f" return {DONE}", ""])

    def _signature(self) -> str:
        arguments = ["types.boolean", "types.int64"]
        arguments += [f"types.Array({type_name(dtype)}, 1, 'C')" for dtype in self.places()[0]]
        arguments += [f"types.Array({type_name(stack.dtype)}, 1, 'C')" for stack in self.stacks]
        arguments += ["types.Array(types.int64, 1, 'C')"] * bool(self.stacks)
        kinds = {"f": "types.float64", "b": "types.boolean"}
        arguments += [kinds.get(dtype.kind if dtype else "b", "types.int64") for _, dtype in self.inputs]
        return f"types.int64({', '.join(arguments)})"


def _call(
    loop: ScalarLoop, native: Callable[..., int], fallback: Callable[..., Any], most_turns: int
) -> Callable[..., Any]:
    sizes, places = loop.places()
    vectors = list(sizes.items())
    count = len(loop.inputs)
    tested = [dtype is None for _, dtype in loop.inputs]
    results = [places[name] for name, _ in loop.outputs]
    turns = min(max(1, _OPS_OF_A_SLICE // len(loop.turns)), most_turns)
    stopped = (None,) * len(results)

    def call(stop: Sequence[Any], *values: Any) -> Any:
        numbers = []
        for value, is_test in zip(values, tested, strict=False):
            if is_test:
                numbers.append(value)
            elif value.ndim or type(value) is DeviceArray:
                return fallback(stop, *values)
            else:
                numbers.append(value.item())
        held = _Held.of(loop.stacks, values[count:])
        if held is None:
            return fallback(stop, *values)
        state = [np.empty(size, dtype) for dtype, size in vectors]
        first, left = True, most_turns
        while code := native(first, turns, *state, *held.vectors, *numbers):
            if code == MORE_TURNS:
                first = False
                left -= turns
                if left <= 0:
                    raise too_many_turns(most_turns)
            elif code == GIVE_UP or not held.grow():
                return fallback(stop, *values)
            if stop:
                return stopped
        if not held.settle():
            return fallback(stop, *values)
        return tuple([state[vector][place, ...] for vector, place in results])

    return call


class _Held:
    """The stacks of one call, while it runs."""

    def __init__(self, given: Sequence[StackInput], stacks: list[Stack], vectors: list[Any], tops: Any) -> None:
        self._given, self._stacks, self._tops = given, stacks, tops
        #: What `run` gets: a vector a stack, and how much of each is in use.
        self.vectors = vectors if tops is None else [*vectors, tops]

    @classmethod
    def of(cls, given: Sequence[StackInput], values: Sequence[Any]) -> _Held | None:
        """None where some handle is not that of a stack as the loop wants it."""
        if not given:
            return _NO_STACKS
        stacks = [getattr(value.item(), "resource", None) if value.ndim == 0 else None for value in values]
        found: list[Stack] = []
        vectors: list[Any] = []
        tops = np.zeros(len(given), np.int64)
        for number, (stack, wanted) in enumerate(zip(stacks, given, strict=True)):
            if not isinstance(stack, Stack) or stack.dtype.as_numpy_dtype != wanted.dtype:
                return None
            vector = np.empty(_ROOM, wanted.dtype) if wanted.pushes else stack.scalars()
            if vector is None:
                return None
            found.append(stack)
            vectors.append(vector)
            tops[number] = 0 if wanted.pushes else vector.size
        return None if len(set(map(id, found))) < len(found) else cls(given, found, vectors, tops)

    def grow(self) -> bool:
        """Makes more room for what is pushed. False where no stack takes so much."""
        for number, (stack, wanted) in enumerate(zip(self._stacks, self._given, strict=True)):
            if wanted.pushes:
                old = self.vectors[number]
                if not stack.takes(old.size):
                    return False
                self.vectors[number] = np.empty(old.size * _GROWTH, old.dtype)
                self.vectors[number][: old.size] = old
        return True

    def settle(self) -> bool:
        """Gives the stacks what was pushed and takes away what was popped: all of it, or nothing and False."""
        todo = list(zip(self._stacks, self._given, self.vectors, self._tops, strict=False)) if self._given else ()
        if not all(stack.takes(int(top)) for stack, wanted, _, top in todo if wanted.pushes):
            return False
        for stack, wanted, vector, top in todo:
            if wanted.pushes:
                stack.push_scalars(vector[:top])
            else:
                stack.drop(vector.size - int(top))
        return True


_NO_STACKS = _Held((), [], [], None)
