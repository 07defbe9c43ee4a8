"""Compiled runs on disk: what is loaded, what is written and how, which folders are trusted, what goes. No compiler."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tenfold_kernels.fusion import cache as module
from tenfold_kernels.fusion.cache import FusionCache, cache_folder, program_name

if TYPE_CHECKING:
    from collections.abc import Iterator

LOOP = "def run(x):\n    for i in range(3): x += 1\n    return x\n"
SCALAR = "def run(x):\n    return x + 1\n"


class FakeNumba:
    """Gives functions back as they are; with `cache` it leaves a file of machine code, as Numba does."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, dict[str, Any], str]] = []
        self.error: Exception | None = None
        self.types = SimpleNamespace(int64=lambda x: ("int64", x), boolean="bool")

    def njit(self, signature: Any = None, **options: Any) -> Any:
        def compiled(function: Any) -> Any:
            self.asked.append((signature, options, function.__module__))
            return function

        return compiled

    def compile_once(self, function: Any, signature: Any) -> None:
        _, options, home = self.asked.pop()
        if self.error is not None:
            raise self.error
        self.asked.append((signature, options, home))
        path = Path(function.__code__.co_filename)
        (path.parent / "__pycache__").mkdir(exist_ok=True)
        (path.parent / "__pycache__" / f"{path.stem}.run-1.py311.1.nbc").write_text("")


@pytest.fixture
def numba(monkeypatch: pytest.MonkeyPatch) -> FakeNumba:
    fake = FakeNumba()
    monkeypatch.setitem(sys.modules, "numba", fake)  # type: ignore[arg-type]
    on_disk = SimpleNamespace(compile_once=fake.compile_once)
    monkeypatch.setitem(sys.modules, "tenfold_kernels.code_on_disk", on_disk)  # type: ignore[arg-type]
    # files of machine code are Numba's alone then
    monkeypatch.setattr(module.object_code, "is_supported", lambda: False)
    # what a run's head imports, which wants Numba itself
    names = ("add_any_order", "exp_single", "log1p_single", "log_single", "sigmoid_single", "tanh_single")
    for name in ("support", "vector_math"):
        stand_in = SimpleNamespace(**dict.fromkeys(names))
        monkeypatch.setitem(sys.modules, f"tenfold_kernels.fusion.{name}", stand_in)  # type: ignore[arg-type]
    return fake


@pytest.fixture(autouse=True)
def no_modules() -> Iterator[None]:
    yield
    for name in [name for name in sys.modules if name.startswith("tenfold_fused_")]:
        del sys.modules[name]


SIGNATURE = "types.int64(types.boolean)"


def test_without_a_folder_it_compiles_in_memory_once(numba: FakeNumba) -> None:
    cache = FusionCache(None)
    assert cache.folder is None
    assert not cache.has(LOOP, SIGNATURE)
    run = cache.function(LOOP, SIGNATURE)
    assert run(4) == 7
    assert cache.function(LOOP, SIGNATURE) is run
    assert cache.has(LOOP, SIGNATURE)
    assert not cache.has(LOOP, "types.int64(types.int64)")
    assert cache.function(SCALAR, SIGNATURE)(4) == 5
    options = [{"nogil": nogil, "error_model": "numpy"} for nogil in (True, False)]
    assert [asked[:2] for asked in numba.asked] == [(("int64", "bool"), each) for each in options], (
        "a few scalars keep the interpreter's lock"
    )


def test_the_next_cache_finds_what_lies_in_the_folder(numba: FakeNumba, tmp_path: Path) -> None:
    folder = tmp_path / "a" / "cache"
    cache = FusionCache(folder)
    assert not cache.has(LOOP, SIGNATURE)
    assert cache.function(LOOP, SIGNATURE)(4) == 7
    (source,) = folder.glob("*.py")
    assert source.name.startswith("run_")
    assert len(source.stem) == len("run_") + 32
    assert source.read_text().endswith("\n" + LOOP)
    ((_, options, home),) = numba.asked
    assert options == {"nogil": True, "error_model": "numpy", "cache": True}
    assert home == f"tenfold_fused_{source.stem}"
    assert sys.modules[home].run is not None
    if os.name == "posix":
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    again = FusionCache(folder)
    assert again.has(LOOP, SIGNATURE)
    assert not again.has(LOOP + "\n", SIGNATURE)
    written = source.stat().st_mtime_ns
    again.function(LOOP, SIGNATURE)
    assert source.stat().st_mtime_ns == written
    assert [path.name for path in folder.iterdir() if path.suffix != ".py"] == ["__pycache__"], "nothing is left over"


@pytest.mark.parametrize("error", [OSError, RuntimeError])
def test_a_disk_that_fails_numba_is_no_error(error: type[Exception], numba: FakeNumba, tmp_path: Path) -> None:
    numba.error = error("full")
    assert FusionCache(tmp_path / "cache").function(SCALAR, SIGNATURE)(4) == 5
    assert [options for _, options, _ in numba.asked] == [{"nogil": False, "error_model": "numpy"}]


def test_any_other_error_is_one(numba: FakeNumba, tmp_path: Path) -> None:
    numba.error = ValueError("a fault of ours")
    with pytest.raises(ValueError, match="a fault of ours"):
        FusionCache(tmp_path / "cache").function(SCALAR, SIGNATURE)


def test_a_folder_that_cannot_be_used_is_forgotten(
    numba: FakeNumba, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def untrusted(**patches: Any) -> None:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        with monkeypatch.context() as patched:
            for name, value in patches.items():
                patched.setattr(module.os, name, value)
            cache = FusionCache(folder)
            assert cache.function(SCALAR, SIGNATURE)(4) == 5
            assert cache.folder is None
        assert list(folder.iterdir()) == []

    if hasattr(os, "getuid"):
        untrusted(getuid=lambda: os.stat(tmp_path).st_uid + 1)
    untrusted(access=lambda path, mode: False)
    if hasattr(os, "getuid"):
        for mode in (0o720, 0o702):
            folder = tmp_path / f"{mode:o}"
            folder.mkdir()
            folder.chmod(mode)
            cache = FusionCache(folder)
            assert cache.function(SCALAR, SIGNATURE)(4) == 5
            assert (cache.folder, list(folder.iterdir())) == (None, [])


def test_a_folder_is_looked_at_once(numba: FakeNumba, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Path] = []
    monkeypatch.setattr(module, "_drop_oldest", looked.append)
    cache = FusionCache(tmp_path)
    tmp_path.chmod(0o700)
    for source in (LOOP, SCALAR):
        cache.function(source, SIGNATURE)
    assert looked == [tmp_path]


def test_a_head_for_loops_and_one_for_scalars() -> None:
    loop, scalar = module._whole(LOOP), module._whole(SCALAR)
    assert [module._is_brief(text) for text in (loop, scalar)] == [False, True]
    assert loop.splitlines()[1:] == [*scalar.splitlines()[1:-2], *LOOP.splitlines()]
    assert scalar.splitlines()[1:4] == [
        *("import math", "import numpy as np", "from tenfold_kernels.fusion.support import add_any_order")
    ]


def test_a_name_says_all_that_the_code_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def in_another_process() -> str:
        module._versions.cache_clear()
        return module._module_name("text", "s")

    names = [module._module_name("text", "s"), module._module_name("texts", "s"), module._module_name("text", "ss")]
    with monkeypatch.context() as patched:
        patched.setattr(module, "_FORMAT", module._FORMAT + 1)
        names.append(in_another_process())
    with monkeypatch.context() as patched:
        patched.setattr(module.platform, "machine", lambda: "another")
        names.append(in_another_process())
    with monkeypatch.context() as patched:
        patched.setattr(module.sys, "version", "another")
        names.append(in_another_process())
    read = module.Path.read_text
    with monkeypatch.context() as patched:
        patched.setattr(
            module.Path, "read_text", lambda self, **more: "other" if self.name == "support.py" else read(self, **more)
        )
        names.append(in_another_process())
    assert len(set(names)) == 7
    assert in_another_process() == names[0]


def test_files_are_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run_1.py"
    assert not module._same_text(path, "é")
    module._write_atomically(path, "é")
    assert module._same_text(path, "é")
    assert not module._same_text(path, "e")
    path.write_bytes(b"\xff")
    assert not module._same_text(path, "é")

    def refuse(*_: object) -> None:
        raise OSError("a full disk")

    monkeypatch.setattr(module.os, "replace", refuse)
    with pytest.raises(OSError, match="a full disk"):
        module._write_atomically(path, "other")
    assert [each.name for each in tmp_path.iterdir()] == ["run_1.py"]
    assert path.read_bytes() == b"\xff"


def test_the_oldest_go_with_their_machine_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert module._KEPT == 1000
    monkeypatch.setattr(module, "_KEPT", 2)
    compiled = tmp_path / "__pycache__"
    compiled.mkdir()
    for age, name in ((3, "run_b"), (1, "run_a"), (4, "run_c"), (0, "other")):
        path = tmp_path / f"{name}.py"
        path.write_text("")
        os.utime(path, (1000 - age, 1000 - age))
        for end in ("nbi", "1.nbc"):
            (compiled / f"{name}.{end}").write_text("")

    def left() -> set[str]:
        return {path.name.split(".")[0] for path in tmp_path.rglob("*.*")}

    module._drop_oldest(tmp_path)
    assert left() == {"run_a", "run_b", "other"}
    module._drop_oldest(tmp_path)
    assert left() == {"run_a", "run_b", "other"}
    assert len(list(compiled.iterdir())) == 6


def test_programs_are_known_later_and_the_oldest_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [program_name(text) for text in ("Neg", "Square", "Neg, Square")]
    assert len({*names, program_name("Neg")}) == 3
    cache = FusionCache(tmp_path)
    assert not any(map(cache.was_hot, names))
    for age, name in enumerate(names):
        cache.note_hot(name)
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    assert [FusionCache(tmp_path).was_hot(name) for name in (*names, "hot_other")] == [True, True, True, False]

    monkeypatch.setattr(module, "_KEPT", 2)
    module._drop_oldest(tmp_path)

    assert [cache.was_hot(name) for name in names] == [True, True, False]


@pytest.mark.parametrize("place", ["nowhere", "a file"])
def test_where_nothing_can_be_kept_no_program_is_known(place: str, tmp_path: Path) -> None:
    (tmp_path / "a file").touch()
    cache = FusionCache(None if place == "nowhere" else tmp_path / place)
    cache.note_hot("hot_1")
    assert not cache.was_hot("hot_1")


@pytest.mark.parametrize(
    ("system", "environment", "folder"),
    [
        ("linux", {"TENFOLD_CACHE_DIR": "/x", "XDG_CACHE_HOME": "/c"}, "/x/fused"),
        ("linux", {"TENFOLD_CACHE_DIR": "", "XDG_CACHE_HOME": "/c"}, None),
        ("linux", {"XDG_CACHE_HOME": "/c"}, "/c/tenfold/fused"),
        ("linux", {"XDG_CACHE_HOME": ""}, "/home/me/.cache/tenfold/fused"),
        ("linux", {"LOCALAPPDATA": "/l"}, "/home/me/.cache/tenfold/fused"),
        ("win32", {"LOCALAPPDATA": "/l", "XDG_CACHE_HOME": "/c"}, "/l/tenfold/fused"),
        ("win32", {}, None),
    ],
)
def test_where_the_folder_of_each_system_is(
    system: str, environment: dict[str, str], folder: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module.sys, "platform", system)
    monkeypatch.setattr(module.os.path, "expanduser", lambda text: text.replace("~", "/home/me"))
    found = cache_folder(environment)
    assert found == (None if folder is None else Path(folder))
