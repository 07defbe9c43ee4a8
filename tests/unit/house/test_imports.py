"""Imports point one way, inside the packages too, no two modules need each other, and `import tenfold` stays cheap.

    protos ◄── core ◄──┬── kernels ◄── compiler ◄── services
                       ├── link    ◄── services, client
                       └── client  ◄── control_api

The direction is read from the syntax trees, so that an import nobody runs counts too; the cost is seen by a fresh
interpreter. An import inside a function counts like any other. An import inside `if TYPE_CHECKING:` obeys the same
direction, and makes a circle like any other.
"""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[3]
ROOTS = {
    "tenfold_protos": "protos",
    "tenfold_core": "core",
    "tenfold_link": "link",
    "tenfold": "client",
    "tenfold_kernels": "kernels",
    "tenfold_compiler": "compiler",
    "tenfold_services": "services",
    "tenfold_control_api": "control_api",
}

#: Who may import whom: the longest matching name rules. Each name stands for itself and everything under it.
ALLOWED = {
    "tenfold_protos": {"tenfold_protos"},
    "tenfold_core": {"tenfold_core", "tenfold_protos"},
    "tenfold_link": {"tenfold_link", "tenfold_core", "tenfold_protos"},
    "tenfold": {"tenfold", "tenfold_link", "tenfold_core", "tenfold_protos"},
    "tenfold_kernels": {"tenfold_kernels", "tenfold_core", "tenfold_protos"},
    "tenfold_compiler": {"tenfold_compiler", "tenfold_kernels", "tenfold_core", "tenfold_protos"},
    "tenfold_services": {
        *("tenfold_services", "tenfold_compiler", "tenfold_kernels"),
        *("tenfold_link", "tenfold_core", "tenfold_protos"),
    },
    # sessions are those of clients, and so is what traces become; a submission names a launcher and a program, a sweep
    # its settings; a model follows the checkpoints of a training
    "tenfold_control_api": {
        *("tenfold_control_api", "tenfold.session", "tenfold.profiler", "tenfold.launchers"),
        *("tenfold.runs.entrypoint", "tenfold.sweeps", "tenfold.train.checkpoint_follower"),
        *("tenfold_core", "tenfold_protos"),
    },
}
#: What some may import besides, but only inside a function or for type checking: at call time, never at import time.
ALLOWED_LATE = {
    "tenfold.train": {"tenfold_services"},
    "tenfold.session": {"tenfold_services"},
    "tenfold.cli": {"tenfold_services", "tenfold_control_api"},
}
#: Fences inside the packages: what a folder may not import of its own package, at run time or for types.
FENCES = {
    "tenfold_link.memory": {"tenfold_link.wire", "tenfold_link.aio", "tenfold_link.blocking"},
    "tenfold_link.wire": {"tenfold_link.aio", "tenfold_link.blocking"},
    "tenfold_link.aio": {"tenfold_link.blocking"},
    "tenfold_link.blocking": {"tenfold_link.aio"},
    "tenfold_kernels.resources": {"tenfold_kernels.cpu"},
    # a graph is cut into parts, a part is read, optimized, fused and written
    "tenfold_compiler.graph": {
        *("tenfold_compiler.part", "tenfold_compiler.optimize", "tenfold_compiler.fuse", "tenfold_compiler.write"),
    },
    "tenfold_compiler.part": {"tenfold_compiler.optimize", "tenfold_compiler.fuse", "tenfold_compiler.write"},
    "tenfold_compiler.optimize": {"tenfold_compiler.fuse", "tenfold_compiler.write"},
    "tenfold_compiler.fuse": {"tenfold_compiler.optimize", "tenfold_compiler.write"},
    "tenfold_compiler.write": {"tenfold_compiler.graph", "tenfold_compiler.optimize"},
    "tenfold_services.interfaces": {
        *("tenfold_compiler", "tenfold_services.worker", "tenfold_services.master", "tenfold_services.rpc"),
    },
    "tenfold_services.worker": {"tenfold_services.master", "tenfold_services.rpc"},
    "tenfold_services.master": {"tenfold_services.rpc"},
    "tenfold_services.http2": {"tenfold_services.worker", "tenfold_services.master", "tenfold_services.rpc"},
    "tenfold.graph": {"tenfold.ops", "tenfold.gradients", "tenfold.session", "tenfold.train"},
    "tenfold.ops": {"tenfold.session", "tenfold.train"},
    # tenfold.control finds the master of a tenfold:// target; it knows nothing of sessions on masters.
    "tenfold.session": {"tenfold.train", "tenfold.cli"},
    "tenfold.control": {"tenfold.session", "tenfold.train", "tenfold.cli"},
    "tenfold.train": {"tenfold.cli"},
}
#: Groups of modules that name each other, annotations counted, each by its first module with its reason: the client and
#: kernels/cuda have three at most, the others none.
CIRCLES: dict[str, str] = {
    "tenfold.graph.constant_value": "a graph, its operations and its tensors are one object in three parts",
    "tenfold.runs.by_hand": "a session begins its program's reports, which trace steps of the session",
    "tenfold_kernels.cuda._arrays": "a GPU's arrays belong to its runtime, which makes them",
}
#: Libraries at home in one place. The second set may import them late.
HOMES: dict[str, tuple[set[str], set[str]]] = {
    "numba": ({"tenfold_kernels"}, set()),
    "fastapi": ({"tenfold_control_api"}, set()),
    "starlette": ({"tenfold_control_api"}, set()),
    "sqlalchemy": ({"tenfold_control_api"}, set()),
    "uvicorn": ({"tenfold_control_api"}, {"tenfold.cli"}),
    "httpx": ({"tenfold.control"}, {"tenfold.cli", "tenfold_control_api.events.webhooks"}),
    "grpc.aio": ({"tenfold_services"}, set()),
    "grpc": (
        {"tenfold_services", "tenfold.session"},
        {"tenfold.session", "tenfold.cli", "tenfold_control_api", "tenfold_core.access.channel"},
    ),
    "cryptography": ({"tenfold_core.access.issue"}, set()),
    "ray": (set(), {"tenfold.launchers.ray", "tenfold.launchers.ray_actor"}),
    "kubernetes": (set(), {"tenfold.launchers.kubernetes_api", "tenfold.distribute.cluster_resolver.kubernetes"}),
    "urllib3": (set(), {"tenfold.launchers.kubernetes_api", "tenfold.distribute.cluster_resolver.kubernetes"}),
    "asyncio": (
        {"tenfold_services", "tenfold_link.aio", "tenfold_control_api", "tenfold.control.transport"},
        {"tenfold.cli"},
    ),
    "click": ({"tenfold.cli"}, set()),
    "absl": ({"tenfold.flags"}, set()),
    "rich": ({"tenfold.cli"}, {"tenfold.control"}),
}


@dataclass(frozen=True)
class Import:
    importer: str
    imported: str
    line: int
    #: Inside a function or an `if TYPE_CHECKING:`.
    late: bool
    #: Inside an `if TYPE_CHECKING:`: nothing is loaded.
    typing: bool = False

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported}{' (late)' if self.late else ''}"


def modules() -> Iterator[tuple[str, Path]]:
    for package, folder in ROOTS.items():
        for path in sorted((ROOT / folder / package).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports_of(module: str, tree: ast.AST, *, is_package: bool) -> list[Import]:
    found: list[Import] = []

    def walk(node: ast.AST, late: bool, typing: bool) -> None:
        if isinstance(node, ast.Import):
            found.extend(Import(module, alias.name, node.lineno, late, typing) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = module.split(".") if is_package else module.split(".")[:-1]
                base = ".".join([*package[: len(package) - node.level + 1], *([base] if base else [])])
            # `from tenfold import session` reaches tenfold.session.
            names = (f"{base}.{alias.name}" for alias in node.names)
            found.extend(Import(module, name, node.lineno, late, typing) for name in names)
        elif isinstance(node, ast.expr):
            return  # nothing is imported in an expression
        late = late or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        only_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for child in ast.iter_child_nodes(node):
            guarded = only_types and child in node.body
            walk(child, late or guarded, typing or guarded)

    walk(tree, False, False)
    return found


def under(name: str, owners: set[str]) -> bool:
    return any(name == owner or name.startswith(owner + ".") for owner in owners)


def rule(table: dict[str, set[str]], module: str) -> set[str]:
    best = max((name for name in table if under(module, {name})), key=len, default=None)
    return table[best] if best else set()


@functools.cache
def all_imports() -> list[Import]:
    found: list[Import] = []
    for module, path in modules():
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        found.extend(imports_of(module, tree, is_package=path.name == "__init__.py"))
    return found


def test_imports_point_one_way() -> None:
    wrong = []
    for found in all_imports():
        if found.imported.split(".")[0] not in ROOTS:
            continue
        allowed = rule(ALLOWED, found.importer) | (rule(ALLOWED_LATE, found.importer) if found.late else set())
        if not under(found.imported, allowed):
            wrong.append(str(found))
    assert not wrong, "\n".join(wrong)


def test_folders_inside_a_package_keep_their_order() -> None:
    wrong = [str(found) for found in all_imports() if under(found.imported, rule(FENCES, found.importer))]

    assert not wrong, "\n".join(wrong)


def circles() -> list[list[str]]:
    """Groups of modules that reach each other through imports: Tarjan's strongly connected components."""
    known = {name for name, _ in modules()}
    needs: dict[str, set[str]] = {name: set() for name in known}
    for found in all_imports():
        target = found.imported if found.imported in known else found.imported.rpartition(".")[0]
        if target in known and target != found.importer:
            needs[found.importer].add(target)
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = lowest[name] = len(order)
        stack.append(name)
        for other in sorted(needs[name]):
            if other not in order:
                visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in stack:
                lowest[name] = min(lowest[name], order[other])
        if lowest[name] == order[name]:
            at = stack.index(name)
            if len(stack) - at > 1:
                groups.append(sorted(stack[at:]))
            del stack[at:]

    for name in sorted(known):
        if name not in order:
            visit(name)
    return groups


def test_no_two_modules_name_each_other() -> None:
    found = circles()

    assert {group[0] for group in found} == set(CIRCLES), "\n".join(" ↔ ".join(group) for group in found)
    assert len(CIRCLES) <= 3, "at most three, each with its reason"
    homes = ("tenfold.", "tenfold_kernels.cuda.")
    assert all(name.startswith(homes) for group in found for name in group)


def test_libraries_stay_at_home() -> None:
    wrong = []
    for found in all_imports():
        library = max((name for name in HOMES if under(found.imported, {name})), key=len, default=None)
        if library is None:
            continue
        homes, late_homes = HOMES[library]
        if not (under(found.importer, homes) or (found.late and under(found.importer, late_homes))):
            wrong.append(str(found))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("source", "imported", "late", "typing"),
    [
        ("import grpc", "grpc", False, False),
        ("from tenfold import session", "tenfold.session", False, False),
        ("from . import tables", "tenfold.x.tables", False, False),
        ("from ..graph.tensor import Tensor", "tenfold.graph.tensor.Tensor", False, False),
        ("def f():\n    import numba", "numba", True, False),
        ("if TYPE_CHECKING:\n    import numba", "numba", True, True),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    import numba", "numba", False, False),
        ("class A:\n    import numba", "numba", False, False),
    ],
)
def test_how_imports_are_read(source: str, imported: str, late: bool, typing: bool) -> None:
    (found,) = imports_of("tenfold.x.y", ast.parse(source), is_package=False)

    assert (found.imported, found.late, found.typing) == (imported, late, typing)


#: What `import tenfold` must not load: each of these costs more than all of Tenfold's own modules.
HEAVY = ["grpc", "numba", "llvmlite", "fastapi", "starlette", "pydantic", "uvicorn", "sqlalchemy", "httpx", "asyncio"]


#: `import tenfold` alone loads a table of names and would pass whatever stood behind them; so the names are used, too.
#: tf.control is the client of the control service: it is httpx, and loaded only by who asks for it.
CHEAP = [
    "import tenfold",
    "import tenfold as tf; [getattr(tf, name) for name in dir(tf) if name != 'control']; assert 'numpy' in sys.modules",
    "import tenfold as tf; tf.gradients(tf.square(tf.Variable(1.0)), tf.trainable_variables())",
    "import tenfold as tf; [getattr(tf.train, name) for name in dir(tf.train)]; tf.Session; tf.train.Server",
    "import tenfold.cli.main",
]


@pytest.mark.parametrize("program", CHEAP)
def test_import_is_cheap(program: str) -> None:
    code = f"import sys; {program}; print([name for name in {HEAVY!r} if name in sys.modules])"

    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
