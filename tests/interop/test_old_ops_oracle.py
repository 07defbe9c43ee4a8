"""Graphs of 2015 and 2016 whose operations later releases run in no graph of their own give TensorFlow's values.

TileGrad is compared with TensorFlow 1.4, for later ones register its kernel for an attribute that the op has not.
Skipgram's numbers come from one stream that begins at a fixed place, so both give the same pairs.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from google.protobuf import text_format

import tenfold as tf

if TYPE_CHECKING:
    from pathlib import Path

    from .tensorflow_processes import Forks

#: Runs the fetches of a GraphDef so often in one session and prints what each run gave, as lists.
SCRIPT = """
import base64, json, sys
import numpy as np
import tensorflow as tf
tf = tf.compat.v1 if hasattr(tf, "compat") and hasattr(tf.compat, "v1") else tf
tf.logging.set_verbosity(tf.logging.ERROR)

def plain(value):
    return None if value is None else json.loads(json.dumps(np.asarray(value).tolist(), default=lambda b: b.decode()))

graph_def = tf.GraphDef.FromString(base64.b64decode(sys.argv[1]))
begin, fetches, times = json.loads(sys.argv[2])
tf.import_graph_def(graph_def, name="")
with tf.Session() as session:
    session.run(begin)
    runs = [session.run(fetches) for _ in range(times)]
print(json.dumps([[plain(value) for value in run] for run in runs]))
"""


def graph_def(text: str) -> Any:
    return text_format.Parse(text, tf.GraphDef())


def theirs(forks: Forks, graph: Any, begin: list[str], fetches: list[str], times: int = 1) -> Any:
    import json

    return forks.ask(SCRIPT, base64.b64encode(graph.SerializeToString()).decode(), json.dumps([begin, fetches, times]))


def ours(graph: Any, begin: list[str], fetches: list[str], times: int = 1) -> list[list[Any]]:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(graph, name="")
        session.run(begin)
        return [session.run(fetches) for _ in range(times)]


def _const(name: str, value: Any) -> str:
    proto = text_format.MessageToString(tf.make_tensor_proto(value), as_one_line=True)
    kind = tf.as_dtype(np.asarray(value).dtype).as_datatype_enum
    return (
        f'node {{ name: "{name}" op: "Const" attr {{ key: "dtype" value {{ type: {kind} }} }} '
        f'attr {{ key: "value" value {{ tensor {{ {proto} }} }} }} }}\n'
    )


@pytest.mark.parametrize("multiples", [(2, 3, 1), (4, 1, 5), (1, 1, 1)])
def test_the_gradient_of_tile(forks: dict[str, Forks], multiples: tuple[int, ...]) -> None:
    x = np.random.default_rng(3).standard_normal((4, 6, 5)).astype(np.float32)
    graph = graph_def(
        _const("x", x)
        + _const("multiples", np.array(multiples, np.int32))
        + 'node { name: "y" op: "TileGrad" input: "x" input: "multiples" attr { key: "T" value { type: DT_FLOAT } } }'
        "versions { producer: 2 }"
    )

    ((found,),) = ours(graph, [], ["y:0"])

    np.testing.assert_allclose(found, theirs(forks["1.4"], graph, [], ["y:0"])[0][0], rtol=1e-6, atol=1e-6)


def _text(folder: Path) -> Path:
    """Words whose numbers all differ, so that there is one order of them."""
    words = [word for rank in range(1, 40) for word in [f"w{rank}"] * (5 * rank)]
    np.random.default_rng(7).shuffle(words)
    path = folder / "text8"
    path.write_text(" ".join(words[:2000]) + "\n\t " + " ".join(words[2000:]))
    return path


@pytest.mark.parametrize("subsample", [0.0, 1e-2])
def test_skipgram_gives_the_same_words_and_pairs(forks: dict[str, Forks], tmp_path: Path, subsample: float) -> None:
    graph = graph_def(
        f'node {{ name: "s" op: "Skipgram" attr {{ key: "filename" value {{ s: "{_text(tmp_path)}" }} }} '
        'attr { key: "batch_size" value { i: 700 } } attr { key: "window_size" value { i: 3 } } '
        'attr { key: "min_count" value { i: 20 } } '
        f'attr {{ key: "subsample" value {{ f: {subsample} }} }} }} versions {{ producer: 18 }}'
    )
    fetches = [f"s:{i}" for i in range(7)]

    # 12,600 pairs: several sentences, several times what is made at a time
    for mine, right in zip(ours(graph, [], fetches, 18), theirs(forks["1.15"], graph, [], fetches, 18), strict=True):
        assert [word.decode() for word in mine[0]] == right[0]
        assert [np.asarray(value).tolist() for value in mine[1:]] == right[1:]


#: Nothing is drawn; one word is drawn always.
@pytest.mark.parametrize(("samples", "counts"), [(0, [3, 1, 2, 5]), (2, [0, 0, 7, 0])])
def test_a_step_of_negative_sampling(forks: dict[str, Forks], samples: int, counts: list[int]) -> None:
    rng = np.random.default_rng(5)
    variables = "".join(
        _const(f"{name}/start", rng.standard_normal((4, 3)).astype(np.float32))
        + f'node {{ name: "{name}" op: "Variable" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }} '
        'attr { key: "shape" value { shape { dim { size: 4 } dim { size: 3 } } } } }'
        f'node {{ name: "{name}/assign" op: "Assign" input: "{name}" input: "{name}/start" '
        'attr { key: "T" value { type: DT_FLOAT } } }'
        for name in ("in", "out")
    )
    graph = graph_def(
        variables
        + _const("examples", np.array([0, 3, 3, 1], np.int32))
        + _const("labels", np.array([1, 2, 0, 1], np.int32))
        + _const("rate", np.float32(0.3))
        + 'node { name: "train" op: "NegTrain" input: "in" input: "out" input: "examples" input: "labels" input: "rate"'
        f' attr {{ key: "vocab_count" value {{ list {{ i: {counts} }} }} }} '
        f'attr {{ key: "num_negative_samples" value {{ i: {samples} }} }} }} '
        + "".join(
            f'node {{ name: "{name}/read" op: "Identity" input: "{name}" input: "^train" '
            'attr { key: "T" value { type: DT_FLOAT } } }'
            for name in ("in", "out")
        )
        + "versions { producer: 18 }"
    )
    asked = (graph, ["in/assign", "out/assign"], ["in/read:0", "out/read:0"], 3)

    for mine, right in zip(ours(*asked), theirs(forks["1.15"], *asked), strict=True):
        for a, b in zip(mine, right, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_a_placeholder_of_the_second_kind_and_its_gradient(forks: dict[str, Forks]) -> None:
    graph = graph_def(
        'node { name: "x" op: "PlaceholderV2" attr { key: "dtype" value { type: DT_FLOAT } } '
        'attr { key: "shape" value { shape { } } } }'
        'node { name: "y" op: "Square" input: "x" attr { key: "T" value { type: DT_FLOAT } } }'
        "versions { producer: 22 }"
    )
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.import_graph_def(graph, return_elements=["x:0", "y:0"], name="")
        assert x.shape.as_list() == []
        (slope,) = tf.gradients(y, x)
        assert session.run([y, slope], {x: 3.0}) == [9, 6]
        with pytest.raises(tf.errors.InvalidArgumentError, match="You must feed a value for placeholder tensor 'x'"):
            session.run(y)
