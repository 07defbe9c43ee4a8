"""Which test files of TensorFlow 1.15's recurrent networks are run on Tenfold's client: cells, tf.nn's loops, contrib's
rnn and seq2seq. Names that only they ask for are in api_rnn.py. Read by api_files.py.
"""

from __future__ import annotations

from files import Exclusion

_P = "tensorflow/python"
_RNN = "tensorflow/contrib/rnn/python/kernel_tests"
_SEQ2SEQ = "tensorflow/contrib/seq2seq/python/kernel_tests"

#: Folder → stems of its test files.
_FILES = {
    f"{_P}/kernel_tests": "rnn rnn_cell",
    _RNN: "fused_rnn_cell gru_ops lstm_ops rnn_cell rnn",
    _SEQ2SEQ: "attention_wrapper basic_decoder beam_search_decoder beam_search_ops decoder loss",
}

FILES = tuple(f"{folder}/{stem}_test.py" for folder, stems in _FILES.items() for stem in stems.split())

_KERAS = "builds its program with Keras"
_XLA = "marks ops for the XLA compiler"
_CHECKPOINTS = "the object-based checkpoints of TensorFlow 2 (tf.train.Checkpoint), which are not served"
_CONFIG = "the serialization of Keras (get_config, from_config)"

#: File → reason → tests that are no public behaviour of graph mode.
_OUT: dict[str, dict[str, tuple[str, ...]]] = {
    f"{_P}/kernel_tests/rnn": {
        _KERAS: (
            "RNNTest.testKerasAndTFRNNLayerOutputComparison",
            "RNNTest.testRNNCellActsLikeKerasRNNCellInProperScope",
            "RNNTest.testRNNCellSerialization",
            "RNNTest.testRNNWithKeras*",
            "RNNTest.testRNNWithStackKerasCell",
            "RNNTest.testSimpleRNNCellAndBasicRNNCellComparison",
            "RNNTest.testStaticRNNWithKerasSimpleRNNCell",
        ),
    },
    f"{_P}/kernel_tests/rnn_cell": {
        _CHECKPOINTS: (
            "RNNCellTest.testBasicLSTMCell",
            "RNNCellTest.testDeviceWrapper",
            "RNNCellTest.testResidualWrapper",
            "RNNCellTest.testWrapperCheckpointing",
            "RNNTest.testDropout",
        ),
        _CONFIG: ("RNNCellTest.test*WrapperSerialization",),
    },
    f"{_RNN}/rnn_cell": {
        _XLA: ("CompiledWrapperTest.testMultiRNNCellWithLSTMCellAndXLA",),
        _KERAS: ("RNNCellTest.testNASCellKerasRNN", "RNNCellTest.testSRUCellKerasRNN"),
        _CHECKPOINTS: ("RNNCellTest.testIndyLSTMCell",),
    },
    f"{_SEQ2SEQ}/beam_search_decoder": {_KERAS: ("BeamSearchDecoderV2Test.*",)},
    f"{_SEQ2SEQ}/loss": {
        _KERAS: ("LossTest.testSequenceLossClass", "LossTest.testSumReduction", "LossTest.testWeightedSumReduction"),
    },
}

EXCLUDED = tuple(
    Exclusion(f"{path}_test.py", test, why)
    for path, reasons in _OUT.items()
    for why, tests in reasons.items()
    for test in tests
)
