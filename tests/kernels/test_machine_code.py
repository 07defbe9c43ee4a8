"""Loops as machine code: the types of their arguments, the names that they are kept by, and life without a disk."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba import types

from tenfold_kernels.cpu._compiled import machine_code, objects, reading
from tenfold_kernels.cpu._compiled.loop_spec import CALLBACK, Inlined, LoopSpec

D, F = np.dtype(np.float64), np.dtype(np.float32)
TEXT = """
def triple(x, out):
    for i in range(x.shape[0]):
        out[i] = 3 * x[i]

def nothing(first, second):
    pass
"""


def triple(x: Any, out: Any) -> None:
    for i in range(x.shape[0]):
        out[i] = 3 * x[i]


def spec_of(function: Any, element: Any = D, **how: Any) -> LoopSpec:
    return LoopSpec(function, "r1 w1", element, np.dtype(np.int64), **how)


def tripled(loop: Any, element: Any = D) -> list[float]:
    x, out = np.arange(3, dtype=element), np.zeros(3, element)
    loop(x, out)
    return [float(each) for each in out]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where machine code is kept; nothing is there yet."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    return tmp_path


def test_each_letter_is_a_type() -> None:
    spec = LoopSpec(triple, "r2 v3 w1 i1 x2 s n b", F, np.dtype(np.int32), "n")
    single, index = types.float32, types.int32
    assert machine_code._signature(spec) == types.int64(
        types.Array(single, 2, "C", readonly=True),
        types.Array(single, 3, "A", readonly=True),
        types.Array(single, 1, "C"),
        types.Array(index, 1, "C", readonly=True),
        types.Array(index, 2, "C"),
        single,
        types.int64,
        types.boolean,
    )
    assert machine_code._signature(spec_of(triple)).return_type == types.void
    with pytest.raises(ValueError, match="no argument code 'z1'"):
        machine_code._signature(LoopSpec(triple, "z1", F, F))


def test_what_is_compiled_is_found_on_the_disk(folder: Path) -> None:
    spec, others = spec_of(triple), [spec_of(triple, F), spec_of(triple, fastmath=frozenset(["nnan"]))]
    assert not machine_code.is_on_disk(spec)
    first = machine_code.compile_spec(spec)
    assert tripled(first) == [0, 3, 6]
    assert machine_code.is_on_disk(spec)
    assert not any(map(machine_code.is_on_disk, others))
    with pytest.raises(TypeError):
        first(np.zeros(3, np.complex64), np.zeros(3))  # it compiles for no other types

    again: Any = machine_code.compile_spec(spec)
    assert tripled(again) == [0, 3, 6]
    hits, made = again.stats.cache_hits, again.stats.cache_misses
    assert (sum(hits.values()), sum(made.values())) == (1, 0)
    assert len(list(folder.rglob("*.nbc"))) == 1


def test_a_disk_that_takes_no_mark_has_it_compiled_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, *_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "touch", full)
    assert tripled(machine_code.compile_spec(spec_of(triple))) == [0, 3, 6]
    assert not machine_code.is_on_disk(spec_of(triple))
    assert list(folder.rglob("*.ready")) == []


def test_a_loop_that_can_be_kept_nowhere_is_compiled_all_the_same() -> None:
    made: dict[str, Any] = {}
    exec(compile(TEXT, "<no file>", "exec"), made)
    spec = spec_of(made["triple"], fastmath=frozenset(["nnan"]))
    assert not machine_code.is_on_disk(spec)
    assert tripled(machine_code.compile_spec(spec)) == [0, 3, 6]
    assert not machine_code.is_on_disk(spec)

    callback = LoopSpec(made["nothing"], CALLBACK, D, D)
    address = objects.compile_spec(callback)()
    assert address > 0
    ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(address)(1, 2)
    assert objects.compile_callback(made["nothing"]) == address, "it is made once"


def test_another_failure_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(spec: Any) -> Any:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(machine_code, "_dispatcher", broken)
    with pytest.raises(RuntimeError, match="out of memory"):
        machine_code.compile_spec(spec_of(triple))


def loop_of(**bodies: str) -> Any:
    """A loop that calls `first`, with these bodies, each inlined: name → its text."""
    made: dict[str, Any] = {}
    text = "".join(f"def {name}(x):\n    return {body}\n" for name, body in bodies.items())
    exec(f"{text}def loop(x):\n    return first(x)\n", made)
    made.update({name: Inlined(made[name]) for name in bodies})
    return made["loop"]


def test_a_loop_is_named_by_what_it_inlines() -> None:
    def name(**bodies: str) -> str:
        return machine_code._bound(loop_of(**bodies)).__qualname__

    simple = name(first="x + 1")
    assert simple.startswith("loop_")
    assert simple == name(first="x + 1")
    through = name(first="second(x)", second="x + 1")
    # what it calls, which constants, which names, and what a function within it does
    others = [name(first="x - 1"), name(first="x + 2"), name(first="x + y"), through]
    others += [name(first="second(x)", second="x - 1"), name(first="(lambda z: z)(x)"), name(first="(lambda z: -z)(x)")]
    assert len({simple, *others}) == 8
    assert name(first="first(x - 1) if x else 0").startswith("loop_"), "one that calls itself"
    assert machine_code._bound(triple).__qualname__ == "triple"


def test_a_body_may_call_others_and_itself() -> None:
    bound = machine_code._bound(loop_of(first="second(x) + 1", second="second(x - 1) + 2 if x > 0 else 0"))
    assert numba.njit(types.int64(types.int64))(bound)(3) == 7


def test_an_index_is_loaded_once_and_is_no_better_aligned_than_its_type() -> None:
    """LLVM takes alignments on trust: on some processors, a load whose address is less aligned ends the process."""
    once = reading.once
    compiled = numba.njit((types.Array(types.int32, 1, "C", readonly=True),))(lambda index: once(index, 0))
    (text,) = compiled.inspect_llvm().values()
    assert re.findall(r"load atomic (\w+), .* unordered, align (\d+)", text) == [("i32", "4")]
