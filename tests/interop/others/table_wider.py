"""Rows of table.py for programs that came later: distributed ones, estimators over clusters, tf.data, libraries.

They were taken for their breadth, after Tenfold had been written for those of table.py and table_models.py.
"""

from __future__ import annotations

from others import data, data_files, data_models, data_records
from others.program import Program

_PS_AND_WORKERS = (("ps", 1), ("workers", 2))
_PS_AND_ONE = (("ps", 1), ("workers", 1))
_CLICKS = ("--data_dir=clicks", "--model_dir=out", "--feature_size=100", "--field_size=10", "--num_epochs=1")
_CLICKS_DATA = ((data_records.write_clicks, "clicks"),)
_CENSUS = (
    *("--train-files=data/adult.data", "--eval-files=data/adult.test", "--job-dir=out", "--train-steps=20"),
    *("--eval-steps=2", "--num-epochs=4"),
)
_CENSUS_DATA = ((data_files.write_blank_census, "data"),)
_MNIST = ((data.write_mnist, "MNIST_data"),)

WIDER = (
    # Parameter servers and workers, told by flags
    Program("thewintersun+*/distribute.py", cluster=_PS_AND_WORKERS),
    Program(
        "tobegit3hub+tensorflow_template_application/distributed/*.py",
        cluster=_PS_AND_WORKERS,
        in_1_15="Data types don't match: the labels of the records beside it are integers",
    ),
    Program(
        "wucng+Tensorflow/tf_Distributed/py_script/mnist2.py", in_1_15="NameError: name 'optimizer' is not defined"
    ),
    Program("wucng+Tensorflow/tf_Distributed/py_script/*.py", cluster=_PS_AND_WORKERS, data=_MNIST),
    Program(
        "tensorflow+ecosystem/docker/mnist.py",
        ("--data_dir=records", "--train_dir=out"),
        cluster=_PS_AND_WORKERS,
        data=((data.write_mnist_records, "records"),),
    ),
    # … and by TF_CONFIG
    Program("kubeflow+tf-operator/examples/v1/dist-mnist/*.py", ("--train_steps=200",), cluster=_PS_AND_WORKERS),
    Program(
        "kubeflow+tf-operator/examples/v1/dist-mnist/dist_mnist.py",
        ("--train_steps=200", "--sync_replicas"),
        variant="synchronous",
        cluster=_PS_AND_WORKERS,
    ),
    Program("kubeflow+tf-operator/examples/v1/mnist_with_summaries/*.py", ("--max_steps=30", "--data_dir=MNIST_data")),
    Program("kubeflow+tf-operator/examples/tf_sample/*.py", cluster=_PS_AND_ONE, run_options=("--chief",)),
    *(
        Program(
            f"GoogleCloudPlatform+cloudml-samples/census/{kind}/trainer/task.py",
            _CENSUS,
            variant=variant,
            module="trainer.task",
            cwd=f"census/{kind}",
            cluster=cluster,
            run_options=("--chief",),
            data=_CENSUS_DATA,
        )
        for kind in ("estimator", "customestimator")
        for variant, cluster in (("", ()), ("a chief, a worker and a ps", _PS_AND_ONE))
    ),
    Program(
        "GoogleCloudPlatform+cloudml-samples/census/tensorflowcore/trainer/task.py",
        _CENSUS,
        module="trainer.task",
        cwd="census/tensorflowcore",
        data=_CENSUS_DATA,
    ),
    # Estimators and tf.data
    Program(
        "lambdaji+tf_repos/deep_ctr/Model_pipeline/*.py",
        _CLICKS,
        data=_CLICKS_DATA,
        but=("DIN", "wide_n_deep"),
    ),
    Program(
        "lambdaji+tf_repos/deep_ctr/Model_pipeline/DeepFM.py",
        (*_CLICKS, "--dist_mode=2", "--num_threads=2"),
        variant="a chief, an evaluator, a worker and a ps",
        cluster=(("ps", 1), ("workers", 3)),
        data=_CLICKS_DATA,
    ),
    Program("Lapis-Hong+wide_deep/python/train.py"),
    Program("cs230-stanford+*/tensorflow/nlp/train.py", data=((data_files.write_small_corpus, "data/small"),)),
    Program("adventuresinML+*/tf_queuing.py", in_1_15="OutOfRangeError: where CIFAR-10 lies is written into it"),
    Program("adventuresinML+*/lstm_tutorial.py", ("1", "--data_path=data"), data=((data.write_ptb, "data"),)),
    Program("adventuresinML+*/*.py", but=("gensim", "tf2", "tensorflow2", "keras")),
    # Tutorials
    Program("GoogleCloudPlatform+tensorflow-without-a-phd/tensorflow-mnist-tutorial/*.py", data=_MNIST),
    Program(
        "tobegit3hub+tensorflow_examples/check_variable_conflict/*.py",
        in_1_15="it waits for a server at localhost:44105",
    ),
    Program("tobegit3hub+tensorflow_examples/embedding_lookup_demo.py", in_1_15="unexpected keyword argument 'shape'"),
    Program(
        "tobegit3hub+tensorflow_examples/linear_saved_model/export_linear_model.py",
        in_1_15="Cannot feed value of shape (1,) for Tensor 'Placeholder:0', which has shape '(2,)'",
    ),
    Program("tobegit3hub+tensorflow_examples/lstm_demo.py", in_1_15="Input 'split_dim' of 'Split' Op has type float32"),
    Program("tobegit3hub+tensorflow_examples/**/*.py", but=("keras", "distributed_supervisor", "segmentation")),
    Program(
        "tobegit3hub+tensorflow_template_application/*_use_queue.py",
        in_1_15="Data types don't match: the labels of the records beside it are integers",
    ),
    Program("tobegit3hub+tensorflow_template_application/*_classifier*.py", ("--epoch_number=2",)),
    Program("pkmital+tensorflow_tutorials/python/06_*.py", in_1_15="ValueError: None values not supported."),
    Program("pkmital+tensorflow_tutorials/python/*.py", data=_MNIST),
    Program(
        "hwalsuklee+tensorflow-mnist-VAE/run_main.py",
        ("--num_epochs=1",),
        data=((data_models.write_packed_mnist, "data"),),
    ),
    # Libraries on top of TensorFlow, by their own examples and tests
    Program(
        "tflearn+tflearn/examples/*/*.py", data=((data.write_mnist, "mnist"),), but=("reinforcement", "finetuning")
    ),
    Program("tflearn+tflearn/tests/test_*.py"),
    Program(
        "tensorpack+tensorpack/examples/basics/*.py", data=((data.write_mnist, "home/tensorpack_data/mnist_data"),)
    ),
    Program(
        "google+seq2seq/seq2seq/test/conv_encoder_test.py",
        as_module=True,
        cwd=".",
        in_1_15="Convolution expects input with rank 4, got 3",
    ),
    *(
        Program(f"google+seq2seq/seq2seq/test/{name}_test.py", as_module=True, cwd=".", in_1_15=why)
        for name, why in (
            ("hooks", "'str' object has no attribute 'decode'"),
            ("pipeline", "module 'tensorflow.python.platform.flags' has no attribute '_FlagValues'"),
        )
    ),
    Program("google+seq2seq/seq2seq/test/*_test.py", as_module=True, cwd="."),
    Program("google-research+albert/*_test.py", as_module=True, cwd=".", path=("..",)),
    Program(
        "deepmind+scalable_agent/py_process_test.py",
        in_1_15="the names of methods that py_func hands to Python are bytes: it is for Python 2",
    ),
    Program("deepmind+scalable_agent/*_test.py"),
    Program("stefanbo92+A3C-Continuous/*.py"),
)
