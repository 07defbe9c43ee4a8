"""No loop and no kernel leaves its arrays, whoever writes to what it indexes by: support/racing.py in a child process.

A loop that reads an index twice ends the child by SIGSEGV; its arrays lie between pages that nobody may touch.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support import racing, racing_steps
from tenfold_kernels import registry, steering
from tenfold_kernels.cpu._compiled import rows
from tenfold_kernels.cpu._compiled.compiling import Loops
from tenfold_kernels.cpu._compiled.loop_spec import LoopSpec

if TYPE_CHECKING:
    from collections.abc import Iterable

SUPPORT = Path(racing.__file__).parent
#: Of these a step ended the process before index inputs were copied.
QUICK = ("scatter_add", "scatter_mul", "scatter_nd_add", "scatter_nd", "unsorted_segment_max", "sparse softmax")


def race(script: str, seconds: float, cases: Iterable[str]) -> None:
    """Fails naming the case that ended the child."""
    ran = subprocess.run(
        [sys.executable, str(SUPPORT / script), str(seconds), *cases],
        env={**os.environ, "TENFOLD_COMPILE": "blocking"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ran.returncode == 0, f"{(ran.stdout.split(chr(10)) or ['?'])[-2:]} ended by {ran.returncode}: {ran.stderr}"


def test_loops_read_each_index_once() -> None:
    race("racing.py", 0.1, racing.CASES)


def test_kernels_have_indices_of_their_own() -> None:
    race("racing_steps.py", 0.3, QUICK)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("case", racing.CASES)
def test_loops_for_longer(case: str) -> None:
    race("racing.py", 5.0, [case])


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("case", racing_steps.CASES)
def test_kernels_for_longer(case: str) -> None:
    race("racing_steps.py", 5.0, [case])


def test_a_stand_in_reads_copies_of_index_arrays() -> None:
    table, index, out = np.zeros((4, 2), np.float32), np.array([3, 0]), np.ones((2, 2), np.float32)
    seen: list[Any] = []

    def stand_in(*arguments: Any) -> int:
        seen[:] = arguments
        return -1

    spec = LoopSpec(rows._gather_rows, "r2 i1 w2", np.dtype(np.float32), np.dtype(np.int64), "n")
    assert Loops("background").get(spec, stand_in)(table, index, out) == -1

    assert seen[0] is table
    assert seen[2] is out
    assert not np.shares_memory(seen[1], index)


@pytest.mark.parametrize("through", ["itself", "an identity", "a reshape"])
def test_a_kernel_gets_a_copy_of_what_steers_it(through: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """… and the table that it reads as it is."""
    seen: list[Any] = []
    lookup = registry.lookup

    def watched(node: registry.KernelNode, device: str) -> Any:
        build = lookup(node, device)
        if node.op != "ScatterNd":
            return build

        def built(node: registry.KernelNode) -> Any:
            compute = build(node)
            return lambda *inputs: (seen.append(inputs), compute(*inputs))[1]

        return built

    monkeypatch.setattr(registry, "lookup", watched)
    with tf.Graph().as_default():
        index = tf.Variable(np.array([[1], [3]]), use_resource=False, dtype=tf.int64)
        updates = tf.Variable(np.ones(2, np.float32), use_resource=False)
        held = {"itself": index, "an identity": tf.identity(index), "a reshape": tf.reshape(index, [2, 1])}[through]
        made = tf.scatter_nd(held, updates, [4])
        view, floats = tf.identity(index), tf.identity(updates)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run([made, view, floats])

    indices, given, _ = seen[-1]
    assert indices.base is None
    assert indices.flags.owndata
    assert given.base is not None  # the variable's memory


def test_which_inputs_steer() -> None:
    int64, float32, string = tf.int64, tf.float32, tf.string
    assert steering.steers("Gather", "indices", int64)
    assert not steering.steers("Gather", "params", int64)
    assert steering.steers("Reshape", "shape", int64)
    assert not steering.steers("Reshape", "tensor", int64)
    assert steering.steers("TopKV2", "input", float32)
    assert not steering.steers("MatMul", "a", float32)
    assert steering.steers("Sum", "reduction_indices", int64)
    assert not steering.steers("Sum", "input", int64)
    assert steering.steers("QueueEnqueueV2", "components", float32)
    assert steering.steers("StringJoin", "inputs", string)
    assert not steering.steers("Add", "x", int64)
    assert steering.argument_names("DynamicStitch", 4, {"N": 2}) == ["indices", "indices", "data", "data"]


def test_one_op_that_indexes_by_the_variable_that_it_changes() -> None:
    """The rows that the first updates write are no indices of the later ones."""
    with tf.Graph().as_default():
        held = tf.Variable(np.zeros(1000, np.int64), use_resource=False, dtype=tf.int64)
        changed = tf.scatter_update(held, held, np.full(1000, 1 << 40))
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            found = session.run(changed)
    assert found[0] == 1 << 40
    assert not found[1:].any()
