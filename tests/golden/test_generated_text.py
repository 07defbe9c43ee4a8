"""The text that the compiler generates for some thirty programs, before and after fusion, is what generated/ holds.

A file a program: each text that was compiled, in the order of the steps, and the sources of fused groups. Nothing is
fused by LLVM here: a group's call is its nodes. `pytest tests/golden --rewrite` writes the files anew; a change to them
is to be understood, as a change of the code is.
"""

from __future__ import annotations

import builtins
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from support.parts import PartBuilder
from support.programs import compile_program
from tenfold.session.inprocess import stop_shared_server
from tenfold_compiler.fuse.fusion import Group
from tenfold_compiler.write import codegen
from tenfold_core import dtypes
from tenfold_kernels.fusion.compiler import FusionOptions
from tenfold_kernels.resources.state import ResourceManager

from .text_programs import PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FOLDER = Path(__file__).parent / "generated"
TASK, PEER = ("/job:worker/replica:0/task:" + number for number in "01")


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What was compiled; sources of groups as they are called for. The server of these sessions is the test's own:
    one that an earlier test has started fuses as that test's process did, and this one's would stay eager. What such a
    server still fuses in a thread of its own is not of this test."""
    found: list[str] = []
    build_as_ever = Group.build

    def is_of_another() -> bool:
        return threading.current_thread().name == "tenfold-fusion"

    def compiled(text: str, *others: Any, **named: Any) -> Any:
        if not is_of_another():
            found.append(text.strip("\n"))
        return builtins.compile(text, *others, **named)

    def build(group: Group, fallback: Callable[..., Any], most_turns: int) -> Callable[..., Any]:
        if is_of_another():
            return build_as_ever(group, fallback, most_turns)
        source = group.source
        if source is not None:
            found.append(f"# group {group.number}: {source[1]}\n{source[0].strip()}")
        return fallback

    monkeypatch.setattr(codegen, "compile", compiled, raising=False)
    monkeypatch.setattr(Group, "build", build)
    monkeypatch.setattr(FusionOptions, "from_environment", lambda *_: FusionOptions("eager"))
    stop_shared_server()
    yield found
    stop_shared_server()


def check(name: str, texts: list[str], rewrite: bool) -> None:
    text = "\n\n".join(texts) + "\n"
    path = FOLDER / f"{name}.txt"
    if rewrite:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_s_text_is_as_it_was(name: str, texts: list[str], rewrite: bool) -> None:
    with tf.Graph().as_default():
        tf.set_random_seed(7)
        steps, feeds = PROGRAMS[name]()
        begin = [tf.global_variables_initializer(), tf.local_variables_initializer()]
        with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
            session.run(begin)
            texts.clear()
            for step in steps:
                for _ in range(3):
                    session.run(step, feeds)
    check(name, texts, rewrite)


def test_text_of_a_part_that_receives_is_as_it_was(texts: list[str], rewrite: bool) -> None:
    part = PartBuilder(f"{TASK}/device:CPU:0")
    device = f"{PEER}/device:CPU:0"
    for name in ("a", "b"):
        part.recv(name, dtypes.float32, device, 2)
        part.node("Neg", f"minus_{name}", [name], T=dtypes.float32)
    part.feed("x")
    part.node("Add", "of_a", ["minus_a", "x"], T=dtypes.float32)
    part.node("Mul", "both", ["of_a", "minus_b"], T=dtypes.float32)
    part.node("Exp", "x_only", ["x"], T=dtypes.float32)
    part.node("Sub", "all", ["both", "x_only"], T=dtypes.float32)
    part.recv("late", dtypes.float32, device, 2, ["^both"])
    part.node("Add", "end", ["late", "all"], T=dtypes.float32)
    part.send("both", dtypes.float32, device, "edge_both")
    part.fetch("end")
    compile_program(part.graph_def, TASK, ResourceManager())
    check("received", texts, rewrite)


def _merge_of(part: PartBuilder, name: str, source: str, on: str, count: int) -> None:
    part.node("_SwitchN", f"{name}_switch", [source, on], T=dtypes.float32, num_outs=count)
    inputs = [f"{name}_switch:{number}" for number in range(count)]
    part.node("Merge", name, inputs, T=dtypes.float32, N=count)


def test_text_of_a_part_with_branches_that_others_hear_of_is_as_it_was(texts: list[str], rewrite: bool) -> None:
    """What is sent, received, fetched and waited for in a branch; Merges that say which input it was."""
    real, number, boolean = dtypes.float32, dtypes.int32, dtypes.bool_
    part = PartBuilder(f"{TASK}/device:CPU:0")
    device = f"{PEER}/device:CPU:0"
    part.feed("x")
    part.feed("p", boolean)
    part.node("Switch", "s", ["x", "p"], T=real)
    part.node("Neg", "no", ["s"], T=real)
    part.node("Exp", "yes", ["s:1"], T=real)
    part.send("yes", real, device, "edge_yes")
    part.fetch("no")
    part.node("Switch", "pivot", ["p", "p"], T=boolean)
    part.node("Identity", "taken", ["pivot:1"], T=boolean)
    part.recv("come", real, device, 2, ["^taken"])
    part.node("FIFOQueueV2", "queue", [], component_types=[real], shapes=[], capacity=1)
    part.node("QueueDequeueV2", "dequeued", ["queue", "^taken"], component_types=[real])
    part.node("Add", "got", ["come", "dequeued"], T=real)
    part.node("Merge", "m", ["no", "got"], T=real, N=2)
    part.fetch("m")
    part.fetch("m:1", number)
    part.node("Merge", "which", ["no", "yes"], T=real, N=2)
    part.fetch("which:1", number)
    for count in (1, 16, 17):
        part.feed(f"n{count}", number)
        _merge_of(part, f"m{count}", "x", f"n{count}", count)
        part.fetch(f"m{count}")
    part.fetch("m17:1", number)
    # of what comes dead or alive, the first that is alive
    part.recv("a", real, device, 2)
    part.recv("b", real, device, 2)
    part.node("Neg", "minus_a", ["a"], T=real)
    part.node("Merge", "any", ["minus_a", "b"], T=real, N=2)
    part.node("Sqrt", "root", ["any"], T=real)
    part.fetch("root")
    compile_program(part.graph_def, TASK, ResourceManager())
    check("branches_and_others", texts, rewrite)
