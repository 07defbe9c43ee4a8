"""tf.contrib.rnn: each cell's variables and shapes; fused cells against loops; what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

rnn = tf.contrib.rnn
B, D, H = 2, 4, 3


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


#: Cell → the names of its variables behind the cell's scope.
CELLS: dict[str, tuple[Callable[[], Any], str]] = {
    "coupled_input_forget_gate_lstm_cell": (
        lambda: rnn.CoupledInputForgetGateLSTMCell(H, use_peepholes=True, num_proj=2, num_unit_shards=2),
        "B W_0 W_1 W_F_diag W_O_diag W_P_0",
    ),
    "layer_norm_basic_lstm_cell": (
        lambda: rnn.LayerNormBasicLSTMCell(H),
        "forget/beta forget/gamma input/beta input/gamma kernel output/beta output/gamma state/beta state/gamma "
        "transform/beta transform/gamma",
    ),
    "layer_norm_lstm_cell": (
        lambda: rnn.LayerNormLSTMCell(H, use_peepholes=True, num_proj=2),
        "bias kernel projection/kernel w_f_diag w_i_diag w_o_diag",
    ),
    "weight_norm_lstm_cell": (
        lambda: rnn.WeightNormLSTMCell(H, num_proj=2),
        "wn_lstm_cell/bias wn_lstm_cell/kernel wn_lstm_cell/norm_0 wn_lstm_cell/norm_1 wn_lstm_cell/projection/kernel "
        "wn_lstm_cell/projection/norm_0",
    ),
    "glstm_cell": (
        lambda: rnn.GLSTMCell(4, number_of_groups=2, num_proj=2),
        "bias_f bias_i bias_j bias_o group0/kernel group1/kernel projection/kernel",
    ),
    "ugrnn_cell": (lambda: rnn.UGRNNCell(H), "bias kernel"),
    "intersection_rnn_cell": (
        lambda: rnn.IntersectionRNNCell(H, num_in_proj=H),
        "bias in_projection/bias in_projection/kernel kernel",
    ),
    "nas_cell": (
        lambda: rnn.NASCell(H, num_proj=2, use_bias=True),
        "bias kernel projection_weights recurrent_kernel",
    ),
    "sru_cell": (lambda: rnn.SRUCell(H), "bias kernel"),
    "ind_rnn_cell": (lambda: rnn.IndRNNCell(H), "bias kernel_u kernel_w"),
    "indy_gru_cell": (
        lambda: rnn.IndyGRUCell(H),
        "candidate/bias candidate/kernel candidate/kernel_u gates/bias gates/kernel_u gates/kernel_w",
    ),
    "indy_lstm_cell": (lambda: rnn.IndyLSTMCell(H), "bias kernel_u kernel_w"),
    "minimal_rnn_cell": (lambda: rnn.MinimalRNNCell(H), "bias kernel"),
    "cfn_cell": (lambda: rnn.CFNCell(H), "bias kernel recurrent_kernel"),
    "lstm_cell": (lambda: rnn.LSTMBlockCell(H, use_peephole=True), "bias kernel w_f_diag w_i_diag w_o_diag"),
    "gru_cell": (lambda: rnn.GRUBlockCellV2(H), "candidate/bias candidate/kernel gates/bias gates/kernel"),
    "grid_lstm_cell": (
        lambda: rnn.GridLSTMCell(H, feature_size=2, frequency_skip=1, num_frequency_blocks=[3]),
        "B_f_0 B_t_0 W_f_0_0 W_t_0_0",
    ),
    "bidirectional_grid_lstm_cell": (
        lambda: rnn.BidirectionalGridLSTMCell(
            H,
            use_peepholes=True,
            share_time_frequency_weights=True,
            couple_input_forget_gates=True,
            feature_size=2,
            frequency_skip=1,
            num_frequency_blocks=[3],
        ),
        " ".join(
            sorted(
                f"{way}/{name}"
                for way in ("bwd", "fwd")
                for name in ("B_f_0", "W_f_0_0", *(f"W_{g}_diag_freq{end}_0" for g in "IO" for end in "ft"))
            )
        ),
    ),
    "input_projection_wrapper": (
        lambda: rnn.InputProjectionWrapper(rnn.GRUCell(H), 2),
        "bias gru_cell/candidate/bias gru_cell/candidate/kernel gru_cell/gates/bias gru_cell/gates/kernel kernel",
    ),
    "attention_cell_wrapper": (
        lambda: rnn.AttentionCellWrapper(rnn.BasicLSTMCell(H), 2),
        "attention/attn_v attention/attn_w attention/bias attention/kernel attn_output_projection/bias "
        "attn_output_projection/kernel basic_lstm_cell/bias basic_lstm_cell/kernel bias kernel",
    ),
}


#: Tried each time; the others with `make test-thorough`.
NOW = ("coupled_input_forget_gate_lstm_cell", "weight_norm_lstm_cell", "nas_cell", "attention_cell_wrapper")


@pytest.mark.parametrize(
    "scope", [name if name in NOW else pytest.param(name, marks=pytest.mark.thorough) for name in CELLS]
)
def test_a_cell_has_the_variables_of_tensorflow_and_trains(scope: str) -> None:
    make, names = CELLS[scope]
    cell = make()
    inputs = [tf.constant(np.random.RandomState(0).randn(B, D).astype(np.float32))] * 2

    outputs, state = tf.nn.static_rnn(cell, inputs, dtype=tf.float32)
    gradients = tf.gradients(outputs[-1], tf.trainable_variables())

    found = sorted(v.op.name.removeprefix(f"rnn/{scope}/") for v in tf.trainable_variables())
    assert found == names.split()
    assert all(gradient is not None for gradient in gradients)
    tf.nest.assert_same_structure(state, cell.state_size)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        values, *slopes = sess.run([outputs[-1], *gradients])
    assert values.shape == (B, cell.output_size)
    assert np.isfinite(values).all()
    assert all(np.isfinite(slope).all() for slope in slopes)


@pytest.mark.parametrize("cell", ["BasicRNNCell", "GRUCell", "BasicLSTMCell", "LSTMCell"])
def test_a_cell_that_is_built_by_hand_has_floats(cell: str) -> None:
    made = getattr(tf.nn.rnn_cell, cell)(H)
    made.build(tf.TensorShape([None, D]))

    assert {variable.dtype.base_dtype for variable in made.variables} == {tf.float32}


def test_a_fused_lstm_is_the_loop_over_its_cell() -> None:
    x = tf.constant(np.random.RandomState(1).randn(5, B, D).astype(np.float32))
    lengths = [3, 5]
    with tf.variable_scope("rnn", initializer=tf.constant_initializer(0.3)):
        fused = rnn.LSTMBlockFusedCell(H, use_peephole=True, cell_clip=0.5, name="lstm_cell")
        outputs, state = fused(x, dtype=tf.float32, sequence_length=lengths)
    with tf.variable_scope("rnn", reuse=True):
        cell = rnn.LSTMBlockCell(H, use_peephole=True, cell_clip=0.5)
        expected = tf.nn.dynamic_rnn(cell, x, lengths, dtype=tf.float32, time_major=True, scope=tf.get_variable_scope())
    types = {op.type for op in tf.get_default_graph().get_operations()}
    reversed_twice = rnn.TimeReversedFusedRNN(rnn.TimeReversedFusedRNN(fused))(
        x, dtype=tf.float32, sequence_length=lengths
    )

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        one, two, three = sess.run([(outputs, state), expected, reversed_twice])
    np.testing.assert_allclose(one[0], two[0], rtol=1e-5)
    np.testing.assert_allclose(one[1].c, two[1].c, rtol=1e-5)
    np.testing.assert_allclose(one[1].h, two[1].h, rtol=1e-5)
    np.testing.assert_allclose(one[0], three[0])
    assert {"BlockLSTM", "LSTMBlockCell"} <= types


def test_adaptors_give_the_same_unrolled_and_in_a_loop() -> None:
    x = [tf.constant(np.random.RandomState(step).randn(B, D).astype(np.float32)) for step in range(3)]
    with tf.variable_scope("rnn", initializer=tf.constant_initializer(0.2)) as scope:
        unrolled, _ = rnn.FusedRNNCellAdaptor(rnn.BasicRNNCell(H))(x, dtype=tf.float32, scope=scope)
    with tf.variable_scope("rnn", reuse=True) as scope:
        looped, _ = rnn.FusedRNNCellAdaptor(rnn.BasicRNNCell(H), use_dynamic_rnn=True)(x, dtype=tf.float32, scope=scope)

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        one, two = sess.run([unrolled, looped])
    np.testing.assert_allclose(one, two, rtol=1e-6)


def test_a_stack_of_both_directions() -> None:
    def cells() -> list[Any]:
        return [rnn.GRUCell(H), rnn.GRUCell(2)]

    outputs, forwards, backwards = rnn.stack_bidirectional_dynamic_rnn(
        cells(), cells(), tf.zeros([B, 5, D]), dtype=tf.float32
    )

    assert outputs.shape.as_list() == [B, 5, 4]
    assert [each.shape.as_list() for each in (*forwards, *backwards)] == [[B, H], [B, 2]] * 2
    assert (
        tf.trainable_variables()[0].op.name
        == "stack_bidirectional_rnn/cell_0/bidirectional_rnn/fw/gru_cell/gates/kernel"
    )
    with pytest.raises(ValueError, match="must have the same depth"):
        rnn.stack_bidirectional_rnn(cells(), cells()[:1], [tf.zeros([B, D])], dtype=tf.float32)


def test_convolutional_cells() -> None:
    cell = rnn.Conv2DLSTMCell(
        input_shape=[3, 3, 2], output_channels=1, kernel_shape=[2, 2], skip_connection=True, initializers=None
    )
    state = cell.zero_state(B, tf.float32)
    output, _ = cell(tf.ones([B, 3, 3, 2]), state)

    assert [v.op.name for v in tf.trainable_variables()] == ["conv_2d_lstm_cell/kernel", "conv_2d_lstm_cell/biases"]
    assert output.shape.as_list() == [B, 3, 3, 3]
    with pytest.raises(ValueError, match=r"Invalid input_shape .* for conv_ndims=3"):
        rnn.Conv3DLSTMCell(input_shape=[3, 3, 2], output_channels=1, kernel_shape=[2])


def test_a_phased_lstm_is_closed_outside_of_its_phase() -> None:
    cell = rnn.PhasedLSTMCell(H, ratio_on=1e-6, leak=0.0)
    before = rnn.LSTMStateTuple(tf.ones([B, H]), tf.ones([B, H]) / 2)
    output, state = cell((tf.fill([B, 1], 0.3), tf.ones([B, D])), before)

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        values, after = sess.run([output, state])
    np.testing.assert_allclose(values, 0.5)
    np.testing.assert_allclose(after.c, 1.0)


def test_a_highway_carries_what_its_gate_says() -> None:
    cell = rnn.HighwayWrapper(rnn.BasicRNNCell(D), carry_bias_init=100.0)
    output, _ = cell(tf.fill([B, D], 7.0), cell.zero_state(B, tf.float32))

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        np.testing.assert_allclose(sess.run(output), 7.0)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: rnn.EmbeddingWrapper(rnn.GRUCell(2), 0, 2), ValueError, "must be > 0"),
        (lambda: rnn.OutputProjectionWrapper(rnn.GRUCell(2), 0), ValueError, "output_size must be > 0"),
        (lambda: rnn.AttentionCellWrapper(rnn.GRUCell(2), 0), ValueError, "attn_length should be greater than zero"),
        (lambda: rnn.AttentionCellWrapper(None, 2), TypeError, "is not an RNNCell"),
        (lambda: rnn.GRUBlockCell(), ValueError, "Exactly one of num_units or cell_size"),
        (lambda: rnn.GridLSTMCell(2), ValueError, "Must specify num_frequency_blocks"),
        (lambda: rnn.GLSTMCell(3, number_of_groups=2), ValueError, "must be divisible by number_of_groups"),
        (lambda: rnn.CompiledWrapper, AttributeError, "for XLA, which Tenfold does not have"),
        (lambda: rnn.LSTMBlokCell, AttributeError, "did you mean LSTMBlockCell"),
    ],
)
def test_what_is_refused(make: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_block_cells_are_the_cells_that_they_stand_for() -> None:
    x = tf.constant(np.random.RandomState(4).randn(5, B, D).astype(np.float32))
    found = {}
    for cell, block, scope in (
        (rnn.GRUCell, rnn.GRUBlockCellV2, "gru"),
        (rnn.BasicLSTMCell, lambda units: rnn.LSTMBlockCell(units, name="basic_lstm_cell"), "lstm"),
    ):
        for reuse, make in ((False, cell), (True, block)):
            with tf.variable_scope(scope, initializer=tf.random_uniform_initializer(-0.5, 0.5), reuse=reuse):
                outputs, _ = tf.nn.dynamic_rnn(make(H), x, dtype=tf.float32, time_major=True)
            weights = tf.trainable_variables(scope)
            found[scope, reuse] = [outputs, *tf.gradients(outputs * outputs, weights)]
    types = {op.type for op in tf.get_default_graph().get_operations()}

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        values = sess.run(found)
    assert {"GRUBlockCell", "GRUBlockCellGrad", "LSTMBlockCell", "LSTMBlockCellGrad"} <= types
    for scope in ("gru", "lstm"):
        for one, other in zip(values[scope, False], values[scope, True], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_a_cell_that_was_built_makes_no_second_variables() -> None:
    cell = rnn.IndRNNCell(H, dtype=tf.float32)
    cell.build(tf.TensorShape([B, D]))
    cell(tf.zeros([B, D]), cell.zero_state(B, tf.float32))

    assert cell.built
    assert len(tf.global_variables()) == 3
