"""Which files of a folder of checkouts are programs, and what each is told. Read by run.py.

A row's `files` is a pattern below the folder, whose folders are named OWNER+NAME; a file is taken by its first row. The
arguments make a training short and say where data is; nothing in a program is changed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from others import data

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_IMPORTS = re.compile(r"^\s*(?:import|from)\s+tensorflow", re.M)
#: A program does something when it is run; a module of functions does not.
_DOES = re.compile(r"^if __name__ ==|^(?:with |sess|for |while )|\.run\(|tf\.app\.run", re.M)
_TENSORFLOW_2 = re.compile(
    r"tf\.(function|GradientTape|keras\.optimizers)|enable_eager_execution|tf\.contrib\.eager|tfe\."
)


@dataclass(frozen=True)
class Program:
    files: str
    args: tuple[str, ...] = ()
    cwd: str = ""
    """Where it is run, below its repository; else beside the file."""
    module: str = ""
    """Run by `-m`, because it imports its own package."""
    path: tuple[str, ...] = ()
    """Folders below the repository that are importable."""
    cluster: tuple[tuple[str, int], ...] = ()
    """Jobs and their tasks, for a program that is started once for each."""
    run_options: tuple[str, ...] = ("--guide-flags",)
    by_hand: bool = False
    """The tasks are started one by one with --job_name and --task_index: the program itself says where they listen."""
    data: tuple[tuple[Callable[[Path], None], str], ...] = field(default=())
    but: tuple[str, ...] = ()
    """Paths with one of these are not meant."""

    def is_program(self, path: Path) -> bool:
        """Whether the file does something with TensorFlow 1 when it is run."""
        text = path.read_text(encoding="utf-8", errors="replace")
        return bool(_IMPORTS.search(text) and _DOES.search(text)) and not _TENSORFLOW_2.search(text)


_TEN_STEPS = ("--max_steps=10",)
_PS_AND_WORKERS = (("ps", 1), ("workers", 2))
_CNN = (
    "--batch_size=4",
    "--num_batches=3",
    "--num_warmup_batches=1",
    "--device=cpu",
    "--data_format=NHWC",
    "--model=trivial",
)
_BERT = (
    *("--input_file=bert.tfrecord", "--output_dir=out", "--do_train=True", "--bert_config_file=bert.json"),
    *("--num_train_steps=20", "--num_warmup_steps=5", "--train_batch_size=4", "--max_seq_length=32"),
    "--max_predictions_per_seq=5",
)

_EXAMPLES = "tensorflow+tensorflow-*/tensorflow/examples/"
_TUTORIALS = "*models*/tutorials/"

PROGRAMS = (
    # TensorFlow's own tutorials and examples
    Program(
        _EXAMPLES + "tutorials/mnist/fully_connected_feed.py",
        ("--max_steps=200", "--input_data_dir=MNIST_data", "--log_dir=log"),
    ),
    Program(
        _EXAMPLES + "tutorials/mnist/mnist_with_summaries.py",
        ("--max_steps=30", "--data_dir=MNIST_data", "--log_dir=log"),
    ),
    Program(_EXAMPLES + "tutorials/mnist/mnist_softmax*.py", ("--data_dir=MNIST_data",)),
    Program(_EXAMPLES + "tutorials/mnist/mnist_deep.py", ("--data_dir=MNIST_data",)),
    Program(_EXAMPLES + "tutorials/*/*.py", but=("/mnist/mnist.py", "input_data")),
    Program(_EXAMPLES + "how_tos/reading_data/convert_to_records.py", ("--directory=MNIST_data",)),
    Program(
        _EXAMPLES + "how_tos/reading_data/fully_connected_preloaded*.py", ("--train_dir=MNIST_data", "--num_epochs=1")
    ),
    Program(
        _EXAMPLES + "how_tos/reading_data/fully_connected_reader.py",
        ("--train_dir=records", "--num_epochs=2"),
        data=((data.write_mnist_records, "records"),),
    ),
    Program(_EXAMPLES + "benchmark/*.py"),
    Program(
        _EXAMPLES + "speech_commands/train.py",
        (
            *("--data_url=", "--data_dir=speech", "--wanted_words=yes,no", "--how_many_training_steps=4,2"),
            *("--batch_size=8", "--eval_step_interval=3", "--save_step_interval=3"),
            *("--summaries_dir=out/logs", "--train_dir=out/train"),
        ),
        data=((data.write_speech, "speech"),),
    ),
    Program(_EXAMPLES + "get_started/*/*.py", but=("/test.py", "imports85")),
    Program(_EXAMPLES + "saved_model/*.py"),
    Program(_EXAMPLES + "learn/*.py"),
    Program(
        "tensorflow+tensorflow-*/tensorflow/tools/dist_test/python/mnist_replica.py",
        ("--train_steps=50", "--data_dir=MNIST_data"),
        cluster=_PS_AND_WORKERS,
    ),
    # tensorflow/models
    Program(
        _TUTORIALS + "image/cifar10/cifar10_train.py",
        (*_TEN_STEPS, "--data_dir=data", "--train_dir=out", "--batch_size=16"),
        data=((data.write_cifar10, "data"),),
    ),
    Program(
        _TUTORIALS + "image/cifar10/cifar10_multi_gpu_train.py",
        (*_TEN_STEPS, "--data_dir=data", "--train_dir=out", "--num_gpus=1", "--batch_size=16"),
        data=((data.write_cifar10, "data"),),
    ),
    Program(
        _TUTORIALS + "rnn/ptb/ptb_word_lm.py", ("--data_path=data", "--model=test"), data=((data.write_ptb, "data"),)
    ),
    Program(_TUTORIALS + "image/alexnet/alexnet_benchmark.py", ("--batch_size=2", "--num_batches=2")),
    Program(_TUTORIALS + "image/mnist/convolutional.py", ("--self_test",)),
    Program(_TUTORIALS + "embedding/*.py"),
    Program(_TUTORIALS + "rnn/translate/translate.py", ("--self_test",)),
    Program(
        "*models*/official/resnet/cifar10_main.py",
        ("--use_synthetic_data", "--train_epochs=1", "--batch_size=8"),
        module="official.resnet.cifar10_main",
        cwd=".",
    ),
    Program("*models*/official/resnet/*_test.py", cwd=".", path=(".",)),
    Program("*models*/official/wide_deep/*_test.py", cwd=".", path=(".",)),
    Program("*models*/official/mnist/*_test.py", cwd=".", path=(".",)),
    Program("*models*/samples/core/get_started/*.py", ("--train_steps=50",)),
    Program("*models*/samples/cookbook/regression/*.py", but=("automobile_data",)),
    # Benchmarks and larger models
    Program("tensorflow+benchmarks-*/scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py", _CNN),
    Program("tensorflow+nmt/nmt/*_test.py", cwd=".", path=(".",)),
    Program("google-research+bert/*_test.py"),
    Program("google-research+bert/run_pretraining.py", _BERT, data=((data.write_bert, "."),)),
    Program(
        "openai+gpt-2/src/generate_unconditional_samples.py",
        ("--model_name=tiny", "--nsamples=1", "--batch_size=1", "--length=4"),
        cwd=".",
        path=("src",),
        data=((data.write_gpt2, "models/tiny"),),
    ),
    Program(
        "sherjilozair+char-rnn-tensorflow/train.py",
        ("--num_epochs=1", "--rnn_size=16", "--data_dir=text"),
        data=((data.write_text, "text"),),
    ),
    Program(
        "dennybritz+cnn-text-classification-tf/train.py",
        ("--num_epochs=1", "--evaluate_every=20", "--checkpoint_every=20"),
    ),
    Program("guillaumegenthial+sequence_tagging/train.py", data=((data.write_named_entities, "data"),)),
    Program("ibab+tensorflow-wavenet/test/*.py", cwd=".", path=(".",)),
    Program("ibab+tensorflow-wavenet/train.py", ("--data_dir=speech",), data=((data.write_speech, "speech"),)),
    # Distributed guides
    Program("mrahtz+ocd-a3c/train.py", ("PongNoFrameskip-v4", "--n_workers=2", "--n_steps=200")),
    Program("mrahtz+ocd-a3c/tests/*_test.py", cwd=".", path=(".",)),
    Program(
        "openai+universe-starter-agent/worker.py",
        ("--num-workers=2", "--log-dir=out"),
        cluster=_PS_AND_WORKERS,
    ),
    Program("tmulc18+*/*/*.py", cluster=_PS_AND_WORKERS, by_hand=True, but=("Multiple-GPUs",)),
    Program("tmulc18+*/Multiple-GPUs-Single-Machine/*.py"),
    # Tutorials
    Program("aymericdamien+*/tensorflow_v1/**/*.py", but=("input_data",)),
    Program("aymericdamien+*/examples/**/*.py"),
    Program("golbin+*/**/*.py"),
    Program("nlintz+*/*.py"),
    Program("dongminlee94+*/*.py"),
    Program("yongyehuang+*/**/*.py"),
    Program("caicloud+*/**/*.py"),
    Program("chiphuyen+*/**/*.py"),
    Program("ChengBinJin+*/**/*.py"),
    Program("MorvanZhou+*/**/*.py"),
    Program("dennybritz+reinforcement-learning/**/*.py"),
    Program("tkipf+gcn/gcn/train.py"),
)
