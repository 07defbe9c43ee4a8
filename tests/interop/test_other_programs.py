"""What is read from other people's programs, and how it is told what became of one. None is needed for that."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from others import data, page, run, scan
from others.outcomes import Outcome, outcome
from others.program import Program

#: What is said before an error's line.
TRACE = "Traceback (most recent call last)\n"


def test_names_are_read_with_the_names_that_they_are_bound_to() -> None:
    text = (
        "import tensorflow as tf, os\n"
        "import tensorflow.contrib.slim as slim\n"
        "from tensorflow.python.ops import rnn as r, array_ops\n"
        "x = tf.train.AdamOptimizer(0.1).minimize(slim.losses.total())\n"
        "r.dynamic_rnn(os.path)\n"
    )

    assert scan.names_in(text) == {
        *("tensorflow", "tensorflow.contrib.slim", "tensorflow.python.ops.rnn", "tensorflow.python.ops.array_ops"),
        *("tensorflow.train.AdamOptimizer", "tensorflow.train", "tensorflow.contrib.slim.losses.total"),
        *("tensorflow.contrib.slim.losses", "tensorflow.python.ops.rnn.dynamic_rnn"),
    }


def test_a_file_of_python_2_is_read_by_pattern() -> None:
    text = "import tensorflow as tf\nfrom tensorflow.python.util import nest\nprint tf.nn.relu, nest.flatten\n"

    assert {"tensorflow.nn.relu", "tensorflow.python.util.nest.flatten"} <= scan.names_in(text)
    assert scan.names_in("import os\nos.path.join") == set()


@pytest.mark.parametrize(
    ("code", "output", "kind"),
    [
        (0, "step 10", "runs"),
        (None, "step 10", "runs"),
        (None, TRACE + "ValueError: no", "fails"),
        (1, TRACE + "ModuleNotFoundError: No module named 'gym'", "module"),
        (1, TRACE + "ImportError: Extension horovod.tensorflow has not been built: x.so not found", "module"),
        (1, TRACE + "AttributeError: module 'PIL.Image' has no attribute 'ANTIALIAS'", "module"),
        (1, TRACE + "NameError: name 'reload' is not defined", "python 2"),
        (1, TRACE + "TypeError: object of type 'map' has no len()", "python 2"),
        (1, TRACE + "TypeError: unsupported operand type(s) for +: 'dict_items' and 'dict_items'", "python 2"),
        (1, TRACE + "ModuleNotFoundError: No module named 'tensorflow.x': Tenfold answers for TensorFlow", "misses"),
        (1, TRACE + "AttributeError: module 'tensorflow', answered by Tenfold, has no attribute 'x'", "misses"),
        (1, TRACE + "urllib.error.URLError: <urlopen error>", "network"),
        (1, "  print x\nSyntaxError: Missing parentheses in call to 'print'", "python 2"),
        (1, "  global x\nSyntaxError: name 'x' is used prior to global declaration", "python 2"),
        (1, TRACE + "TypeError: TSNE.__init__() got an unexpected keyword argument 'n_iter'", "module"),
        (1, TRACE + "FileNotFoundError: [Errno 2] No such file or directory: 'x'", "data"),
        (2, "usage: train.py", "arguments"),
        (1, TRACE + "ValueError: shapes", "fails"),
        (-11, "", "fails"),
    ],
)
def test_what_became_of_a_program(code: int | None, output: str, kind: str) -> None:
    assert outcome(code, output, 1.0).kind == kind


def test_of_a_cluster_the_error_of_a_task_is_told() -> None:
    output = TRACE + "worker/1 | x.y.InvalidArgumentError: shapes\nError: worker/1 ended with exit code 1: SystemExit"

    assert outcome(1, output, 1.0).why == "x.y.InvalidArgumentError: shapes"


def test_a_program_is_run_as_it_lies_and_its_error_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "golbin+tutorials"
    folder.mkdir()
    good = "import tensorflow as tf\nif __name__ == '__main__':\n    print(tf.Session().run(tf.constant(2) * 3))\n"
    (folder / "good.py").write_text(good)
    (folder / "bad.py").write_text(good.replace("tf.constant", "tf.nothing"))
    (folder / "module.py").write_text("import tensorflow as tf\ndef f():\n    return 1\n")
    monkeypatch.setattr(run, "BUILD", tmp_path / "build")
    report = tmp_path / "page.md"
    monkeypatch.setattr(sys, "argv", ["run.py", str(tmp_path), "--seconds", "60", "--report", str(report)])

    assert run.main() == 0

    text = report.read_text()
    assert "1 of 2 run (50%)" in text
    assert "| golbin/tutorials | 1 | 2 | 0 |" in text
    assert "`golbin/tutorials/bad.py`: AttributeError" in text
    assert "'nothing'" in text


def test_a_page_keeps_the_rows_of_programs_that_were_not_tried_again() -> None:
    earlier = {
        "a/b": page.Row(2, 4, 1, {"a/b/c.py": "ValueError: c", "a/b/d.py": "ValueError: d"}),
        "e/f": page.Row(0, 1, 0, {"e/f/g.py (once)": "ValueError: g"}),
    }
    text = page.document(earlier, 10)
    assert page.read(text) == earlier

    rows = page.merged(
        page.read(text),
        {
            "a+b/c.py": Outcome("runs", "", 1),
            "a+b/d.py": Outcome("1.15", "it too", 1),
            "h+i/j.py": Outcome("runs", "", 1),
        },
    )

    assert rows == {"a/b": page.Row(3, 3, 2), "e/f": earlier["e/f"], "h/i": page.Row(1, 1, 0)}
    assert "4 of 5 run (80%)" in page.document(rows, 10)
    assert page.merged(earlier, {"e+f/g.py (once)": Outcome("runs", "", 1)})["e/f"] == page.Row(1, 1, 0)


def test_a_row_of_one_file_is_a_program_whatever_it_imports(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text("from model import train\ntrain()\n")

    assert Program("owner+name/train.py").is_program(file)
    assert not Program("owner+name/*.py").is_program(file)


def test_digits_are_written_where_a_program_looks_for_them(tmp_path: Path) -> None:
    where = tmp_path / "repository" / "part"
    where.mkdir(parents=True)

    data.prepare(where, 'mnist = input_data.read_data_sets("../data/mnist", one_hot=True)')

    packed = (tmp_path / "repository/data/mnist/train-labels-idx1-ubyte.gz").read_bytes()
    assert len(gzip.decompress(packed)) == 8 + data.TRAIN
    assert not Outcome("network", "", 0).counts
    assert Outcome("misses", "", 0).counts


#: A training whose child computes, one that waits for what does not come, one that ends.
WAYS = {
    "computes": "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'while True: pass'])",
    "stands still": "import threading\nthreading.Event().wait()",
    "ends": "print('done')",
}


@pytest.mark.parametrize("way", WAYS)
def test_a_program_is_stopped_by_what_it_computed(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_command", lambda program, file, where: [sys.executable, file.name])
    monkeypatch.setattr(run, "_CLOCK", 120 if way == "computes" else 2)
    (tmp_path / "a+b").mkdir()
    path = tmp_path / "a+b" / "train.py"
    path.write_text(WAYS[way])

    found = run.run_one(tmp_path, Program("a+b/*.py"), path, 0.5)

    assert found.kind == ("fails" if way == "stands still" else "runs")
    assert found.why.startswith({"computes": "stopped", "stands still": "it stood still", "ends": ""}[way])


@pytest.mark.parametrize(("says", "kind"), [("Task: 1", "runs"), ("Task: 2", "fails")])
def test_a_program_has_to_say_what_it_shows(
    says: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_command", lambda program, file, where: [sys.executable, file.name])
    (tmp_path / "a+b").mkdir()
    path = tmp_path / "a+b" / "train.py"
    path.write_text("print('Task: 0', 'Task: 1')")

    assert run.run_one(tmp_path, Program("a+b/*.py", shows=("Task: 0", says)), path, 5).kind == kind
