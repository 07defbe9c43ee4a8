"""Answers what is new in tests/support/gradient_answers.txt: `.venv/bin/python -m tests.interop.gradient_table`.

The lines of the table that are not indented stay: write a program there and it gets its answers; with `--all` every
program gets them anew. Release 2.21 gives
them or, where it has no gradient any more, 1.15 with its contrib. Not compared, and "-" in the table, is where
TensorFlow fails on its own account: an exception that is no refusal, or a shape that it does not find.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.support.gradient_answers import TABLE, group_of, read

ROOT = Path(__file__).resolve().parents[2]
#: Read from standard input: the expressions; printed: what that TensorFlow answers to them.
SCRIPT = """
import json, sys
sys.path.insert(0, sys.argv[1])
import tensorflow
if tensorflow.__version__.startswith("1."):
    import tensorflow.contrib.rnn
tf = tensorflow.compat.v1
tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)
from tests.support.gradient_answers import answers, group_of
groups = {}
for each in json.loads(sys.argv[2]):
    groups.setdefault(group_of(each), []).append(each)
print(json.dumps({key: value for some in groups.values() for key, value in answers(tf, some).items()}))
"""
#: Ops of contrib, whose gradients 2.21 has lost.
_OF_1_15 = ("LSTMBlockCell", "GRUBlockCell")
#: What is not compared: (in the expression, label).
NOT_COMPARED = (
    # finite differences say that TensorFlow is wrong
    ("Prod, input=X([[0.", "second"),
    ("Prod, data=X(", "second"),
    ("Prod, input=N(2, 3, t='complex", "second"),
    ("Digamma, x=X(", "second"),
    ("BesselI0, x=X(", "second"),
    # with less static shape than TensorFlow needs
    ("R.MatrixDiag", "dims"),
    ("ExtractImagePatches", "fed"),
    ("FractionalAvgPool", "dims"),
    ("FractionalAvgPool", "fed"),
)
_REFUSALS = ("LookupError when derived", "NotImplementedError when derived", "ValueError when derived")


def compared(expression: str, found: dict[str, list[str]]) -> dict[str, list[str]]:
    """The answers without what says nothing of a gradient."""
    kept = {}
    for label, answer in found.items():
        is_wrong = any(part in expression and label == wrong for part, wrong in NOT_COMPARED)
        is_error = "Error when" in answer[0] or answer == ["nothing flows"]
        if label == "second":
            if not is_wrong and not is_error:
                kept[label] = answer
        elif is_wrong or (is_error and answer[0] not in _REFUSALS):
            kept[label] = ["-"]
        else:
            kept[label] = answer
    return kept


def ask(release: str, expressions: list[str]) -> dict[str, dict[str, list[str]]]:
    """Blocks for a minute or two. Raises CalledProcessError where that TensorFlow is not installed, or fails."""
    environment = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "PATH": "/usr/bin:/bin"}
    command = [str(ROOT / release / "bin" / "python"), "-c", SCRIPT, str(ROOT), json.dumps(expressions)]
    made = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    found: dict[str, dict[str, list[str]]] = json.loads(made.stdout.splitlines()[-1])
    return {expression: compared(expression, each) for expression, each in found.items()}


def releases() -> dict[str, list[str]]:
    """Virtual environment → the programs that it answers."""
    older = [each for each in read() if group_of(each) in _OF_1_15]
    return {".venv-tf": [each for each in read() if each not in older], ".venv-tf1.15": older}


def main() -> None:
    found = {} if "--all" in sys.argv else {key: value for key, value in read().items() if value}
    asked = 0
    for release, every in releases().items():
        some = [each for each in every if each not in found]
        asked += len(some)
        found |= ask(release, some) if some else {}
    lines = []
    for line in Path(TABLE).read_text().splitlines():
        if not line.startswith(" "):
            lines.append(line)
            answers = found.get(line.strip(), {})
            lines += [f"    {label} {text}" for label, answer in answers.items() for text in answer]
    Path(TABLE).write_text("\n".join(lines) + "\n")
    print(f"asked for {asked} of {len(found)} programs", file=sys.stderr)


if __name__ == "__main__":
    main()
