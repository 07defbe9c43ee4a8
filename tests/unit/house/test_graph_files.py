"""Kernels open files in one place, `tenfold_core.graph_files`, where it is decided what a graph may open.

Read from the syntax trees of kernels/: neither the system's ways to open a file, nor a reader of a file format that was
given no `files`, but for what the runtime needs for itself, whose name no graph says.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

KERNELS = Path(__file__).resolve().parents[3] / "kernels/tenfold_kernels"

#: The runtime's own files, and why.
OWN = {
    "crowd.py": "the load of the machine",
    "blas.py": "which library of products is loaded",
    "fusion/cache.py": "compiled code that is kept",
    "object_code.py": "compiled code that is kept",
    "cpu/_compiled/cache_lock.py": "compiled code that is kept",
    "cpu/_compiled/machine_code.py": "compiled code that is kept",
    "cpu/_compiled/intrinsics.py": "what the processor can do",
    "cuda/_ptx.py": "compiled code that is kept",
}
OPENS = {"open", "fdopen", "mkstemp", "fromfile", "memmap", "glob", "iglob", "listdir", "scandir", "walk", "mkdir"}
OPENS |= {"makedirs", "rmdir", "unlink", "remove", "rename", "replace", "rmtree", "symlink", "link", "stat", "truncate"}
OPENS |= {"exists", "isdir", "isfile", "getsize"}
PATH_METHODS = {"read_text", "read_bytes", "write_text", "write_bytes", "touch"}
FORMATS = {"ByteStream", "RecordReader", "RecordWriter", "BundleReader", "BundleWriter", "SliceTableReader", "SSTable"}
FORMATS |= {"AtomicFile", "merge_bundles", "write_slice_table", "make_folder"}
MODULES = {"os", "path", "io", "np", "numpy", "glob", "tempfile", "shutil", "mmap", "pathlib", "gzip", "bz2", "lzma"}

#: A file without such a call need not be parsed.
CALLS = re.compile(rf"\b({'|'.join(sorted(OPENS | PATH_METHODS | FORMATS))})\(")


def openings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        function = call.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name in FORMATS and not any(keyword.arg == "files" for keyword in call.keywords):
            yield call.lineno, f"{name} without files="
        elif isinstance(function, ast.Name) and name == "open":
            yield call.lineno, "open"
        elif isinstance(function, ast.Attribute) and name in PATH_METHODS:
            yield call.lineno, name
        elif isinstance(function, ast.Attribute) and name in OPENS:
            owner = function.value
            last = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
            if last in MODULES:
                yield call.lineno, f"{last}.{name}"


def test_kernels_open_files_in_one_place() -> None:
    found = {}
    for path in sorted(KERNELS.rglob("*.py")):
        where = path.relative_to(KERNELS).as_posix()
        text = path.read_text(encoding="utf-8")
        if where in OWN or not CALLS.search(text):
            continue
        for line, what in openings(ast.parse(text)):
            found[f"{where}:{line}"] = what
    assert not found, f"open files of a graph by tenfold_core.graph_files.graph_files(): {found}"


def test_what_is_the_runtimes_own_is_still_there() -> None:
    for where in OWN:
        assert list(openings(ast.parse((KERNELS / where).read_text(encoding="utf-8")))), f"{where} opens nothing"


def test_the_test_sees_every_way() -> None:
    source = "open(x); os.open(x, 0); x.read_bytes(); glob.glob(x); np.fromfile(x); os.path.exists(x); ByteStream(x)"
    assert len(list(openings(ast.parse(source)))) == 7
    assert not list(openings(ast.parse("ByteStream(x, files=graph_files()); graph_files().read_whole(x); a.open(x)")))
