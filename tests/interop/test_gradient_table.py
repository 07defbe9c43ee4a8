"""The gradient table agrees with TensorFlow's registries, 1.15's and 2.21's, but where a reason stands here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tenfold.gradients import registry
from tenfold_core import opdefs

if TYPE_CHECKING:
    from collections.abc import Callable

    from .tensorflow_processes import Forks

_DUMP = """
import json
from tensorflow.python.framework import ops
registry = getattr(ops, "gradient_registry", None) or ops._gradient_registry
print(json.dumps({name: "none" if registry.lookup(name) is None else "rule" for name in registry.list()}))
"""

_NOTHING = "TensorFlow's rule gives None for every input, as no rule does"
_FUNCTIONAL = (
    "TensorFlow writes a function that is the gradient; here tf.cond and tf.while_loop have one, and their ops"
)
_NO_KERNEL = "the op has no kernel here: docs/missing_ops.md"
#: op type → why its row is another one than TensorFlow's.
REASONS: dict[str, str] = {
    **dict.fromkeys(("ArgMax", "ArgMin", "LoopCond"), _NOTHING),
    **dict.fromkeys(("Case", "If", "StatelessCase", "StatelessIf", "StatelessWhile", "While"), _FUNCTIONAL),
    **dict.fromkeys(
        (
            "BesselJ0", "BesselJ1", "BesselK0", "BesselK0e", "BesselK1", "BesselK1e", "BesselY0", "BesselY1", "Dawsn",
            "Expint", "FresnelCos", "FresnelSin", "Spence", "StatelessParameterizedTruncatedNormal",
        ),
        _NO_KERNEL,
    ),
    "EagerPyFunc": "TensorFlow asks the tape of the eager function, and there is no eager mode here",
    "EuclideanNorm": "1.15 has none, 2.21 has this one",
    "QuantizeAndDequantizeV4Grad": "2.21 calls its rule for another op, which makes no sense of its inputs",
}  # fmt: skip


def _differing(theirs: dict[str, str]) -> dict[str, tuple[str, str]]:
    """op type → (ours, theirs), for ops that are here."""
    here = set(opdefs.names())
    pairs = {name: (registry.kind_of(name), kind) for name, kind in theirs.items() if name in here}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


@pytest.fixture(scope="module")
def registries(forks: dict[str, Forks], ask_tensorflow: Callable[..., Any]) -> dict[str, dict[str, str]]:
    return {"2.21": ask_tensorflow(_DUMP), "1.15": forks["1.15"].ask(_DUMP)}


def test_no_row_differs_without_a_reason(registries: dict[str, dict[str, str]]) -> None:
    newest = _differing(registries["2.21"])
    # where the two releases disagree, 2.21's row is the better one
    older = {
        name: pair
        for name, pair in _differing(registries["1.15"]).items()
        if registries["2.21"].get(name, pair[1]) == pair[1]
    }

    assert {name: pair for name, pair in (newest | older).items() if name not in REASONS} == {}


def test_every_reason_is_that_of_a_row(registries: dict[str, dict[str, str]]) -> None:
    differing = {name for each in registries.values() for name in _differing(each)}

    assert set(REASONS) - differing == set()
