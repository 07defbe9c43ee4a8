"""What depends on constants only is computed once, where it is small and does not fail."""

from __future__ import annotations

import numpy as np
import pytest

from support.optimized import TASK, Optimized, run
from support.parts import PartBuilder
from support.programs import compile_program
from tenfold_compiler.node_kernels import Target
from tenfold_compiler.optimize.constant_folding import MAX_BYTES, fold_constants
from tenfold_compiler.part.read_part import read_part
from tenfold_core import dtypes, errors
from tenfold_kernels.resources.state import ResourceManager

F32, I32 = dtypes.float32, dtypes.int32


def test_what_depends_on_constants_only_is_computed_once() -> None:
    part = PartBuilder()
    part.const("a", [1.0, 2.0])
    part.const("b", 3.0)
    part.node("Mul", "ab", ["a", "b"], T=F32)
    part.node("Neg", "neg", ["ab"], T=F32)
    fetch = part.fetch("neg")

    optimized = Optimized(part)

    assert optimized.counts["fold_constants"] == 2
    assert optimized.op("neg") == "constant"
    assert run(compile_program(part.graph_def, TASK, ResourceManager()))[fetch].tolist() == [-3.0, -6.0]


def test_every_output_of_a_folded_node_can_be_read() -> None:
    part = PartBuilder()
    part.const("axis", 0)
    part.const("x", [1.0, 2.0, 3.0])
    part.node("Split", "split", ["axis", "x"], num_split=3, T=F32)
    fetch = part.fetch("split:2")
    assert Optimized(part).op("split") == "constant"
    assert run(compile_program(part.graph_def, TASK, ResourceManager()))[fetch].tolist() == [3.0]


def test_a_large_result_is_not_kept() -> None:
    part = PartBuilder()
    part.const("dims", [1000, 1000])
    part.const("zero", 0.0)
    part.node("Fill", "fill", ["dims", "zero"], T=F32, index_type=I32)
    part.fetch("fill")
    assert Optimized(part).op("fill") == "Fill"


@pytest.mark.parametrize(("floats", "op"), [(MAX_BYTES // 4, "constant"), (MAX_BYTES // 4 + 1, "Fill")])
def test_what_a_folded_node_may_keep(floats: int, op: str) -> None:
    part = PartBuilder()
    part.const("dims", [floats])
    part.const("zero", 0.0)
    part.node("Fill", "fill", ["dims", "zero"], T=F32, index_type=I32)
    part.fetch("fill")
    assert Optimized(part).op("fill") == op


@pytest.mark.parametrize(("floats", "op"), [(4 * MAX_BYTES - 1, "constant"), (4 * MAX_BYTES, "Sum")])
def test_what_a_folded_node_may_read(floats: int, op: str) -> None:
    """All inputs together: the axis is one number more."""
    part = PartBuilder()
    part.const("x", np.ones(floats, np.float32))
    part.const("axis", 0)
    part.node("Sum", "sum", ["x", "axis"], T=F32, Tidx=I32)
    part.fetch("sum")
    assert Optimized(part).op("sum") == op


def test_random_numbers_are_not_folded() -> None:
    part = PartBuilder()
    part.const("shape", [2])
    part.node("RandomUniform", "random", ["shape"], dtype=F32, T=I32)
    part.fetch("random")
    assert Optimized(part).op("random") == "RandomUniform"


def test_an_error_stays_in_the_step_that_asks_for_it() -> None:
    part = PartBuilder()
    part.const("one", 1)
    part.const("zero", 0)
    part.node("FloorDiv", "ratio", ["one", "zero"], T=I32)
    part.fetch("ratio", I32)
    assert Optimized(part).op("ratio") == "FloorDiv"
    program = compile_program(part.graph_def, TASK, ResourceManager())
    with pytest.raises(errors.InvalidArgumentError, match=r"division by zero\n\t \[\[{{node ratio}}\]\]"):
        run(program)


def test_a_folded_node_reads_nothing_and_waits_for_what_it_read() -> None:
    part = PartBuilder()
    part.feed("x")
    part.const("a", [1.0, 2.0])
    part.node("Neg", "neg", ["a", "^x"], T=F32)
    part.fetch("neg")
    read = read_part(part.graph_def, TASK, 100)
    target = Target(TASK, ResourceManager(), 100)
    constants = target.constants(read)
    node = next(node for node in read.nodes if node.name == "neg")
    node.memory = (True,), (True,)
    assert fold_constants(read, constants, target.kernel) == 1
    assert (node.inputs, node.deref, node.input_types, node.memory) == ([], [], (), None)
    assert sorted(read.nodes[index].name for index in node.controls) == ["a", "x"]
    (value,) = constants[node.index]
    assert value.tolist() == [-1, -2]
    assert not value.flags.writeable
    assert fold_constants(read, constants, target.kernel) == 0


def test_only_what_reads_nothing_but_constants_is_folded() -> None:
    part = PartBuilder()
    part.feed("x")
    part.const("a", 1.0)
    part.node("Add", "sum", ["a", "x"], T=F32)
    part.fetch("sum")
    optimized = Optimized(part)
    assert optimized.op("sum") == "Add"
    assert optimized.counts["fold_constants"] == 0
