"""Which part of the wide nets is about a file: tests that ask a whole family what TensorFlow answered.

No import tells, and they come before all other tests of a file, as they are quick and say most.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

from support.mirror import ROOT

KERNELS = "tests/kernels/test_kernel_net.py"
GRADIENTS = "tests/kernels/test_gradients_as_tensorflow.py"
#: Whether each op has a row of gradients, one that there is none among them.
ROWS = "tests/unit/client/gradients/test_rows.py"
PROGRAMS = "tests/kernels/test_program_net.py"
#: Nets of all sorts of kernels, of which little is about one file.
WHOLE = (KERNELS, PROGRAMS)
_LOOPS = Path("kernels/tenfold_kernels/cpu/_compiled")
_INTRINSICS = _LOOPS / "intrinsics.py"
#: How a file is called that a family of programs is about, by the family.
_FAMILIES = {
    "tensor_arrays": ("tensor_arrays", "data_flow_array"),
    "lists": ("tensor_lists", "list", "list_whole"),
    "stacks": ("tensor_arrays", "data_flow_array"),
    "queues": ("queues", "queue_stores", "data_flow_queue", "waiting", "elements"),
    "tables": ("lookup_tables", "table_entries", "lookup"),
    "barriers": ("barriers", "data_flow_barrier"),
    "accumulators": ("accumulators", "data_flow_accumulator"),
    "stages": ("staging", "data_flow_stage", "data_flow_map_stage"),
    "checkpoints": ("io_checkpoint", "io"),
    "files": ("readers", "io_readers", "io"),
}


def tests_of(path: Path) -> list[str]:
    """Test files, or single tests of them, nearest first."""
    if path.parts[:3] == ("client", "tenfold", "gradients"):
        if path.stem.startswith("loop_"):
            near = dict.fromkeys((f"test_{path.stem}.py", "test_loop_state.py", "test_control_flow.py"))
            programs = [f"{GRADIENTS}::test_gradients[{program}]" for program in ("while_loop", "cond")]
            return [*(f"tests/unit/client/gradients/{test}" for test in near), *programs]
        rules = [f"{GRADIENTS}::test_gradients[{op}]" for op in _rules_by_file().get(str(path), [])]
        return [*rules, ROWS] if rules else []
    if path.parts[:2] != ("kernels", "tenfold_kernels") or "cuda" in path.parts:
        return []
    families = [family for family, stems in _FAMILIES.items() if path.stem in stems]
    if "datasets" in path.parts or path.stem.startswith("dataset"):
        families += ["datasets", "mapped"]
    if families:
        return _single(PROGRAMS, families)
    if path.stem == "optimizer_rules" or (path.stem.startswith("state") and "resources" not in path.parts):
        return [PROGRAMS]
    if "cpu" not in path.parts:
        return []
    if "update" in path.stem:
        return [PROGRAMS, KERNELS]
    ops = list(dict.fromkeys(op for user in [path, *kernels_with(path)] for op in _ops_by_file().get(str(user), [])))
    return _single(KERNELS, ops) if ops else [KERNELS]


def serves_all_rules(path: Path) -> bool:
    """Whether this is what the rules of gradients share: tests of its own say more of it than a rule's."""
    return path.parts[:3] == ("client", "tenfold", "gradients") and str(path) not in _rules_by_file()


def of_all_rules() -> list[str]:
    """Tests of gradients through all sorts of ops."""
    near = sorted((ROOT / "tests/unit/client/gradients").glob("test_*.py"))
    return [*(str(found.relative_to(ROOT)) for found in near), GRADIENTS]


def kernels_with(path: Path) -> list[Path]:
    """The files of kernels that import a file of loops, or a helper of theirs that does."""
    texts = {found: found.read_text(encoding="utf-8") for found in sorted((ROOT / _LOOPS.parent).glob("*.py"))}
    found: list[Path] = []
    waiting = [path] if path.parent == _LOOPS else []
    while waiting:
        one = waiting.pop()
        package = r"\.".join(one.parent.parts[1:])
        imported = re.compile(rf"^ *from {package}(\.{one.stem} import\b| import .*\b{one.stem}\b)", re.M)
        users = [user.relative_to(ROOT) for user, text in texts.items() if imported.search(text)]
        waiting += [user for user in users if user.stem.startswith("_") and user not in found]
        found += [user for user in users if user not in found]
    return found


def users_of_code(path: Path) -> list[Path]:
    """The loops that Numba builds code of this file into, where it writes intrinsics: those that name one of them.

    Numba keeps a loop's machine code until the loop's own file changes, whatever its intrinsics' helpers do.
    """
    names = [name for module, name in _intrinsics() if path == _LOOPS / f"{module}.py"]
    if not names:
        return []
    imported = re.compile(rf"^from \S*\.(intrinsics|{path.stem}) import", re.M)
    named = re.compile(rf"(?<![\w.])({'|'.join(names)})\(")
    texts = {found: found.read_text(encoding="utf-8") for found in sorted((ROOT / _LOOPS).glob("*.py"))}
    return [
        found.relative_to(ROOT)
        for found, text in texts.items()
        if found != ROOT / path and imported.search(text) and named.search(text)
    ]


@functools.cache
def _intrinsics() -> list[tuple[str, str]]:
    """The module and the name of each."""
    return re.findall(r'Intrinsic\("(\w+)", "(\w+)"\)', (ROOT / _INTRINSICS).read_text(encoding="utf-8"))


def _single(test: str, kinds: list[str]) -> list[str]:
    return [f"{test}::test_answers_as_tensorflow[{kind}]" for kind in kinds]


@functools.cache
def _rules_by_file() -> dict[str, list[str]]:
    """A file of gradients → the ops of the net that it has rules for."""
    from support.gradient_answers import group_of, read
    from tenfold.gradients import registry

    found: dict[str, list[str]] = {}
    for op in dict.fromkeys(map(group_of, read())):
        place = registry._rows[op].place if registry.has_row(op) else ""
        if place.startswith(str(ROOT)):
            found.setdefault(str(Path(place.rpartition(":")[0]).relative_to(ROOT)), []).append(op)
    return found


@functools.cache
def _ops_by_file() -> dict[str, list[str]]:
    """A file of kernels → the ops of the net that it computes."""
    from support.kernel_net import answers
    from tenfold_kernels import registry

    found: dict[str, list[str]] = {}
    for op in answers.table():
        for row in registry._rows_of(op, "CPU"):
            path = str(Path(row.place.rpartition(":")[0]).relative_to(ROOT))
            ops = found.setdefault(path, [])
            if op not in ops:
                ops.append(op)
    return found
