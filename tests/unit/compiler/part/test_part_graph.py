"""What nodes say of their edges and keys, and how an error becomes that of its node."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from support.parts import PartBuilder
from tenfold_compiler.part.part_graph import PartGraph, PartNode, is_back_edge, is_variable, node_error, sources_of
from tenfold_compiler.part.read_part import read_part
from tenfold_core import dtypes, errors
from tenfold_protos.node_def_pb2 import NodeDef

TASK = "/job:localhost/replica:0/task:0"
F32 = dtypes.float32


def loop() -> list[PartNode]:
    part = PartBuilder()
    part.feed("x")
    part.node("NoOp", "first")
    part.node("Enter", "enter", ["x"], T=F32, frame_name="f")
    part.node("Merge", "merge", ["enter", "next", "^first"], T=F32, N=2)
    part.node("Neg", "neg", ["merge", "^enter"], T=F32)
    part.node("NextIteration", "next", ["neg"], T=F32)
    part.node("Merge", "branches", ["x", "x"], T=F32, N=2)
    return read_part(part.graph_def, TASK, 100).nodes


def test_what_a_node_waits_for() -> None:
    nodes = loop()
    at = {node.name: node for node in nodes}
    names = lambda indices: [nodes[index].name for index in indices]  # noqa: E731
    assert names(at["merge"].sources) == ["enter", "next", "first"]
    assert names(sources_of(nodes, at["merge"])) == ["enter", "first"]
    assert names(sources_of(nodes, at["neg"])) == ["merge", "enter"]
    assert names(sources_of(nodes, at["next"])) == ["neg"]
    assert is_back_edge(nodes, at["merge"], at["next"].index)
    assert not is_back_edge(nodes, at["merge"], at["enter"].index)
    assert not is_back_edge(nodes, at["neg"], at["next"].index)
    assert [node.name for node in nodes if is_variable(nodes, node)] == ["merge"]


def test_a_part_that_was_not_read_says_nothing_of_its_size_and_frames() -> None:
    part = PartGraph([], False)
    assert (part.size, part.old_frames) == (0, False)


def test_keys_of_transfers() -> None:
    part = PartBuilder()
    key = part.recv("r", F32, "/job:worker/replica:0/task:0/device:CPU:0", 0x1F)
    fed = part.feed("x")
    nodes = {node.name: node for node in read_part(part.graph_def, TASK, 100).nodes}
    assert nodes["r"].rendezvous_key() == key
    assert nodes["r"].rendezvous_key("3:4") == key.removesuffix("0:0") + "3:4"
    assert nodes["x"].rendezvous_key() == fed
    assert (nodes["x"].client_terminated, nodes["r"].client_terminated) == (True, False)


def node(**more: Any) -> PartNode:
    made = PartNode(0, "n", "Neg", NodeDef(name="n", op="Neg", device="/device:GPU:0"), {}, (F32,), (F32,))
    for name, value in more.items():
        setattr(made, name, value)
    return made


class FakeMemoryError(MemoryError):
    shape, dtype = (2, 3), np.dtype(np.float32)


TABLE = [
    (errors.not_found("gone"), errors.NotFoundError, r"^gone\n\t \[\[{{node n}}\]\]$"),
    (errors.not_found("gone [[{{node other}}]]"), errors.NotFoundError, r"^gone \[\[{{node other}}\]\]$"),
    (MemoryError(), errors.ResourceExhaustedError, r"^OOM: the memory is used up"),
    (MemoryError("enough"), errors.ResourceExhaustedError, r"^OOM: enough"),
    (FakeMemoryError(), errors.ResourceExhaustedError, r"shape\[2,3\].*float"),
    (
        ValueError("array is too big; x"),
        errors.InvalidArgumentError,
        r"^Neg would make an array beyond any memory: a",
    ),
    (ValueError("Maximum allowed dimension exceeded"), errors.InvalidArgumentError, r"beyond any memory: Maximum"),
    (ValueError("iterator is too large"), errors.InvalidArgumentError, r"beyond any memory: iterator"),
    (
        ValueError("The truth value of an array"),
        errors.InvalidArgumentError,
        r"^What a branch or a loop asks of Neg",
    ),
    (ValueError("other"), errors.InternalError, r"^Neg failed with ValueError: other\n\t \[\[{{node n}}\]\]$"),
    (TypeError("array is too big"), errors.InternalError, r"^Neg failed with TypeError"),
    (TypeError("The truth value of an"), errors.InternalError, r"^Neg failed with TypeError"),
]


@pytest.mark.parametrize(("error", "kind", "text"), TABLE)
def test_an_error_becomes_that_of_its_node(error: Exception, kind: type[errors.OpError], text: str) -> None:
    made = node_error(node(), error)
    assert type(made) is kind
    assert re.search(text, made.message), made.message
    assert "on /device" not in made.message
    if made is not error:
        assert made.node_def.name == "n"  # type: ignore[union-attr]


def test_an_error_that_names_a_node_is_kept() -> None:
    error = errors.internal("x [[{{node other}}]]")
    assert node_error(node(), error) is error


@pytest.mark.parametrize("error", [MemoryError(), ValueError("other")])
def test_what_fails_on_a_gpu_names_it(error: Exception) -> None:
    assert " (on /device:GPU:0)\n" in node_error(node(memory=((True,), (True,))), error).message
    other = node(copy_of=NodeDef(name="origin", op="Add"))
    made = node_error(other, error)
    assert " (on /device:GPU:0)\n" in made.message
    assert made.message.endswith("[[{{node origin}}]]")


def test_wrong_inputs_of_a_gpu_s_node_do_not_name_it() -> None:
    assert "(on" not in node_error(node(memory=((True,), (True,))), errors.invalid_argument("bad")).message


def test_an_error_of_a_node_that_was_not_read_yet() -> None:
    made = node_error(NodeDef(name="d", op="Op", device="/device:GPU:0"), KeyError("k"))
    assert made.message == "Op failed with KeyError: 'k'\n\t [[{{node d}}]]"
