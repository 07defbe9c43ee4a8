"""Conditionals, loops, RNNs and their gradients against TensorFlow 1.15: the same programs give the same values.

flow_programs.py holds the programs; one process of TensorFlow's runs all of them. The graphs that our client builds are
then run on TensorFlow 2.21's own server, which would refuse a wrong frame structure.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.ports import free_addresses

from . import flow_programs
from .tensorflow_processes import interpreter, printed_json, tensorflow_servers

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.long

#: Sums are taken in another order here and there.
TOLERANCE = {"rtol": 2e-5, "atol": 2e-6}


@pytest.fixture(scope="module")
def theirs() -> dict[str, Any]:
    """Program → what it returns under TensorFlow."""
    answers: dict[str, Any] = printed_json(interpreter("1.15"), str(flow_programs.__file__))
    return answers


def difference(ours: Any, theirs: Any, where: str = "") -> str | None:
    """Where and how two results differ, or None."""
    if isinstance(ours, dict) and isinstance(theirs, dict) and ours.keys() == theirs.keys():
        pairs = [(f"{where}.{key}", ours[key], theirs[key]) for key in ours]
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = [(f"{where}[{i}]", a, b) for i, (a, b) in enumerate(zip(ours, theirs, strict=True))]
    elif isinstance(ours, float) and isinstance(theirs, float) and np.isclose(ours, theirs, **TOLERANCE):
        return None
    else:
        return None if ours == theirs else f"at {where or 'top'}: {ours!r} here, {theirs!r} in TensorFlow"
    found = (difference(a, b, at) for at, a, b in pairs)
    return next((each for each in found if each is not None), None)


@pytest.mark.parametrize("name", flow_programs.PROGRAMS)
def test_the_same_results(theirs: dict[str, Any], name: str) -> None:
    with tf.Graph().as_default():
        ours = flow_programs.plain(flow_programs.PROGRAMS[name](tf))

    assert difference(json.loads(json.dumps(ours)), theirs[name]) is None


# --- our client's graphs on TensorFlow's server ---

#: Programs whose loops, branches, stacks and arrays are of every kind that there is.
ON_A_SERVER = (
    "cond_nested",
    "cond_sparse_gradient",
    "while_gradient_of_invariants",
    "while_in_while_unknown_shape",
    "cond_in_while_unknown_shape",
    "while_in_cond",
    "cond_of_cond_in_while_of_while",
    "while_sparse_gradient",
    "tensor_array_in_loop",
    "maps_and_folds",
    "hessians",
    "dynamic_rnn_with_lengths",
    "training_through_a_loop",
)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The target of a server of TensorFlow 2.21."""
    (address,) = free_addresses(1)
    with tensorflow_servers("2.21", {"worker": [address]}, [("worker", 0)]):
        yield f"grpc://{address}"


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", ON_A_SERVER)
def test_tensorflows_server_runs_our_graphs(
    theirs: dict[str, Any], server: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tf.ConfigProto(isolate_session_state=True, operation_timeout_in_ms=60_000)
    monkeypatch.setattr(flow_programs, "SESSION", {"target": server, "config": config})
    with tf.Graph().as_default():
        ours = flow_programs.plain(flow_programs.PROGRAMS[name](tf))

    assert difference(json.loads(json.dumps(ours)), theirs[name]) is None
