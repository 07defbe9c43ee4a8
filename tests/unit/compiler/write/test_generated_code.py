"""The one place that calls generated functions: contexts, denormals, and the node whose line failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.parts import PartBuilder
from tenfold_compiler.part.read_part import read_part
from tenfold_compiler.write.generated_code import GeneratedCode
from tenfold_core import dtypes, errors
from tenfold_kernels import contexts, denormals

if TYPE_CHECKING:
    from collections.abc import Callable

TASK = "/job:localhost/replica:0/task:0"


class Made:
    """Generated code of a part of two nodes, of which line 2 is that of `n`."""

    def __init__(self, kernel: Callable[[], Any], op: str = "Neg", lines: str = " k1()\n") -> None:
        part = PartBuilder()
        part.feed("x")
        part.node("Neg", "n", ["x"], T=dtypes.float32)
        nodes = read_part(part.graph_def, TASK, 100).nodes
        nodes[1].op = op
        namespace: dict[str, Any] = {"k1": kernel}
        exec(compile(f"def r0(s, send, fetch, stop):\n{lines}", "<test>", "exec"), namespace)
        self.function = namespace["r0"]
        self.code = GeneratedCode(
            nodes, [self.function], node_at_line={2: 1}, codes=frozenset((self.function.__code__,)), namespace=namespace
        )

    def call(self, *arguments: Any) -> None:
        self.code.call(self.function, *(arguments or ([], print, print, [])))


def fails(error: Exception) -> Callable[[], None]:
    def kernel() -> None:
        raise error

    return kernel


def test_the_function_gets_what_it_is_called_with() -> None:
    given = ([1], print, repr, [2])
    got: list[Any] = []
    made = Made(lambda: None, lines=" s.append((s[0], send, fetch, stop))\n")
    made.call(*given)
    got = given[0]
    assert got[1] == (1, print, repr, [2])


def test_an_error_is_that_of_the_node_whose_line_raised() -> None:
    with pytest.raises(errors.InternalError, match=r"Neg failed with KeyError: 'k'(.|\n)*{{node n}}") as caught:
        Made(fails(KeyError("k"))).call()
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize(("op", "kind"), [("StackPop", "empty"), ("StackPopV2", "empty"), ("Neg", "IndexError")])
def test_a_stack_that_has_nothing_left(op: str, kind: str) -> None:
    with pytest.raises(errors.OpError, match=kind) as caught:
        Made(fails(IndexError("nothing")), op).call()
    assert "{{node n}}" in caught.value.message


def test_another_error_of_a_stack_is_kept() -> None:
    with pytest.raises(errors.InternalError, match="ValueError: other"):
        Made(fails(ValueError("other")), "StackPopV2").call()


def test_an_error_of_no_line_is_raised_as_it_is() -> None:
    made = Made(lambda: None, lines=" 0\n 0\n k1()\n")
    made.code.namespace["k1"] = fails(KeyError("k"))
    with pytest.raises(KeyError):
        made.call()


def test_the_context_and_the_denormals_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(contexts, "free_contexts", [])
    monkeypatch.setattr(denormals, "mode", (lambda: calls.append("flush") or "before", calls.append))
    made = Made(lambda: calls.append("kernel"))
    made.call()
    assert calls == ["flush", "kernel", "before"]
    assert len(contexts.free_contexts) == 1
    (context,) = contexts.free_contexts
    made.code.namespace["k1"] = fails(KeyError("k"))
    with pytest.raises(errors.InternalError):
        made.call()
    assert contexts.free_contexts == [context]
    assert calls == ["flush", "kernel", "before", "flush", "before"]


def test_what_was_no_change_of_mode_is_not_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(denormals, "mode", (lambda: 0, calls.append))
    Made(lambda: None).call()
    assert calls == []


def test_code_that_does_not_compute_leaves_denormals_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(denormals, "mode", (lambda: calls.append("flush"), calls.append))
    made = Made(lambda: None)
    made.code.computes = False
    made.call()
    assert calls == []


def test_code_of_nothing_needs_nothing() -> None:
    code = GeneratedCode([], [])
    assert (code.slot_count, code.rest, code.computes, code.slot_of, code.awaited_slots) == (0, None, True, {}, {})
