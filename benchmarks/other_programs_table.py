"""Which programs of tests/interop/others are timed, and what they are told so that they train long enough.

A name is one of run.py's: the path below the folder of checkouts, and the variant. Where the arguments are not given
here, they are those of the row there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from others import data

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True)
class Timed:
    name: str
    args: tuple[str, ...] | None = None
    how: str = ""
    """What the arguments make of it, for the report."""
    data: tuple[tuple[Callable[[Path], None], str], ...] = field(default=())
    """More data than its row says."""


def _digits(folder: Path) -> None:
    data.write_mnist(folder, 60_000, 10_000)


def _sentences(folder: Path) -> None:
    """The hundred sentences of the program's own test, many times over: an epoch of 3 steps is hardly one."""
    for language in ("vi", "en"):
        text = (folder / f"iwslt15.tst2013.100.{language}").read_text(encoding="utf-8")
        (folder / f"train.{language}").write_text(text * 100, encoding="utf-8")


def _larger_gpt2(folder: Path) -> None:
    data.write_gpt2(folder, words=64, width=256, layers=4)


_EXAMPLES = "aymericdamien+TensorFlow-Examples/tensorflow_v1/examples/"
_TUTORIALS = "tensorflow+tensorflow-1.4/tensorflow/examples/tutorials/"
_CNN = "tensorflow+benchmarks-1.12/scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py"
_CNN_ARGS = ("--num_warmup_batches=1", "--num_batches=20000", "--device=cpu", "--data_format=NHWC", "--batch_size=32")
_BERT = (
    *("--input_file=bert.tfrecord", "--output_dir=out", "--do_train=True", "--bert_config_file=bert.json"),
    *("--num_train_steps=20000", "--num_warmup_steps=5", "--train_batch_size=4", "--max_seq_length=32"),
    "--max_predictions_per_seq=5",
)
_NMT = (
    *("--src=vi", "--tgt=en", "--vocab_prefix=nmt/testdata/iwslt15.vocab.100", "--out_dir=out"),
    *(f"--{part}_prefix=nmt/testdata/iwslt15.tst2013.100" for part in ("dev", "test")),
    "--train_prefix=nmt/testdata/train",
    *("--num_train_steps=20000", "--steps_per_stats=1000", "--num_layers=2", "--num_units=64", "--batch_size=32"),
)

TIMED = (
    *(
        Timed(f"{_EXAMPLES}{name}.py")
        for name in (
            *("2_BasicModels/linear_regression", "2_BasicModels/logistic_regression", "2_BasicModels/nearest_neighbor"),
            *("2_BasicModels/kmeans", "2_BasicModels/word2vec", "2_BasicModels/random_forest"),
            *("3_NeuralNetworks/autoencoder", "3_NeuralNetworks/bidirectional_rnn"),
            *("3_NeuralNetworks/convolutional_network", "3_NeuralNetworks/convolutional_network_raw"),
            *("3_NeuralNetworks/dcgan", "3_NeuralNetworks/dynamic_rnn", "3_NeuralNetworks/gan"),
            *("3_NeuralNetworks/multilayer_perceptron", "3_NeuralNetworks/neural_network"),
            *("3_NeuralNetworks/neural_network_raw", "3_NeuralNetworks/recurrent_network"),
            *("3_NeuralNetworks/variational_autoencoder", "4_Utils/tensorboard_advanced"),
            *("5_DataManagement/tensorflow_dataset_api", "6_MultiGPU/multigpu_cnn"),
        )
    ),
    Timed(
        _TUTORIALS + "mnist/fully_connected_feed.py",
        ("--max_steps=20000", "--input_data_dir=MNIST_data", "--log_dir=log"),
    ),
    Timed(_TUTORIALS + "mnist/mnist_softmax.py"),
    Timed(_TUTORIALS + "mnist/mnist_deep.py"),
    Timed(
        _TUTORIALS + "mnist/mnist_with_summaries.py", ("--max_steps=20000", "--data_dir=MNIST_data", "--log_dir=log")
    ),
    Timed(_TUTORIALS + "word2vec/word2vec_basic.py"),
    # tensorflow/models
    Timed(
        "FLIR+tensorflow-models/tutorials/image/cifar10/cifar10_train.py",
        ("--max_steps=100000", "--data_dir=data", "--train_dir=out"),
        "batches of 128",
    ),
    Timed(
        "FLIR+tensorflow-models/tutorials/image/cifar10/cifar10_multi_gpu_train.py",
        ("--max_steps=100000", "--data_dir=data", "--train_dir=out", "--num_gpus=1", "--batch_size=32"),
        "one tower, batches of 32",
    ),
    Timed(
        "FLIR+tensorflow-models/tutorials/rnn/ptb/ptb_word_lm.py",
        ("--data_path=data", "--model=small"),
        "small",
    ),
    Timed(
        "tensorflow+models-1.4/tutorials/image/alexnet/alexnet_benchmark.py",
        ("--batch_size=4", "--num_batches=300"),
        "batches of 4, forwards and back",
    ),
    Timed("tensorflow+models-1.4/tutorials/image/mnist/convolutional.py", (), "", ((_digits, "data"),)),
    Timed(
        "tensorflow+models-1.4/official/resnet/cifar10_main.py",
        (
            *("--data_dir=data", "--model_dir=out", "--train_epochs=100", "--epochs_per_eval=100", "--batch_size=32"),
            "--resnet_size=8",
        ),
        "ResNet-8, batches of 32",
    ),
    Timed(
        "tensorflow+models-1.4/official/wide_deep/wide_deep.py",
        (
            *("--train_data=wide_deep_test.csv", "--test_data=wide_deep_test.csv", "--model_dir=out"),
            *("--train_epochs=20000", "--epochs_per_eval=20000"),
        ),
    ),
    # tensorflow/benchmarks
    Timed(_CNN + "", (*_CNN_ARGS, "--model=trivial"), "trivial"),
    Timed(_CNN + " (lenet, forward only)", (*_CNN_ARGS, "--model=lenet"), "lenet, training"),
    Timed(_CNN + " (resnet20)", (*_CNN_ARGS, "--model=resnet20", "--data_name=cifar10"), "batches of 32"),
    # Language
    Timed("google-research+bert/run_pretraining.py", _BERT, "2 layers of 32"),
    Timed(
        "openai+gpt-2/src/generate_unconditional_samples.py",
        ("--model_name=tiny", "--nsamples=100000", "--batch_size=1", "--length=15"),
        "1 layer of 8, 15 tokens a step",
    ),
    Timed(
        "openai+gpt-2/src/generate_unconditional_samples.py",
        ("--model_name=tiny", "--nsamples=100000", "--batch_size=1", "--length=60"),
        "4 layers of 256, 60 tokens a step",
        ((_larger_gpt2, "models/tiny"),),
    ),
    Timed(
        "sherjilozair+char-rnn-tensorflow/train.py",
        ("--num_epochs=100", "--data_dir=text"),
        "2 layers of 128, 50 of 50 letters",
    ),
    Timed(
        "dennybritz+cnn-text-classification-tf/train.py",
        ("--evaluate_every=100000", "--checkpoint_every=100000"),
    ),
    Timed("tensorflow+nmt/nmt/nmt.py", _NMT, "2 layers of 64", ((_sentences, "nmt/testdata"),)),
    Timed(
        "tensorflow+nmt/nmt/nmt.py (attention)",
        (*_NMT, "--attention=scaled_luong", "--encoder_type=bi"),
        "2 layers of 64",
        ((_sentences, "nmt/testdata"),),
    ),
    Timed(
        "Kyubyong+transformer/train.py",
        (
            *("--num_epochs=2000", "--batch_size=16", "--d_model=64", "--d_ff=128", "--num_blocks=2"),
            *("--num_heads=4", "--vocab_size=50"),
        ),
        "2 blocks of 64",
    ),
    Timed("tkipf+gcn/gcn/train.py", ("--epochs=100000", "--early_stopping=100000")),
    Timed(
        "carpedm20+DCGAN-tensorflow/main.py",
        (
            *("--dataset=mnist", "--data_dir=data", "--train", "--epoch=5", "--input_height=28"),
            *("--output_height=28", "--batch_size=16"),
        ),
        "batches of 16",
    ),
)
