"""Machine code that is loaded without Numba: what it takes, what it leaves to Numba, and what becomes of a bad file."""

from __future__ import annotations

import ctypes
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tenfold_kernels import object_code
from tenfold_kernels.cpu._compiled import machine_code, object_names, objects
from tenfold_kernels.cpu._compiled.intrinsics import load, store
from tenfold_kernels.cpu._compiled.loop_spec import LoopSpec

pytestmark = pytest.mark.skipif(not object_code.is_supported(), reason="no objects on this machine: Numba's own cache")

D, F, INDEX = np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.int64)
NAN_FREE = frozenset(["nnan"])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where machine code is kept; nothing is there yet."""
    import numba

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    return tmp_path


def made(spec: LoopSpec) -> Any:
    """The loop from its object alone."""
    assert machine_code.make_object(spec)
    assert machine_code.make_object(spec) is None, "it is there"
    found = object_code.load(*object_names.file_of(spec), "the loop")
    assert type(found).__name__ == "builtin_function_or_method"
    return found


def everything(rows, strided, index, places, factor, count, is_on, out):  # type: ignore[no-untyped-def]
    for r in range(rows.shape[0]):
        for c in range(rows.shape[1]):
            out[r, c] = rows[r, c] * factor + strided[c, r] + index[r] + count
        places[r] = rows.size if is_on else -1
    return out.shape[0] * 100 + out.shape[1]


@pytest.mark.parametrize("element", [np.float32, np.float64])
def test_each_kind_of_argument_is_taken_apart(element: Any) -> None:
    loop = made(LoopSpec(everything, "r2 v2 i1 x1 s n b w2", np.dtype(element), INDEX, "n"))
    rows, strided = np.arange(6, dtype=element).reshape(2, 3), np.arange(24, dtype=element).reshape(6, 4)[::2, ::-3]
    rows.flags.writeable = False
    index, places, out = np.array([10, 20]), np.zeros(2, np.int64), np.zeros((2, 3), element)

    for is_on, count in ((True, 7), (np.bool_(False), np.int64(-1)), (0, np.int8(5))):
        assert loop(rows, strided, index, places, element(0.5), count, is_on, out) == 203
        assert out.tolist() == (rows * element(0.5) + strided.T + index[:, None] + count).tolist()
        assert places.tolist() == [6 if is_on else -1] * 2


def add(x, number, out):  # type: ignore[no-untyped-def]
    for i in range(x.size):
        out[i] = x[i] + number


@pytest.mark.parametrize("element", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
def test_numbers_of_each_type(element: str) -> None:
    kind = np.dtype(element)
    loop = made(LoopSpec(add, "r1 s w1", kind, INDEX))
    x, out = np.arange(3, dtype=kind), np.zeros(3, kind)
    most = np.finfo(kind).max if kind.kind == "f" else np.iinfo(kind).max - 2
    for number in (0, kind.type(100), most):
        loop(x, number, out)
        np.testing.assert_array_equal(out, x + kind.type(number))


def test_what_is_no_such_argument_is_named() -> None:
    loop = made(LoopSpec(add, "r1 s w1", F, INDEX))
    x, out = np.zeros(3, F), np.zeros(3, F)
    read_only = out.copy()
    read_only.flags.writeable = False
    unaligned = np.zeros(13, np.uint8)[1:].view(F)
    good = "float32[3], float, float32[3]"
    others: list[tuple[tuple[Any, ...], str]] = [
        ((x, 1.0), "float32[3], float"),
        ((x, 1.0, out, out), f"{good}, float32[3]"),
        ((), ""),
        ((x.astype(D), 1.0, out), "float64[3], float, float32[3]"),
        ((x.astype(">f4"), 1.0, out), ">f4[3], float, float32[3]"),
        ((x.reshape(3, 1), 1.0, out), "float32[3, 1], float, float32[3]"),
        ((x.tolist(), 1.0, out), "list, float, float32[3]"),
        ((np.zeros(6, F)[::2], 1.0, out), "float32[3] in strides of [8], float, float32[3]"),
        ((x, 1.0, read_only), f"{good}, read-only"),
        ((x, 1.0, unaligned), f"{good}, not aligned"),
        ((x, "one", out), "float32[3], str, float32[3]"),
        ((None, 1.0, out), "NoneType, float, float32[3]"),
    ]
    for arguments, words in others:
        with pytest.raises(TypeError) as raised:
            loop(*arguments)
        assert str(raised.value) == f"the loop does not take ({words})"
    assert loop(x, 1.0, out) is None
    assert out.tolist() == [1, 1, 1]


def test_arrays_of_other_classes_and_of_the_other_int64_are_taken() -> None:
    loop = made(LoopSpec(add, "r1 s w1", INDEX, INDEX))
    x = np.arange(3, dtype=np.longlong)
    assert x.dtype == INDEX
    assert x.dtype.num != INDEX.num
    out = np.zeros(3, INDEX)
    loop(x.view(np.recarray), 1, out.view(np.longlong))
    assert out.tolist() == [1, 2, 3]


def flag(is_on, out):  # type: ignore[no-untyped-def]
    out[0] = is_on


def test_what_has_no_truth_is_named_too() -> None:
    loop, out = made(LoopSpec(flag, "b w1", F, INDEX)), np.zeros(1, F)
    with pytest.raises(TypeError, match=r"does not take \(int64\[2\], float32\[1\]\)"):
        loop(np.zeros(2, INDEX), out)
    loop("some", out)
    assert out.tolist() == [1]


def of_own_memory(x, out):  # type: ignore[no-untyped-def]
    turned = np.empty((x.shape[1], x.shape[0]), x.dtype)
    flat = turned.reshape(turned.size)
    for r in range(x.shape[0]):
        for c in range(x.shape[1]):
            turned[c, r] = x[r, c]
    for i in range(flat.size):
        out[i] = flat[i]


def test_a_loop_that_asks_for_memory_gives_it_back() -> None:
    loop = made(LoopSpec(of_own_memory, "r2 w1", D, INDEX))
    x, out = np.random.default_rng(0).standard_normal((300, 400)), np.zeros(120_000)
    loop(x, out)
    assert out.tolist() == x.T.reshape(-1).tolist()

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = resident()
    for _ in range(300):
        loop(x, out)
    assert resident() - before < 100 * x.nbytes


def wait(address, turns):  # type: ignore[no-untyped-def]
    for i in range(turns):
        if load(address):
            return i
    return -1


def test_the_interpreter_runs_beside_a_loop() -> None:
    loop, cell = made(LoopSpec(wait, "n n", INDEX, INDEX, "n")), np.zeros(1, np.int64)
    begun = threading.Event()

    def set_it() -> None:
        begun.wait()
        cell[0] = 1

    other = threading.Thread(target=set_it)
    other.start()
    begun.set()
    # with the lock held, the other thread would get nowhere
    assert loop(cell.ctypes.data, 1 << 40) >= 0
    other.join()


def test_it_is_found_by_what_it_is_made_of(folder: Path) -> None:
    spec = LoopSpec(add, "r1 s w1", F, INDEX)
    assert not objects.is_on_disk(spec)
    objects.compile_spec(spec)
    assert objects.is_on_disk(spec)
    others = [
        LoopSpec(add, "r1 s w1", D, INDEX),
        LoopSpec(add, "v1 s w1", F, INDEX),
        LoopSpec(add, "r1 s w1", F, INDEX, "", NAN_FREE),
    ]
    assert not any(map(objects.is_on_disk, others))
    (file,) = folder.rglob("*.object")
    assert file.name.startswith("test_objects.add.tenfold_")


def test_a_damaged_file_is_made_again(caplog: pytest.LogCaptureFixture) -> None:
    spec = LoopSpec(add, "r1 s w1", F, INDEX)
    path, _ = object_names.file_of(spec)
    objects.compile_spec(spec)
    whole = path.read_bytes()
    for damaged in (whole[:-1], whole[:200] + b"?" + whole[201:], b"", b"another file"):
        path.write_bytes(damaged)
        with caplog.at_level(logging.WARNING):
            loop = objects.compile_spec(spec)
        assert f"{path} is damaged; it is made again." in caplog.messages
        caplog.clear()
        out = np.zeros(3, F)
        loop(np.zeros(3, F), 2.0, out)
        assert out.tolist() == [2, 2, 2]
        assert path.read_bytes()[:17] == whole[:17]


def test_a_folder_that_cannot_be_written_to_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", os.devnull)
    spec = LoopSpec(add, "r1 s w1", F, INDEX)
    out = np.zeros(3, F)
    objects.compile_spec(spec)(np.zeros(3, F), 2.0, out)
    assert out.tolist() == [2, 2, 2]
    assert not objects.is_on_disk(spec)


def second(first, other):  # type: ignore[no-untyped-def]
    store(first, load(first) + other)


def test_a_callback_is_found_again() -> None:
    address = objects.compile_callback(second)
    path, name = object_names.file_of_callback(second)
    assert object_code.load_address(path, name) is not None
    assert objects.compile_callback(second) == address, "it is made once"
    cell = np.ones(1, np.int64)
    ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(address)(cell.ctypes.data, 2)
    assert cell.tolist() == [3]


PROGRAM = """
import sys
import numpy as np
from tenfold_kernels.cpu._compiled import activations, normalize, objects, products
from tenfold_kernels.fusion.cache import FusionCache
from pathlib import Path

x, out = np.array([-1.0, 2.0], np.float32), np.zeros(2, np.float32)
activations.relu(np.float32)(x, out, np.float32(0))
mean, apart = np.zeros(2), np.zeros(2)
normalize.moments(np.float32)(np.array([[1, 2], [3, 6]], np.float32), 0, 2, mean, apart)
half = np.zeros(2)
source = "def run(a0, o0):\\n    for i in range(a0.size):\\n        o0[i] = a0[i] / 2\\n    return False\\n"
array = "types.Array(types.float64, 1, 'C')"
answer = FusionCache(Path(sys.argv[1])).function(source, f"types.boolean({array}, {array})")(mean, half)
print(out.tolist(), mean.tolist(), apart.tolist(), half.tolist(), answer, products.chunk_address()() > 0)
print("numba" in sys.modules, file=sys.stderr)
"""


def test_the_next_process_runs_all_of_it_without_numba(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "loops"), "TENFOLD_COMPILE": "blocking"}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "fused")]
    found = [
        subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=True)
        for _ in range(2)
    ]
    assert [done.stderr for done in found] == ["True\n", "False\n"]
    assert {done.stdout for done in found} == {"[0.0, 2.0] [2.0, 4.0] [2.0, 8.0] [1.0, 2.0] False True\n"}
