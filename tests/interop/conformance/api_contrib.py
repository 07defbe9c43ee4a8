"""Where names of TensorFlow's contrib and of its distributions are found, for api_shim.py: rows of its table HOMES."""

from __future__ import annotations

from tenfold.compat import tensorflow_paths

_RNN = (
    "tenfold.contrib.rnn tenfold.contrib.rnn.cell_parts tenfold.ops.rnn tenfold.ops.rnn_static tenfold.ops.rnn_cell "
    "tenfold.ops.rnn_cell_layer tenfold.ops.rnn_cell_wrappers tenfold.compat.python.rnn_cell"
)
_SEQ2SEQ = (
    "tenfold.contrib.seq2seq tenfold.contrib.seq2seq.beam_search_step tenfold.contrib.seq2seq.attention "
    "tenfold.contrib.seq2seq.helper"
)

#: Module behind "tensorflow." → the modules of Tenfold that have its names.
OF_CONTRIB = {
    **dict.fromkeys(
        (
            *(f"contrib.rnn.python.ops.{name}" for name in ("core_rnn_cell", "rnn", "rnn_cell", "lstm_ops", "gru_ops")),
            *("contrib.rnn.python.ops.fused_rnn_cell", "python.ops.rnn", "python.ops.rnn_cell"),
            "python.ops.rnn_cell_impl",
        ),
        _RNN,
    ),
    **dict.fromkeys(
        (
            f"contrib.seq2seq.python.ops.{name}"
            for name in (
                *("attention_wrapper", "basic_decoder", "beam_search_decoder", "beam_search_ops", "decoder", "helper"),
                "loss",
            )
        ),
        _SEQ2SEQ,
    ),
    # A module that has the name of a function.
    "contrib.data.python.ops.get_single_element": "tenfold.contrib.data",
    "contrib.crf": "tenfold.contrib.crf",
    **{path: tensorflow_paths.HOMES[path] for path in tensorflow_paths.HOMES if ".slim.nets." in path},
    "python.layers.core": "tenfold.layers.core",
    "contrib.crf.python.ops.crf": "tenfold.contrib.crf",
    "contrib.legacy_seq2seq.python.ops.seq2seq": "tenfold.contrib.legacy_seq2seq",
    "contrib.lookup": "tenfold.contrib.lookup",
    "contrib.lookup.lookup_ops": "tenfold.contrib.lookup",
    "python.ops.distributions.util": "tenfold.distributions.parameters",
    "python.ops.distributions.special_math": "tenfold.distributions.special",
    **{
        f"python.ops.distributions.{name}": f"tenfold.distributions.{name} tenfold.distributions"
        for name in (
            *("bernoulli", "beta", "categorical", "dirichlet", "dirichlet_multinomial", "distribution", "gamma"),
            *("kullback_leibler", "laplace", "multinomial", "normal", "student_t", "uniform"),
        )
    },
    "python.ops.distributions.exponential": "tenfold.distributions.gamma",
    "python.ops.distributions.identity_bijector": "tenfold.contrib.distributions.bijectors",
    "python.ops.distributions.bijector": "tenfold.contrib.distributions.bijectors",
    "python.ops.distributions.transformed_distribution": "tenfold.contrib.distributions",
    "python.ops.distributions.distributions": "tenfold.distributions",
}
