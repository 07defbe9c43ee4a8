"""Layers of feature columns, run by TensorFlow 1.15 and by this package: `python feature_column_program.py MODULE`.

Prints JSON: part → name → values, shapes, names of variables, or the error. No op's name is compared.
"""

import importlib
import json
import os
import sys
import tempfile

import numpy as np

tf = importlib.import_module(sys.argv[1])
fc = tf.feature_column
FOLDER = tempfile.mkdtemp(prefix="tenfold-columns-")
VOCABULARY = os.path.join(FOLDER, "colours.txt")
with open(VOCABULARY, "w") as words:
    words.write("red\ngreen\nblue\n")


def sparse(rows, dtype):
    """A sparse matrix of lists of values."""
    indices = [[i, j] for i, row in enumerate(rows) for j in range(len(row))]
    values = [value for row in rows for value in row]
    return tf.SparseTensor(
        np.array(indices, np.int64).reshape(-1, 2), tf.constant(values, dtype), [len(rows), max(map(len, rows))]
    )


def features():
    return {
        "price": tf.constant([[1.0], [12.5], [-3.0]]),
        "size": tf.constant([[1, 2], [3, 4], [5, 60]]),
        "colour": sparse([["red"], ["blue", "pink"], []], tf.string),
        "plain": tf.constant([["red"], [""], ["green"]]),
        "vector": tf.constant(["a", "b", "a"]),
        "number": sparse([[1, 0], [3], [2, 2]], tf.int64),
        "weight": sparse([[0.5, 2.0], [-1.0], [1.0, 3.0]], tf.float32),
    }


def columns():
    colour = fc.categorical_column_with_vocabulary_list("colour", ["red", "green", "blue"], num_oov_buckets=2)
    strict = fc.categorical_column_with_vocabulary_list("colour", ["red", "green", "blue"])
    lines = fc.categorical_column_with_vocabulary_file("plain", VOCABULARY, 3, default_value=1)
    hashed = fc.categorical_column_with_hash_bucket("vector", 10)
    number = fc.categorical_column_with_identity("number", 4)
    safe = fc.categorical_column_with_identity("number", 2, default_value=1)
    weighted = fc.weighted_categorical_column(number, "weight")
    price = fc.numeric_column("price", normalizer_fn=lambda x: x * 2)
    buckets = fc.bucketized_column(fc.numeric_column("size", shape=2, dtype=tf.int32), [2, 4, 50])
    return {
        "colour": colour,
        "strict": strict,
        "lines": lines,
        "hashed": hashed,
        "number": number,
        "safe": safe,
        "weighted": weighted,
        "price": price,
        "buckets": buckets,
        "hashed numbers": fc.categorical_column_with_hash_bucket("number", 7, tf.int64),
        "crossed": fc.crossed_column(["plain", "vector"], 100),
        "crossed more": fc.crossed_column([strict, buckets, "vector"], 1000, hash_key=5),
        "crossed twice": fc.crossed_column([fc.crossed_column(["plain", "vector"], 3), "colour"], 50),
    }


def ones(shape, dtype=None, partition_info=None):
    """Weights that tell the rows apart."""
    sizes = [int(size) for size in shape]
    return tf.reshape(tf.range(float(np.prod(sizes))), sizes)


def run(build, *arguments, again=False):
    """What `build(*arguments)` gives, its shape, and the variables that it made."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        try:
            tensor = build(*arguments)
            if again:
                build(*arguments)
            session.run([tf.global_variables_initializer(), tf.tables_initializer()])
            if not again:  # weights are zeros: other ones show what they are of
                for index, variable in enumerate(v for v in tf.global_variables() if "weights" in v.op.name):
                    if "embedding" not in variable.op.name:
                        shape = variable.shape.as_list()
                        variable.load(np.arange(np.prod(shape)).reshape(shape) + index, session)
            value = session.run(tensor)
        except (ValueError, TypeError, tf.errors.OpError) as error:
            return {"error": type(error).__name__}
        return {
            "value": value.tolist(),
            "width": tensor.shape.as_list()[-1],
            "variables": sorted([v.op.name, v.shape.as_list()] for v in tf.global_variables()),
            "model variables": sorted(v.op.name for v in graph.get_collection("model_variables")),
            "trainable": sorted(v.op.name for v in tf.trainable_variables()),
        }


def dense_of(kind, name):
    column = columns()[name]
    return {
        "indicator": lambda: fc.indicator_column(column),
        "embedding": lambda: fc.embedding_column(column, 3, initializer=ones),
        "sum": lambda: fc.embedding_column(column, 2, "sum", initializer=ones, max_norm=5.0),
        "sqrtn": lambda: fc.embedding_column(column, 2, "sqrtn", initializer=ones, trainable=False),
        "plain": lambda: column,
    }[kind]()


CATEGORIES = [
    "colour",
    "strict",
    "lines",
    "hashed",
    "number",
    "safe",
    "weighted",
    "buckets",
    "hashed numbers",
    "crossed",
    "crossed more",
    "crossed twice",
]


def input_layer_of(kind, name):
    return fc.input_layer(features(), dense_of(kind, name))


def linear_model_of(combiner, name):
    return fc.linear_model(features(), columns()[name], units=2, sparse_combiner=combiner)


def input_layers():
    cases = {
        f"{kind} {name}": run(input_layer_of, kind, name)
        for kind in ("indicator", "embedding", "sum", "sqrtn")
        for name in CATEGORIES
    }
    for name in ("price", "buckets", "colour"):
        cases[name] = run(input_layer_of, "plain", name)

    def several():
        return fc.input_layer(
            features(), [dense_of("embedding", "number"), dense_of("plain", "price"), dense_of("indicator", "colour")]
        )

    cases["several"], cases["twice"] = run(several), run(several, again=True)

    def shared():
        made = fc.shared_embedding_columns(
            [fc.categorical_column_with_identity(key, 4) for key in ("number", "other")], 2, initializer=ones
        )
        return fc.input_layer(dict(features(), other=sparse([[0], [1], [3, 3]], tf.int64)), made)

    cases["shared"], cases["shared twice"] = run(shared), run(shared, again=True)

    def parts():
        with tf.variable_scope("parts", partitioner=tf.fixed_size_partitioner(2)):
            return several()

    cases["in parts"] = run(parts)
    return cases


def linear_models():
    cases = {
        f"{combiner} {name}": run(linear_model_of, combiner, name)
        for combiner in ("sum", "mean")
        for name in ["price", *CATEGORIES]
    }

    def several():
        with tf.variable_scope("outer"):
            return fc.linear_model(features(), [columns()[name] for name in ("price", "colour", "number", "crossed")])

    def plain():
        return fc.linear_model(features(), [columns()[name] for name in ("price", "colour")])

    def dense():
        word = fc.embedding_column(columns()["number"], 2, initializer=tf.ones_initializer())
        made = {}
        with tf.variable_scope("dense", partitioner=tf.fixed_size_partitioner(2)):
            result = fc.linear_model(features(), [word, columns()["price"]], cols_to_vars=made, trainable=False)
        names[:] = [
            [column if isinstance(column, str) else column.name, [v.op.name for v in found]]
            for column, found in made.items()
        ]
        names.extend(sorted(v.op.name for v in tf.get_collection(key)) for key in ("variables", "trainable_variables"))
        return result

    names = []
    cases["dense"] = [run(dense), sorted(map(str, names))]
    cases["several"], cases["twice"], cases["again"] = run(several), run(several, again=True), run(plain, again=True)
    return cases


def parse_specs():
    def text(name):
        spec = fc.make_parse_example_spec([columns()[name]])
        return sorted(
            [key, type(value).__name__, list(map(str, getattr(value, "shape", ()))), value.dtype.name]
            for key, value in spec.items()
        )

    return {name: text(name) for name in sorted(columns())}


def crosses():
    def run_sparse(make):
        with tf.Graph().as_default(), tf.Session() as session:
            found = session.run(make())
            values = [v.decode() if isinstance(v, bytes) else int(v) for v in found.values]
            return [found.indices.tolist(), values, found.dense_shape.tolist()]

    def inputs():
        given = features()
        return [given["colour"], given["plain"], given["number"]]

    return {
        "text": run_sparse(lambda: tf.sparse.cross(inputs())),
        "hashed": run_sparse(lambda: tf.sparse.cross_hashed(inputs())),
        "buckets": run_sparse(lambda: tf.sparse.cross_hashed(inputs(), 1000, 77)),
        "one": run_sparse(lambda: tf.sparse.cross_hashed(inputs()[:1])),
    }


if __name__ == "__main__":
    json.dump(
        {"inputs": input_layers(), "linear": linear_models(), "specs": parse_specs(), "crosses": crosses()}, sys.stdout
    )
