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
import base64, json, random, tempfile, threading, html.parser
import xml.etree.cElementTree as ET
assert ET.fromstring("<a/>").tag == "a" and base64.decodestring(base64.encodestring(b"x")) == b"x"
assert html.parser.HTMLParser().unescape("&lt;") == "<" and not threading.Thread().isAlive()
random.seed(1)
assert len(random.sample({1: 2, 3: 4}.keys(), 2)) == 2 and random.Random(1).sample({7}, 1) == [7]
random.seed(1)
drawn = random.sample(range(100), 3)
random.seed(1)
assert random.sample(range(100), k=3) == drawn and random.sample([5, 6], 4, counts=[2, 2])
assert json.loads("[1]", encoding="utf-8") == [1]
with tempfile.NamedTemporaryFile("w") as file:
    file.write("a\\n"); file.flush()
    assert open(file.name, "rU").read() == open(file.name, "U").read() == "a\\n"
    assert open(file.name, "rb").read() == b"a\\n" == open(file.name, mode="rbU").read()
"""


def test_they_are_back_in_a_program_that_imports_tensorflow() -> None:
    for given, code in (("from tenfold.compat import as_tensorflow; as_tensorflow.install()", 0), ("", 1)):
        program = f"{given}\n{PROGRAM}" if given else PROGRAM.replace("import tensorflow as tf", "import tenfold")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
