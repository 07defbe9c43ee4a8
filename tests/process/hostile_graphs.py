"""What a hostile peer makes of graphs: steps whose sizes are fed, and graphs that are no good as graphs. No I/O.

`FED` is a graph of ops whose work comes from two numbers, a table, or a text that are fed; hostile_requests.py first
runs each fetch a few times with small values, so that the server takes the step for a short one, and then with others.
`broken` makes cycles, endless recursion, gigantic lists and names.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

import tenfold as tf
from tenfold_core import opdefs
from tenfold_protos import graph_pb2

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

#: Numbers that break what takes a size, a count, an index or an axis; the last ones are large and yet allowed.
NUMBERS = (0, 1, -1, -2, 2, 3, 7, 127, 255, 2**15, 2**24, 2**31 - 1, -(2**31), 2**31, 2**40, 2**62, 2**63 - 1, -(2**63))
ALLOWED = (10**5, 10**6, 2**22, 2**23, 2**24 - 1)
#: Patterns that take long, what unfolds to much more, and what is only long.
TEXTS = (
    b"",
    b"a" * 20_000,
    b"(a|aa)+$",
    b"(" * 5000,
    b"a{1000}{1000}",
    b"x " * 50_000,
    b"\xff\x00" * 7,
    zlib.compress(bytes(1 << 25), 1),
    bytes(1 << 20),
)
#: Feeds with which every step of `FED` is short, though not every one succeeds.
SMALL: dict[str, np.ndarray[Any, Any]] = {
    "vector:0": np.array([2, 2], np.int64),
    "scalar:0": np.array(2, np.int64),
    "table:0": np.eye(2, dtype=np.float32),
    "text:0": np.array(b"ab cd"),
}


def _fed() -> tuple[graph_pb2.GraphDef, list[str]]:
    """The graph, and the tensors to fetch."""
    with tf.Graph().as_default() as graph:
        vector = tf.placeholder(tf.int64, None, name="vector")
        scalar = tf.placeholder(tf.int64, None, name="scalar")
        table = tf.placeholder(tf.float32, None, name="table")
        text = tf.placeholder(tf.string, None, name="text")
        matrix = tf.reshape(table, [-1, 2])
        data = tf.reshape(tf.range(24.0), [2, 3, 4])
        narrow_vector, narrow = tf.cast(vector, tf.int32), tf.cast(scalar, tf.int32)
        image = tf.reshape(tf.range(48.0), [1, 4, 4, 3])
        many = tf.range(scalar)
        column = tf.reshape(tf.cast(many, tf.float32), [-1, 1])
        raw = tf.raw_ops
        made = [
            tf.fill(vector, 1.0),
            tf.reshape(data, vector),
            many,
            tf.range(0, narrow, narrow),
            tf.tile(tf.zeros([2]), vector),
            tf.gather(data, vector),
            tf.gather_nd(data, vector),
            tf.slice(data, narrow_vector, narrow_vector),
            tf.transpose(data, narrow_vector),
            tf.reduce_sum(data, narrow_vector),
            tf.expand_dims(data, narrow),
            tf.concat([data, data], narrow),
            tf.one_hot(vector, narrow),
            tf.random_uniform(vector),
            tf.random_normal(vector),
            tf.truncated_normal(vector),
            tf.random_gamma(narrow_vector, 0.5),
            tf.random_poisson(3.0, narrow_vector),
            tf.multinomial(tf.zeros([2, 3]), narrow),
            tf.random_shuffle(tf.zeros(vector)),
            tf.pad(tf.zeros([2]), tf.reshape(narrow_vector, [1, -1])),
            tf.unsorted_segment_sum(tf.ones_like(vector), vector, narrow),
            tf.segment_sum(tf.ones_like(vector), vector),
            tf.dynamic_stitch([narrow_vector], [tf.ones_like(vector)]),
            tf.broadcast_to(1.0, vector),
            tf.scatter_nd(tf.reshape(vector, [-1, 1]), tf.ones_like(vector), tf.reshape(scalar, [1])),
            tf.sparse_to_dense(vector, tf.reshape(scalar, [1]), tf.ones_like(vector)),
            tf.reverse(data, narrow_vector),
            tf.strided_slice(data, narrow_vector, narrow_vector, narrow_vector),
            tf.linspace(0.0, 1.0, narrow),
            tf.bincount(narrow_vector, minlength=narrow),
            tf.histogram_fixed_width(data, [0.0, 1.0], narrow),
            tf.image.resize_bilinear(image, narrow_vector),
            tf.image.crop_and_resize(image, [[0.0, 0.0, 1.0, 1.0]], [0], narrow_vector),
            tf.spectral.rfft(tf.ones([4]), tf.reshape(narrow, [1])),
            tf.cumsum(data, narrow),
            tf.argmax(data, narrow),
            tf.nn.top_k(tf.fill(vector, 1.0), 1)[0],
            tf.unique(many)[0],
            tf.where(tf.cast(many, tf.bool)),
            tf.as_string(many),
            tf.reduce_join(tf.as_string(many), 0),
            tf.repeat([1.0, 2.0], tf.reshape(narrow, [])),
            tf.sequence_mask(vector),
            tf.matmul(column, column, transpose_b=True),
            column + tf.transpose(column),
            tf.gather(tf.fill(vector, 1.0), tf.zeros(vector, tf.int32)),
            tf.while_loop(lambda i: i < scalar, lambda i: i + 1, [tf.constant(0, tf.int64)]),
            tf.while_loop(
                lambda i, x: i < scalar,
                lambda i, x: (i + 1, tf.concat([x, x], 0)),
                [tf.constant(0, tf.int64), tf.ones([4])],
                shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
            )[1],
            tf.map_fn(lambda i: i * i, many),
            tf.TensorArray(tf.float32, size=narrow).concat(),
            raw.TensorListLength(
                input_handle=raw.TensorListReserve(
                    element_shape=tf.constant(-1), num_elements=narrow, element_dtype=tf.float32
                )
            ),
            tf.matmul(table, table),
            tf.matmul(table, table, transpose_a=True),
            tf.svd(table, compute_uv=False),
            tf.matrix_inverse(table),
            tf.cholesky(table),
            tf.einsum("ij,kl->ijkl", matrix, matrix),
            tf.reshape(table, [-1, 1]) * tf.reshape(table, [1, -1]),
            tf.nn.softmax(table),
            tf.string_split(tf.reshape(text, [-1])).values,
            tf.regex_replace(text, "(a|a)*b", "c"),
            tf.regex_replace("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", text, "c"),
            tf.substr(text, narrow, narrow),
            tf.decode_raw(text, tf.int32),
            tf.io.decode_compressed(text, "ZLIB"),
            tf.parse_tensor(text, tf.float32),
            tf.string_to_hash_bucket_fast(text, 10),
            vector // scalar,
            vector % scalar,
            vector * scalar,
            tf.bitcast(vector, tf.float64),
        ]
        names = [tf.convert_to_tensor(each).name for each in made]
        return graph.as_graph_def(), names


FED, FETCHES = _fed()


def hostile_feeds(draw: random.Random) -> dict[str, np.ndarray[Any, Any]]:
    """Shapes, axes, counts, indices, tables and texts that no honest program would feed."""
    numbers = NUMBERS + ALLOWED
    vector = np.array([draw.choice(numbers) for _ in range(draw.choice((0, 1, 1, 2, 3)))], np.int64)
    rows, columns = draw.choice(((0, 0), (0, 2**40), (1, 3000), (3000, 1), (300, 300), (700, 700), (2, 2)))
    table = np.zeros((rows, columns), np.float32) if not rows else np.full((rows, columns), draw.random(), np.float32)
    text = draw.choice(TEXTS)
    return {
        "vector:0": vector,
        "scalar:0": np.array(draw.choice(numbers), np.int64),
        "table:0": table,
        "text:0": np.array(text, object),
    }


# -- graphs that are none ---------------------------------------------------------------------------------------------


def _cycle(graph: graph_pb2.GraphDef, draw: random.Random) -> None:
    count = draw.choice((1, 2, 1000))
    for i in range(count):
        node = graph.node.add(name=f"n{i}", op=draw.choice(("NoOp", "Identity")))
        if node.op == "Identity":
            node.attr["T"].type = 1
            node.input.append(f"n{(i + 1) % count}")
        else:
            node.input.append(f"^n{(i + 1) % count}")


def _endless_function(graph: graph_pb2.GraphDef, draw: random.Random) -> None:
    for name, inner in (("f", "g"), ("g", draw.choice(("f", "g")))):
        function = graph.library.function.add()
        function.signature.name = name
        function.node_def.add(name="call", op="StatefulPartitionedCall").attr["f"].func.name = inner
    for op in ("f", "StatefulPartitionedCall"):
        graph.node.add(name=f"call{op}", op=op).attr["f"].func.name = "f"


def _doubling_functions(graph: graph_pb2.GraphDef, draw: random.Random) -> None:
    """Each calls the next one twice: 2^40 nodes once they are all put in place."""
    depth = draw.choice((12, 40, 400))
    for i in range(depth):
        function = graph.library.function.add()
        function.signature.name = f"f{i}"
        for twice in "ab":
            function.node_def.add(name=twice, op=f"f{i + 1}" if i + 1 < depth else "NoOp")
    graph.node.add(name="call", op="f0")


def _long_chain(graph: graph_pb2.GraphDef, draw: random.Random) -> None:
    count = draw.choice((100, 5000))
    graph.node.add(name="n0", op="NoOp")
    for i in range(1, count):
        graph.node.add(name=f"n{i}", op="NoOp").input.append(f"^n{i - 1}")


def _many_inputs(graph: graph_pb2.GraphDef, draw: random.Random) -> None:
    graph.node.add(name="a", op="NoOp")
    graph.node.add(name="b", op="NoOp").input.extend(["^a"] * draw.choice((10, 50_000)))


def _long_names(graph: graph_pb2.GraphDef, draw: random.Random) -> None:
    length = draw.choice((1000, 1 << 20))
    graph.node.add(name="n" * length, op="NoOp", device=draw.choice(("/job:" + "x" * length, "/" * length, ":" * 999)))
    graph.node.add(name="s/" * (length // 2) + "s", op="x" * length)


def _long_attrs(graph: graph_pb2.GraphDef, draw: random.Random) -> None:
    node = graph.node.add(name="n", op="Placeholder")
    node.attr["dtype"].type = 1
    node.attr["shape"].shape.dim.extend([node.attr["shape"].shape.Dim(size=2**31)] * draw.choice((1, 300, 20_000)))
    node = graph.node.add(name="m", op="IdentityN")
    node.attr["T"].list.type.extend([1] * draw.choice((10, 50_000)))


def _twice(graph: graph_pb2.GraphDef, draw: random.Random) -> None:
    for _ in range(2):
        graph.node.add(name="n", op="NoOp")


def _absurd_counts(graph: graph_pb2.GraphDef, draw: random.Random) -> None:
    op = draw.choice(("AddN", "Pack", "Split", "IdentityN", "ConcatV2", "Unpack", "ShapeN"))
    node = graph.node.add(name="n", op=op)
    for attr in opdefs.get(op).attrs:
        if attr.type == "int":
            node.attr[attr.name].i = draw.choice(NUMBERS)
        elif attr.type == "type":
            node.attr[attr.name].type = 1


_BROKEN: tuple[Callable[[graph_pb2.GraphDef, random.Random], None], ...] = (
    _cycle,
    _endless_function,
    _doubling_functions,
    _long_chain,
    _many_inputs,
    _long_names,
    _long_attrs,
    _twice,
    _absurd_counts,
)


def broken(draw: random.Random) -> graph_pb2.GraphDef:
    """A graph that no client library makes."""
    graph = graph_pb2.GraphDef()
    graph.versions.producer = draw.choice((0, 24, 2474))
    draw.choice(_BROKEN)(graph, draw)
    return graph
