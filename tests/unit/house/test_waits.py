"""Every await and every wait of a thread has a deadline, or an owner that ends it, who is named in waits.txt.

Read from the syntax tree of all packages: calls that may wait for ever (`event.wait()`, `queue.get()`, `sock.recv(…)`,
`future.result()`, …) without a time-out, and awaits of futures and events outside `asyncio.timeout`. `with lock:` does
not count: it waits for a section of code, and what waits in that section is found itself. A wait of our own functions
does not count either: their waits do.
"""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("core", "link", "client", "kernels", "compiler", "services", "control_api")
LIST = Path(__file__).with_name("waits.txt")

#: Methods that wait → the number of positional arguments from which on there is a time-out among them.
WAITS = {
    "wait": 1, "wait_for": 2, "join": 1, "result": 1, "get": 1, "acquire": 1, "poll": 1, "select": 1,
    "communicate": 2, "recv": 99, "recv_into": 99, "recvmsg": 99, "recvmsg_into": 99, "accept": 99, "recv_bytes": 99,
}  # fmt: skip
#: Functions of modules that wait, in the same way.
MODULES = {
    ("asyncio", "wait"): 99, ("asyncio", "shield"): 99, ("asyncio", "wait_for"): 2,
    ("subprocess", "run"): 99, ("subprocess", "check_output"): 99, ("select", "select"): 4, ("futures", "wait"): 2,
    ("os", "waitpid"): 99, ("fcntl", "flock"): 99, ("signal", "sigwait"): 99,
}  # fmt: skip
#: A file without them need not be parsed.
WORDS = re.compile(rf"\bawait\b|\.({'|'.join({*WAITS, *(name for _, name in MODULES)})})\(")
#: Keywords that bound a wait, or make it none.
BOUNDS = ("timeout", "blocking", "stop_grace_period_secs")
#: Of `async with asyncio.…(seconds)`, within which awaits have a deadline.
DEADLINES = ("timeout", "timeout_at")
#: Owners of methods that only look, or make something: `process.poll()`, `select.poll()`.
LOOKS = ("process", "select")


class Wait(NamedTuple):
    """A wait without a deadline: where (file:function), and what is written there."""

    where: str
    text: str
    line: int


class Finder(ast.NodeVisitor):
    def __init__(self, path: str) -> None:
        self._path = path
        self._scopes: list[str] = []
        #: Inside so many blocks of `async with asyncio.timeout(…)`.
        self._bounded = 0
        self.found: list[Wait] = []

    def _scope(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self._scopes.append(node.name)
        bounded, self._bounded = self._bounded, 0
        self.generic_visit(node)
        self._bounded = bounded
        self._scopes.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _scope

    def visit_AsyncWith(self, node: ast.AsyncWith) -> None:
        bound = any(_name(item.context_expr) in DEADLINES and _has_time(item.context_expr) for item in node.items)
        self._bounded += bound
        self.generic_visit(node)
        self._bounded -= bound

    def visit_Await(self, node: ast.Await) -> None:
        value = node.value
        if isinstance(value, ast.Call):
            if _waits(value):
                self._note(node)
            for part in (value.func, *value.args, *(keyword.value for keyword in value.keywords)):
                self.visit(part)
            return
        self._note(node)
        self.visit(value)

    def visit_Call(self, node: ast.Call) -> None:
        if _waits(node) and not _is_made_only(node):
            self._note(node)
        self.generic_visit(node)

    def _note(self, node: ast.expr) -> None:
        if not self._bounded or not isinstance(node, ast.Await):
            where = f"{self._path}:{'.'.join(self._scopes) or '<module>'}"
            self.found.append(Wait(where, " ".join(ast.unparse(node).split()), node.lineno))


def _name(node: ast.expr) -> str:
    """Of a call: the last part of its name."""
    function = node.func if isinstance(node, ast.Call) else node
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _has_time(node: ast.expr) -> bool:
    """Whether a call of asyncio.timeout is given a time that is not None."""
    return isinstance(node, ast.Call) and not any(isinstance(a, ast.Constant) and a.value is None for a in node.args)


def _waits(call: ast.Call) -> bool:
    """Whether a call may wait without a bound of its own."""
    if not isinstance(call.func, ast.Attribute):
        return False
    owner, name = call.func.value, call.func.attr
    enough = MODULES.get((_name(owner), name)) or WAITS.get(name)
    if enough is None or isinstance(owner, ast.Constant) or (name == "poll" and _name(owner) in LOOKS):
        return False
    if name == "shield" and isinstance(call.args[0], ast.Call):
        return False  # a coroutine of ours
    if name == "flock" and "LOCK_NB" in ast.unparse(call):
        return False
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    bound = next((given[word] for word in BOUNDS if word in given), None)
    if bound is not None:
        return isinstance(bound, ast.Constant) and bound.value in (None, True)
    if None in given or any(isinstance(argument, ast.Starred) for argument in call.args):
        return (_name(owner), name) in MODULES
    return len(call.args) < enough


def _is_made_only(call: ast.Call) -> bool:
    """A coroutine or future that is made here; it is waited for where it is awaited."""
    return isinstance(call.func, ast.Attribute) and (_name(call.func.value), call.func.attr) in {
        ("asyncio", "wait"), ("asyncio", "shield"), ("asyncio", "wait_for"),
    }  # fmt: skip


def waits_of(text: str, path: str = "file.py") -> list[Wait]:
    finder = Finder(path)
    finder.visit(ast.parse(text))
    return finder.found


@functools.cache
def all_waits() -> list[Wait]:
    found: list[Wait] = []
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            if "generated" not in file.parts:
                path, text = str(file.relative_to(ROOT)), file.read_text()
                found += waits_of(text, path) if WORDS.search(text) else []
    return found


def allowed() -> dict[tuple[str, str], str]:
    """(where, text) → the reason of waits.txt that stands above it."""
    entries: dict[tuple[str, str], str] = {}
    reason = ""
    for line in LIST.read_text().splitlines():
        if line.startswith("= "):
            reason = line[2:]
        elif line and not line.startswith("#"):
            where, _, text = line.partition("  ")
            assert reason, f"{line!r} has no reason above it"
            assert (where, text) not in entries, f"{line!r} stands there twice"
            entries[where, text] = reason
    return entries


def test_every_wait_has_a_deadline_or_an_owner() -> None:
    known = allowed()
    without = [f"{wait.where} (line {wait.line}): {wait.text}" for wait in all_waits() if wait[:2] not in known]
    assert not without, (
        "these waits have no deadline. Give them one; if something ends each of them for sure, "
        f"name it in {LIST.name}:\n" + "\n".join(without)
    )


def test_the_list_names_no_wait_that_is_gone() -> None:
    found = {wait[:2] for wait in all_waits()}
    gone = ["  ".join(entry) for entry in allowed() if entry not in found]
    assert not gone, "these are no waits any more:\n" + "\n".join(gone)


@pytest.mark.parametrize(
    "code",
    [
        "done.wait()",
        "lock.acquire()",
        "lock.acquire(blocking=True)",
        "thread.join()",
        "thread.join(timeout=None)",
        "future.result()",
        "queue.get()",
        "sock.recv(10)",
        "listener.accept()",
        "poller.poll()",
        "selector.select()",
        "select.select(a, b, c)",
        "condition.wait_for(lambda: done)",
        "subprocess.run(command)",
        "os.waitpid(pid, 0)",
        "fcntl.flock(file, fcntl.LOCK_EX)",
        "async def f(): await future",
        "async def f(): await self._ended",
        "async def f(): await event.wait()",
        "async def f(): await asyncio.wait(tasks)",
        "async def f(): await asyncio.shield(task)",
        "async def f(): await asyncio.wait_for(task, timeout=None)",
        "async def f():\n async with asyncio.timeout(None):\n  await future",
        "async def f():\n async with asyncio.timeout(9):\n  async def g():\n   await future",
        "async def f():\n async with asyncio.timeout(9):\n  thread.join()",
    ],
)
def test_a_wait_without_a_deadline_is_found(code: str) -> None:
    assert [wait.where for wait in waits_of(code)] in (["file.py:f"], ["file.py:<module>"], ["file.py:f.g"])


@pytest.mark.parametrize(
    "code",
    [
        "done.wait(5)",
        "lock.acquire(timeout=5)",
        "lock.acquire(blocking=False)",
        "thread.join(5)",
        "', '.join(words)",
        "known.get(key)",
        "process.poll()",
        "poller.poll(100)",
        "subprocess.run(command, timeout=5)",
        "fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "with lock: pass",
        "async def f(): await self.own()",
        "async def f(): await asyncio.gather(one(), two())",
        "async def f(): await asyncio.wait(tasks, timeout=5)",
        "async def f(): await asyncio.wait_for(task, 5)",
        "async def f(): await asyncio.shield(own())",
        "async def f():\n async with asyncio.timeout(9):\n  await future",
    ],
)
def test_what_has_a_deadline_or_is_no_wait_is_not(code: str) -> None:
    assert waits_of(code) == []
