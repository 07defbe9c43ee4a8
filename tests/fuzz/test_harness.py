"""What counts as a fault, how a find is made small, and what the pieces of inputs come to."""

from __future__ import annotations

import dis
import random
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fuzz import harness, messages, pieces, replay, run
from tenfold_core import errors
from tenfold_protos.graph_pb2 import GraphDef

if TYPE_CHECKING:
    from collections.abc import Callable


def target(one_input: Callable[[bytes], None]) -> Any:
    return SimpleNamespace(one_input=one_input, seeds=lambda: iter(()))


def test_documented_errors_are_taken_and_others_are_not() -> None:
    with harness.refusals(ValueError):
        raise ValueError
    with harness.refusals():
        raise errors.DataLossError(None, None, "cut off")
    with pytest.raises(harness.Fault, match="an InternalError: KeyError") as caught, harness.refusals():
        raise errors.InternalError(None, None, "KeyError: 'a'")
    assert isinstance(caught.value.__cause__, errors.InternalError)
    with pytest.raises(KeyError), harness.refusals(ValueError):
        raise KeyError


def test_watched_code_compares_arrays_as_python_does() -> None:
    traced: list[Any] = []
    compare = run.without_arrays(lambda *given: traced.append(given))

    for number, name in enumerate(dis.cmp_op[:6]):
        found = compare(np.arange(3), 1, number, 7, False)
        assert found.tolist() == [eval(f"each {name} 1") for each in range(3)]
    assert compare(1, np.arange(2), 4, 7, False).tolist() == [True, False]
    assert not traced
    compare(1, 2, 3, 7, True)
    assert traced == [(1, 2, 3, 7, True)]


def test_an_input_that_takes_long_is_a_fault() -> None:
    def compute(data: bytes) -> None:
        end = time.process_time() + 0.1
        while time.process_time() < end:
            pass

    harness.attempt(target(compute), b"", seconds=60.0)
    with pytest.raises(harness.Fault, match=r"it took 0\.\d s, and 0\.01 s are allowed"):
        harness.attempt(target(compute), b"", seconds=0.01)


def test_a_fault_is_named_by_its_type_and_place() -> None:
    def fail(data: bytes) -> None:
        raise LookupError(data)

    with pytest.raises(LookupError) as caught:
        harness.attempt(target(fail), b"")
    line = fail.__code__.co_firstlineno + 1
    assert harness.signature(caught.value) == f"LookupError-test_harness-{line}"


def test_a_find_becomes_as_small_as_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(data: bytes) -> None:
        assert not (b"a" in data and data.endswith(b"z"))

    monkeypatch.setattr(harness, "load", lambda name: target(find))

    assert replay.least("any", b"1234a5678" * 9 + b"z") == b"az"
    assert replay.least("any", b"no fault") == b"no fault"


def test_pieces_come_apart_as_they_were_put_together() -> None:
    parts = [b"", b"a", bytes(70_000)]

    assert pieces.split(pieces.join(parts)) == parts
    assert pieces.split(pieces.join(parts)[:6]) == [b"", b""]
    chance = random.Random(0)
    for _ in range(200):
        parts = pieces.mutated(parts, chance)
    assert pieces.split(pieces.join(parts)) == parts


def test_a_mutated_message_is_a_message_still_and_another_one() -> None:
    graph = GraphDef()
    graph.node.add(name="a", op="Const").attr["dtype"].type = 1
    graph.node.add(name="b", op="Identity", input=["a"]).attr["T"].type = 1
    graph.library.function.add().signature.name = "f"
    seen = set()
    for seed in range(300):
        changed = messages.parsed(GraphDef, graph.SerializeToString())
        messages.mutated(changed, random.Random(seed))
        seen.add(changed.SerializePartialToString(deterministic=True))
        assert GraphDef.FromString(changed.SerializePartialToString()) is not None

    assert len(seen) > 150
    assert any(b"^a" in data or b"a:0" in data for data in seen), "no input was given another one's name"
    assert messages.parsed(GraphDef, b"\xff\xff") == GraphDef()


def test_without_the_fuzzer_the_command_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(run.sys, "argv", ["run.py"])

    assert run.main() == 2
    assert "pip install -e '.[fuzz]'" in capsys.readouterr().err
