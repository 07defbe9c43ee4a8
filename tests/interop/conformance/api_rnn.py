"""Names that only TensorFlow's tests of cells and decoders ask for: private functions under the names they have there.

One class per module; api_extras.py has the table. Which files are run: api_files_rnn.py.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import tenfold as tf
from tenfold.ops import raw_ops

if TYPE_CHECKING:
    from collections.abc import Iterator


class LstmOps:
    """Of contrib.rnn's lstm_ops."""

    @staticmethod
    def _block_lstm(
        seq_len_max: Any,
        x: Any,
        w: Any,
        b: Any,
        cs_prev: Any = None,
        h_prev: Any = None,
        wci: Any = None,
        wcf: Any = None,
        wco: Any = None,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
    ) -> tuple[list[Any], ...]:
        """BlockLSTM of a list of time steps; lists of what the op gives."""
        cells = b.shape[0].value // 4
        zero = tf.zeros([x[0].shape[0].value, cells], x[0].dtype)
        none = tf.zeros([cells], x[0].dtype)
        made = raw_ops.BlockLSTM(
            seq_len_max=seq_len_max,
            x=tf.stack(x),
            cs_prev=zero if cs_prev is None else cs_prev,
            h_prev=zero if h_prev is None else h_prev,
            w=w,
            wci=none if wci is None else wci,
            wcf=none if wcf is None else wcf,
            wco=none if wco is None else wco,
            b=b,
            forget_bias=forget_bias,
            cell_clip=-1.0 if cell_clip is None else cell_clip,
            use_peephole=use_peephole,
        )
        return tuple(tf.unstack(each) for each in made)


class Benchmarking:
    """contrib.rnn's kernel_tests.benchmarking, whose functions time devices; only one of them is called by tests."""

    @staticmethod
    def dict_product(dicts: Any) -> Iterator[dict[Any, Any]]:
        return (dict(zip(dicts, values, strict=True)) for values in itertools.product(*dicts.values()))


class BeamSearch:
    """Of contrib.seq2seq's beam_search_decoder."""

    @staticmethod
    def _check_batch_beam(t: Any, batch_size: Any, beam_width: int) -> Any:
        from tenfold.contrib.seq2seq.beam_search_decoder import check_beams

        return check_beams(t, batch_size, beam_width)

    @staticmethod
    def _mask_probs(probs: Any, eos_token: int, finished: Any) -> Any:
        from tenfold.contrib.seq2seq import beam_search_step

        return beam_search_step._masked(probs, eos_token, tf.convert_to_tensor(finished))

    @staticmethod
    def _beam_search_step(time: Any, **named: Any) -> Any:
        from tenfold.contrib.seq2seq import beam_search_step

        return beam_search_step.search_step(**named)


class Initializers:
    """tensorflow.python.keras.initializers: those that are an initializer of TensorFlow 1, too."""

    @property
    def Constant(self) -> Any:
        return tf.constant_initializer


class Dtypes:
    """tensorflow.python.framework.dtypes: the types of references have names there."""

    def __getattr__(self, name: str) -> Any:
        plain = name.removesuffix("_ref")
        if plain == name or plain.startswith("_"):
            raise AttributeError(name)
        return tf.as_dtype(plain)._as_ref


class KerasTesting:
    """tensorflow.python.keras.testing_utils."""

    @staticmethod
    def get_test_data(
        train_samples: int, test_samples: int, input_shape: Any, num_classes: int, random_seed: Any = None
    ) -> Any:
        import numpy as np

        choose = np.random.RandomState(random_seed)
        count = train_samples + test_samples
        labels = choose.randint(num_classes, size=count)
        values = (choose.rand(num_classes, *input_shape)[labels] + choose.rand(count, *input_shape)).astype("float32")
        cut = slice(0, train_samples), slice(train_samples, count)
        return tuple((values[part], labels[part]) for part in cut)


class KerasUtils:
    """tensorflow.python.keras.utils."""

    @staticmethod
    def to_categorical(labels: Any) -> Any:
        import numpy as np

        return np.eye(int(labels.max()) + 1, dtype=np.float32)[labels]
