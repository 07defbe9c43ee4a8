"""Every kernel that the tests beside this file launch is one that Numba compiles, and nvJitLink links.

No GPU is needed, but NVVM and nvJitLink: `pip install 'numba-cuda[cu13]' 'numpy<2.5'`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import dry_gpu
from tenfold_kernels.cuda import _ptx, _runtime
from tenfold_kernels.cuda._launch import Kernel

HERE = Path(__file__).parent
_PROBE = "from numba.cuda.cudadrv import nvvm; nvvm.NVVM()"


def _compiler_is_missing() -> str:
    """Why nothing can be compiled here; empty if it can be."""
    if importlib.util.find_spec("numba_cuda") is None:
        return "numba-cuda is not installed"
    done = subprocess.run(
        [sys.executable, "-c", _PROBE], capture_output=True, text=True, env=_environment(), check=False
    )
    return "" if done.returncode == 0 else f"NVVM cannot be loaded: {done.stderr.strip().splitlines()[-1:]}"


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != _runtime.SIMULATOR}
    return kept | {"PYTHONPATH": os.pathsep.join([str(HERE.parent), kept.get("PYTHONPATH", "")])}


@pytest.mark.timeout(600)
@pytest.mark.skipif(dry_gpu.is_on(), reason="these tests run dry already")
def test_every_kernel_is_one_that_the_compiler_takes(tmp_path: Path) -> None:
    missing = _compiler_is_missing()
    if missing:
        pytest.skip(missing)
    report = tmp_path / "report.json"
    environment = _environment() | {dry_gpu.REPORT: str(report)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "support.dry_gpu", "-p", "no:cacheprovider", str(HERE)]

    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)

    assert report.exists(), done.stdout[-2000:] + done.stderr[-2000:]
    rows = json.loads(report.read_text())
    assert len(rows) > 100, done.stdout[-2000:]
    assert [(row["name"], row["types"], row["error"], row["text"]) for row in rows if "error" in row] == []
    assert {row["linked"] for row in rows} == {True}, "nvJitLink is not installed"


def _scaled(factor: int):  # type: ignore[no-untyped-def]
    def run(n):  # type: ignore[no-untyped-def]
        return n * factor

    return run


def _other(factor: int):  # type: ignore[no-untyped-def]
    def run(n):  # type: ignore[no-untyped-def]
        return n + factor

    return run


def test_a_kept_kernel_is_known_by_all_that_it_was_made_of() -> None:
    functions = (_scaled(2), _scaled(3), _scaled(_scaled(2)), _scaled(_scaled(3)), _other(2))

    texts = {_ptx.text_of(function) for function in functions}

    assert len(texts) == len(functions)
    assert _ptx.text_of(_scaled(2)) == _ptx.text_of(_scaled(2))


def test_a_kernel_is_compiled_once_and_a_process_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    compiled: list[str] = []

    def compile_ptx(kernel: Kernel, capability: tuple[int, int]) -> bytes:
        compiled.append(f"{kernel.types} for {capability}")
        return b".visible .entry named(\n"

    monkeypatch.setattr(_ptx, "compile_ptx", compile_ptx)
    monkeypatch.setattr(_ptx, "link", lambda text, capability: None)
    monkeypatch.setattr(_ptx, "cache_folder", lambda environment: tmp_path)
    _ptx._say_once.cache_clear()
    kernels = [Kernel(_scaled(factor), ("int64",)) for factor in (2, 2, 3)]

    found = [_ptx.of(kernel, (9, 0)) for kernel in kernels]
    _ptx.of(kernels[0], (10, 0))

    assert found == [(b".visible .entry named(\n", "named")] * 3
    assert compiled == ["('int64',) for (9, 0)"] * 2 + ["('int64',) for (10, 0)"]
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert said == [f"Compiling CUDA kernels: first steps take longer. They are kept in {tmp_path}."]


def test_the_entry_of_a_kernel_is_found_by_its_name() -> None:
    text = b".visible .entry _ZN4loop3runB2v1B94cw51cXTLSUwHBAnRtqEiF3vEx(\n"

    found = re.search(_ptx._ENTRY, text)

    assert found is not None
    assert found[1] == b"_ZN4loop3runB2v1B94cw51cXTLSUwHBAnRtqEiF3vEx"
