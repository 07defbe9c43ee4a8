"""The answers in tests/support/odd_inputs.txt are TensorFlow's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.odd_inputs import cases, same

if TYPE_CHECKING:
    from collections.abc import Callable

SCRIPT = """
import importlib.util, json, sys
import tensorflow
spec = importlib.util.spec_from_file_location("odd_inputs", sys.argv[1])
odd = importlib.util.module_from_spec(spec)
spec.loader.exec_module(odd)
tensorflow.compat.v1.disable_v2_behavior()
print(json.dumps({each: odd.answer(tensorflow.compat.v1, each) for each in odd.cases()}))
"""


def test_the_table_is_tensorflows(ask_tensorflow: Callable[..., Any]) -> None:
    theirs = ask_tensorflow(SCRIPT, str(Path(__file__).parents[1] / "support" / "odd_inputs.py"))

    wrong = {each: theirs[each] for each, answers in cases().items() if not same(theirs[each], answers)}
    assert wrong == {}
