"""Gradients of ops that TensorFlow differentiates and programs seldom do, against finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.gradients.checker import directional_error
from tenfold.graph.op_builder import apply_op

RNG = np.random.default_rng(29)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def floats(*shape: int) -> np.ndarray:
    return normal(*shape).astype(np.float32)


IDS = np.array([0, 0, 0, 2, 2], np.int32)
PLACES = np.array([[0], [2], [2]], np.int32)


def einsum(equation: str) -> Any:
    return lambda *x: apply_op("Einsum", inputs=list(x), equation=equation)


def singular(part: int, full: bool = False) -> Any:
    # u · vᵀ and the like do not turn with the vectors' signs
    def build(x: Any) -> Any:
        s, u, v = apply_op("Svd", input=x, compute_uv=True, full_matrices=full)
        if part == 0:
            return s
        vectors = u if part == 1 else v if full else v[..., :3]
        weights = tf.range(1.0, 5.0 if full else 4.0, dtype=tf.float64)
        return tf.matmul(vectors, vectors * weights, transpose_b=True)

    return build


RULES: dict[str, tuple[Any, list[np.ndarray]]] = {
    **{
        f"{op} {turn_a} {turn_b}": (
            lambda a, b, op=op, turn_a=turn_a, turn_b=turn_b: apply_op(
                "SparseMatMul", a=tf.cast(a, tf.float32), b=tf.cast(b, tf.float32),
                transpose_a=turn_a, transpose_b=turn_b
            ),
            [normal(3, 4) if not turn_a else normal(4, 3), normal(4, 2) if not turn_b else normal(2, 4)],
        )
        for op in ("SparseMatMul",)
        for turn_a in (False, True)
        for turn_b in (False, True)
    },
    **{
        f"BatchMatMulV3 {adj_x} {adj_y}": (
            lambda a, b, adj_x=adj_x, adj_y=adj_y: apply_op(
                "BatchMatMulV3", x=a, y=b, adj_x=adj_x, adj_y=adj_y, Tout=tf.float64
            ),
            [normal(2, 3, 4) if not adj_x else normal(2, 4, 3), normal(4, 2) if not adj_y else normal(2, 4)],
        )
        for adj_x in (False, True)
        for adj_y in (False, True)
    },
    **{
        f"CumulativeLogsumexp {exclusive} {reverse}": (
            lambda x, exclusive=exclusive, reverse=reverse: tf.exp(
                apply_op("CumulativeLogsumexp", x=x, axis=1, exclusive=exclusive, reverse=reverse)
            ),
            [normal(2, 4)],
        )
        for exclusive in (False, True)
        for reverse in (False, True)
    },
    **{
        f"Cumprod {exclusive} {reverse} with zeros": (
            lambda x, exclusive=exclusive, reverse=reverse: apply_op(
                "Cumprod", x=x, axis=1, exclusive=exclusive, reverse=reverse
            ),
            [np.array([[1.0, 2.0, 0.0, 3.0, 2.0], [1.0, 0.0, 2.0, 0.0, 3.0], [0.5, 1.0, 2.0, 1.5, 2.0]])],
        )
        for exclusive in (False, True)
        for reverse in (False, True)
    },
    "SegmentProd": (lambda x: apply_op("SegmentProd", data=x, segment_ids=IDS), [normal(5, 2)]),
    "SegmentProd with zeros": (
        lambda x: apply_op("SegmentProd", data=x, segment_ids=IDS),
        [np.array([[1.0, 0], [0, 2.0], [3.0, 0], [2.0, 3.0], [0, 0]])],
    ),
    "NextAfter": (lambda x, y: apply_op("NextAfter", x1=x, x2=y), [normal(3, 4), normal(4)]),
    "NthElement": (lambda x: apply_op("NthElement", input=x, n=1), [normal(3, 5)]),
    "TensorScatterMax": (
        lambda x, u: apply_op("TensorScatterMax", tensor=x, indices=PLACES, updates=u), [normal(4, 2), normal(3, 2)],
    ),
    "TensorScatterMin": (
        lambda x, u: apply_op("TensorScatterMin", tensor=x, indices=PLACES, updates=u), [normal(4, 2), normal(3, 2)],
    ),
    "TensorStridedSliceUpdate": (
        lambda x, v: apply_op("TensorStridedSliceUpdate", input=x, begin=[1, 0], end=[4, 3], strides=[2, 1], value=v),
        [normal(4, 5), normal(2, 3)],
    ),
    "MatrixDiagPartV3": (
        lambda x: apply_op("MatrixDiagPartV3", input=x, k=[-1, 1], padding_value=np.float64(0)), [normal(2, 3, 4)],
    ),
    "SparseDenseCwiseAdd": (
        lambda v, d: apply_op(
            "SparseDenseCwiseAdd", sp_indices=np.int64([[0, 1], [2, 0]]), sp_values=v, dense=d,
            sp_shape=np.int64([3, 2]),
        ),
        [normal(2), normal(2)],
    ),
    "MatrixSolveLs tall": (
        lambda a, b: apply_op("MatrixSolveLs", matrix=a, rhs=b, l2_regularizer=np.float64(0.3)),
        [normal(2, 4, 3), normal(2, 4, 2)],
    ),
    "MatrixSolveLs wide": (
        lambda a, b: apply_op("MatrixSolveLs", matrix=a, rhs=b, l2_regularizer=np.float64(0.3)),
        [normal(3, 4), normal(3, 2)],
    ),
    "MaxPool3DGradGrad": (
        lambda g: apply_op(
            "MaxPool3DGradGrad", orig_input=IMAGE, orig_output=IMAGE.max((1, 2, 3), keepdims=True),
            grad=tf.cast(g, tf.float32),
            ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="VALID",
        ),
        [normal(1, 2, 2, 2, 3)],
    ),
    "Svd values": (singular(0), [normal(3, 5)]),
    "Svd left": (singular(1), [normal(3, 5)]),
    "Svd right": (singular(2), [normal(2, 3, 5)]),
    "Svd of a square": (singular(2), [normal(3, 3)]),
    "Svd of a tall": (singular(1), [normal(5, 3)]),
    "Svd with all vectors": (singular(2, full=True), [normal(3, 4)]),
    "Eig values": (
        lambda x: tf.real(apply_op("Eig", input=x, compute_v=False, Tout=tf.complex128)[0]),
        [np.diag([1.0, 5, 9]) + 0.3 * normal(3, 3)],
    ),
    "Einsum product": (einsum("abc,cd->abd"), [normal(2, 3, 4), normal(4, 2)]),
    "Einsum outer": (einsum("a,b->ba"), [normal(3), normal(2)]),
    "Einsum sum": (einsum("abc->b"), [normal(2, 3, 4)]),
    "Einsum sum of one": (einsum("ab,bc->c"), [normal(2, 3), normal(3, 4)]),
    "Einsum trace": (einsum("aab->b"), [normal(3, 3, 2)]),
    "Einsum diagonal": (einsum("ab,bb->ab"), [normal(2, 3), normal(3, 3)]),
    "Einsum ellipsis": (einsum("...ab,...bc->...ac"), [normal(5, 1, 2, 3), normal(4, 3, 2)]),
    "Einsum middle": (einsum("a...b,b->...a"), [normal(2, 3, 4), normal(4)]),
    "Svd of several with all vectors": (singular(2, full=True), [normal(2, 3, 4)]),
}  # fmt: skip
IMAGE = floats(1, 2, 2, 2, 3)


@pytest.mark.parametrize("name", RULES)
def test_rule(name: str) -> None:
    build, inputs = RULES[name]
    # in float32, and linear in each operand: a large step is exact
    step = 0.5 if name.startswith(("SparseMatMul", "MaxPool3D")) else 1e-5
    assert directional_error(build, inputs, step=step) < 1e-5


def test_second_derivatives_of_sparse_softmax_cross_entropy() -> None:
    def build(logits: Any) -> Any:
        loss = apply_op("SparseSoftmaxCrossEntropyWithLogits", features=logits, labels=[0, 1])[0]
        return tf.gradients(loss, [logits])[0]

    assert directional_error(build, [normal(2, 3)]) < 1e-6


@pytest.mark.parametrize("op", ["SparseConcat", "SparseAddGrad"])
def test_an_op_without_gradient_leaves_other_terms_theirs(op: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.constant([1.0, 2.0])
        sparse = tf.SparseTensor([[0, 0], [1, 1]], v, [2, 2])
        if op == "SparseConcat":
            made = tf.sparse_concat(1, [sparse, sparse]).values
        else:
            made = apply_op("SparseAddGrad", backprop_val_grad=v, a_indices=sparse.indices, b_indices=sparse.indices,
                            sum_indices=sparse.indices)[0]  # fmt: skip
        assert tf.gradients(made, v) == [None]
        both = tf.reduce_sum(made) + 3.0 * tf.reduce_sum(v)
        assert session.run(tf.gradients(both, v)[0]).tolist() == [3, 3]


def test_lists_hand_gradients_to_their_elements() -> None:
    def build(x: Any) -> Any:
        shape = [2]
        made = apply_op("TensorListFromTensor", tensor=x, element_shape=shape)
        made = apply_op("TensorListSetItem", input_handle=made, index=1, item=x[0] * 2.0)
        made = apply_op("TensorListPushBack", input_handle=made, tensor=x[2] * x[1])
        made, last = apply_op("TensorListPopBack", input_handle=made, element_shape=shape, element_dtype=tf.float64)
        picked = apply_op(
            "TensorListGetItem", input_handle=made, index=0, element_shape=shape, element_dtype=tf.float64
        )
        few = apply_op("TensorListGather", input_handle=made, indices=[1, 0, 1], element_shape=shape,
                       element_dtype=tf.float64)  # fmt: skip
        spread = apply_op("TensorListScatterV2", tensor=few, indices=[2, 0, 1], element_shape=shape, num_elements=3)
        whole = apply_op("TensorListStack", input_handle=spread, element_shape=shape, element_dtype=tf.float64)
        split = apply_op("TensorListSplit", tensor=whole, element_shape=[-1, 2], lengths=np.int64([1, 2]))
        joined = apply_op("TensorListConcatV2", input_handle=split, element_shape=[-1, 2], leading_dims=np.int64([]),
                          element_dtype=tf.float64)[0]  # fmt: skip
        return joined * joined + picked * last

    assert directional_error(build, [normal(3, 2)]) < 1e-6


@pytest.mark.parametrize("indices", [[[1], [0], [1]], [[[1], [0]]]])
def test_elements_of_a_resource_variable(indices: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.get_variable("v", initializer=np.arange(6.0).reshape(3, 2), use_resource=True)
        picked = apply_op("ResourceGatherNd", resource=variable.handle, indices=indices, dtype=tf.float64)
        found = tf.convert_to_tensor(tf.gradients(picked, variable)[0])
        session.run(tf.global_variables_initializer())
        expected = np.zeros((3, 2))
        np.add.at(expected, np.ravel(indices), 1)
        assert session.run(found).tolist() == expected.tolist()


@pytest.mark.parametrize(
    "use",
    [
        lambda m: m + 0.0,
        lambda m: m - tf.ones([4], tf.float64),
        lambda m: tf.add_n([m, m]),
        lambda m: tf.cond(tf.constant(True), lambda: m + 1.0, lambda: m),
        lambda m: tf.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, x + 1.0), [0, m])[1],
        lambda m: tf.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, tf.identity(x)), [0, m])[1],
        lambda m: tf.stop_gradient(m) + m,
    ],
)
def test_slices_of_a_gather_meet_another_op(use: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        m = tf.constant(np.arange(16.0).reshape(4, 4))
        found = tf.gradients(tf.nn.embedding_lookup(use(m), [0, 1, 1]), m)[0]
        rows = session.run(tf.convert_to_tensor(found))[:, 0]
        assert (rows / rows[0]).tolist() == [1, 2, 0, 0]
