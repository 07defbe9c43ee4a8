"""Kernels meet attributes and inputs of anybody: they give what they declare, or say what is wrong by an error of ours.

Of the kernels that only compute, on the CPU. An error of Python's would reach a client as an InternalError.
"""

from __future__ import annotations

import pytest

from support.kernel_runs import check_is_fresh, check_outputs
from support.random_nodes import RandomNode, only_computes, small_tensors  # noqa: F401 # a fixture
from tenfold_core import errors, opdefs
from tenfold_kernels import registry

CASES, MORE_CASES = 2, 60
pytestmark = pytest.mark.usefixtures("small_tensors")


def ask(name: str, number: int) -> bool:
    """Whether there is a kernel."""
    made = RandomNode(opdefs.get(name), number, "kernel ")
    inputs = made.inputs()
    node = made.kernel_node("/device:CPU:0")
    try:
        build = registry.lookup(node, "CPU")
    except errors.OpError:
        return False
    try:
        with registry.quiet():
            result = build(node)(*inputs)
        if node.output_types:  # Unpack into nothing gives no outputs in its own way
            check_outputs(node, result)
            if not registry.may_view_input(name):
                check_is_fresh(name, inputs, result)
    except errors.InternalError as error:
        raise AssertionError(f"{name}, case {number}: {inputs}, {made.attrs}") from error
    except errors.OpError:
        pass
    except Exception as error:
        raise AssertionError(f"{name}, case {number}: {inputs}, {made.attrs}") from error
    return True


def test_they_compute_or_say_what_is_wrong() -> None:
    names = [name for name in opdefs.names() if only_computes(name)]
    tried = sum(ask(name, number) for name in names for number in range(CASES))
    assert tried > len(names)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_of_many_cases_too() -> None:
    for name in opdefs.names():
        if only_computes(name):
            for number in range(CASES, MORE_CASES):
                ask(name, number)
