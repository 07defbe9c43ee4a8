"""Names that Python dropped are back where programs of TensorFlow 1 run, and only there."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import collections, fractions, inspect, time
import tensorflow as tf
assert inspect.getargspec(lambda a, b=1: a).args == ["a", "b"]
assert isinstance([], collections.Iterable) and fractions.gcd(4, 6) == 2 and time.clock() >= 0
assert collections.OrderedDict([(1, 2)]) == {1: 2}
"""


def test_they_are_back_in_a_program_that_imports_tensorflow() -> None:
    for given, code in (("from tenfold.compat import as_tensorflow; as_tensorflow.install()", 0), ("", 1)):
        program = f"{given}\n{PROGRAM}" if given else PROGRAM.replace("import tensorflow as tf", "import tenfold")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
