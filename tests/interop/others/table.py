"""Which files of a folder of checkouts are programs, and what each is told. Read by run.py.

A row's `files` is a pattern below the folder, whose folders are named OWNER+NAME; a file is taken by its first row (of
each variant). The arguments make a training short and say where data is; nothing in a program is changed.
table_models.py has the rows of the larger programs, table_tutorials.py of tutorials with data of their own,
table_wider.py of those that came later.
"""

from __future__ import annotations

from others import data, data_files
from others.program import Program
from others.table_drawn import DRAWN
from others.table_models import MODELS
from others.table_tutorials import TUTORIALS
from others.table_wider import WIDER

_PS_AND_WORKERS = (("ps", 1), ("workers", 2))

_EXAMPLES = "tensorflow+tensorflow-*/tensorflow/examples/"

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
    Program(
        _EXAMPLES + "tutorials/estimators/abalone.py",
        ("--train_data=abalone_train.csv", "--test_data=abalone_test.csv", "--predict_data=abalone_predict.csv"),
        data=((data_files.write_abalone, "."),),
    ),
    Program(_EXAMPLES + "tutorials/word2vec/*.py", data=((data_files.write_text8, "tmp"),)),
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
    Program(
        _EXAMPLES + "get_started/*/*.py",
        data=((data_files.write_cars, "home"),),
        in_1_15="module 'tensorflow.contrib.data' has no attribute 'TextLineDataset'",
        but=("/test.py", "imports85"),
    ),
    Program(_EXAMPLES + "saved_model/*.py", ("--output_dir=a", "--output_dir_pbtxt=b", "--output_dir_main_op=c")),
    Program(
        _EXAMPLES + "learn/wide_n_deep_tutorial.py",
        ("--train_data=adult.data", "--test_data=adult.test", "--train_steps=50"),
        data=((data_files.write_census, "."),),
    ),
    Program(
        _EXAMPLES + "learn/*.py",
        data=((data_files.write_iris, "."), (data_files.write_articles, "dbpedia_data")),
    ),
    Program(
        "tensorflow+tensorflow-*/tensorflow/tools/dist_test/python/mnist_replica.py",
        ("--train_steps=50", "--data_dir=MNIST_data"),
        cluster=_PS_AND_WORKERS,
    ),
    Program(
        "tensorflow+tensorflow-*/tensorflow/tools/dist_test/python/census_widendeep.py",
        ("--data_dir=.", "--model_dir=out", "--output_dir=out", "--train_steps=5"),
        data=((data_files.write_census, "."),),
    ),
    *MODELS,
    Program("guillaumegenthial+sequence_tagging/train.py", data=((data.write_named_entities, "data"),)),
    Program("ibab+tensorflow-wavenet/test/*.py", cwd=".", path=(".",)),
    Program("ibab+tensorflow-wavenet/train.py", ("--data_dir=speech",), data=((data.write_speech, "speech"),)),
    # Distributed guides
    Program("mrahtz+ocd-a3c/train.py", ("PongNoFrameskip-v4", "--n_workers=2", "--n_steps=200")),
    # train_test.py starts train.py, which wants Atari's games.
    Program("mrahtz+ocd-a3c/tests/*_test.py", cwd=".", path=(".",), but=("train_test",)),
    Program(
        "openai+universe-starter-agent/worker.py",
        ("--num-workers=2", "--log-dir=out"),
        cluster=_PS_AND_WORKERS,
    ),
    Program("tmulc18+*/Distributed-Setup/*.py", cluster=(("ps", 1), ("workers", 1)), by_hand=True),
    Program("tmulc18+*/*/*.py", cluster=_PS_AND_WORKERS, by_hand=True, but=("Multiple-GPUs",)),
    Program("tmulc18+*/Multiple-GPUs-Single-Machine/*.py"),
    # Tutorials
    *TUTORIALS,
    Program(
        "aymericdamien+*/**/6_MultiGPU/*.py",
        in_1_15="Cannot assign a device for operation: it wants GPUs, and says nothing of soft placement",
    ),
    Program(
        "aymericdamien+*/**/5_DataManagement/build_an_image_dataset.py",
        in_1_15="StopIteration: the folder of images is to be written into it",
    ),
    Program("aymericdamien+*/tensorflow_v1/**/*.py", but=("input_data",)),
    Program("aymericdamien+*/examples/**/*.py"),
    Program(
        "golbin+*/05*/01*.py",
        in_1_15="NotFoundError: the checkpoint that lies beside it has other variables",
    ),
    Program("golbin+*/10*/ChatBot/train.py", ("--train", "--epoch=3")),
    Program("golbin+*/10*/ChatBot/chat.py", in_1_15="The flag 'log_dir' is defined twice"),
    Program("golbin+*/12*/agent.py", ("--train",)),
    Program("golbin+*/**/*.py"),
    Program("nlintz+*/*.py"),
    Program("dongminlee94+*/*.py"),
    Program("yongyehuang+*/**/*.py"),
    Program("caicloud+*/caicloud.tensorflow/**/*.py", path=("caicloud.tensorflow",)),
    Program("caicloud+*/**/*.py"),
    Program("chiphuyen+*/2017/examples/02_simple_tf.py", in_1_15="NameError: name 'shape' is not defined"),
    Program("chiphuyen+*/examples/02_variables.py", in_1_15="ValueError: Variable scalar already exists"),
    Program("chiphuyen+*/2017/examples/deepdream/*.py", in_1_15="tf.contrib.learn has no attribute 'python'"),
    Program("chiphuyen+*/**/*_starter.py", in_1_15="it is an exercise with gaps"),
    Program("chiphuyen+*/**/*.py"),
    Program("ChengBinJin+*/**/*.py"),
    # It starts two parameter servers and four workers itself.
    Program("MorvanZhou+*/contents/10_A3C/A3C_distributed_tf.py", shows=("Task: 0 | Ep:", "Task: 3 | Ep:")),
    Program("MorvanZhou+*/**/*.py"),
    Program("dennybritz+reinforcement-learning/**/*.py"),
    Program("tkipf+gcn/gcn/train.py"),
    *WIDER,
    *DRAWN,
)
