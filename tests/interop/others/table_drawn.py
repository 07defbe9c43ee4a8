"""Rows of table.py for programs that were drawn by lot from repositories that no other row names."""

from __future__ import annotations

from others import data, data_drawn, data_files
from others.program import Program

_PS_AND_WORKERS = (("ps", 1), ("workers", 2))
_PS_AND_THREE = (("ps", 1), ("workers", 3))
_MNIST = ((data.write_mnist, "MNIST_data"),)

DRAWN = (
    Program("satonreb+*/02*.py", in_1_15="ValueError: too many values to unpack (expected 3)"),
    Program("satonreb+*/*.py", data=((data_drawn.write_rates, "data"),)),
    Program("ray-g+*/3_MNIST/[267]*.py"),
    Program("ray-g+*/*/bad_model.py"),
    Program("jaassoon+*/09*.py"),
    Program("jaassoon+*/11*.py"),
    Program("jaassoon+*/0basic/tfmultiply.py"),
    Program("jaassoon+*/1basicRegression/*.py"),
    Program("jaassoon+*/basicNet/*.py"),
    Program("sunilitggu+*/crfEx1.py"),
    Program("sunilitggu+*/rnnEx.py"),
    Program("zyl007+*/tensorflow-basic/*.py"),
    Program("amygdala+*/workshop_sections/getting_started/**/xor_*.py", ("--output-dir=out",)),
    Program("amygdala+*/workshop_sections/getting_started/**/*.py"),
    Program("amygdala+*/workshop_sections/high_level_APIs/mnist_*.py"),
    Program("amygdala+*/workshop_sections/linear_regressor_datasets/*.py"),
    Program("jireh-father+*/nets/inception_v[14]_test.py", cwd=".", path=(".",)),
    Program("jireh-father+*/nets/*gan_test.py", cwd=".", path=(".",)),
    Program("liangyihuai+*/com/huai/MNIST_data/cnn.py"),
    Program("liangyihuai+*/com/huai/converlution/mnist_official_tutorial.py"),
    Program("liangyihuai+*/com/huai/learning/queue/learning1.py"),
    Program(
        "liangyihuai+*/com/huai/learning/saving_restoring_model2.py",
        in_1_15="OSError: where its checkpoint lies, on a disk C:, is written into it",
    ),
    Program("liangyihuai+*/com/huai/learning/saving_restoring*.py"),
    Program("liangyihuai+*/com/huai/recurrent_neural_network/project/MNIST_LSTM/lstm.py"),
    Program("wilsonify+*/src/**/LSTM_supervised_embeddings.py"),
    Program("wilsonify+*/src/**/word2vec.py"),
    Program("wilsonify+*/src/**/extra_capsnets-cn.py"),
    Program("wilsonify+*/src/**/queue_basic.py", in_1_15="it waits for elements of a queue that it has emptied"),
    Program("wilsonify+*/src/**/scan_example.py"),
    Program("wilsonify+*/src/**/BasicRNNCell.py"),
    Program("xiongfeihtp+*/Mydistribution2.py", cluster=_PS_AND_WORKERS),
    Program("xiongfeihtp+*/Mydistribution.py", cluster=_PS_AND_WORKERS),
    Program("xiongfeihtp+*/MyLSTM_language_Model.py", in_1_15="NameError: name 'is_training' is not defined"),
    Program("xiongfeihtp+*/My*.py"),
    Program("GiuseppeMarra+*/hash_tables/*.py", in_1_15="DenseHashTable misses its argument 'deleted_key'"),
    Program("GiuseppeMarra+*/**/*.py"),
    Program("devnag+*/*.py"),
    Program("ikostrikov+*/main.py", in_1_15="ImportError: cannot import name 'core_rnn_cell_impl'"),
    Program("LiZongyue+*/*/Seq2Seq/Seq2Seq.py"),
    Program(
        "cbfinn+maml/main.py", ("--datasource=sinusoid", "--logdir=logs/sine/", "--norm=None", "--update_batch_size=10")
    ),
    Program("egalluzzo+*/**/*.py", path=(".",)),
    Program("qhduan+*/test*.py"),
    Program("redfish-lee+*/dist.py", cluster=(("ps", 2), ("workers", 3))),
    Program("redfish-lee+*/estimator.py", data=((data.write_mnist, "data/MNIST"),)),
    Program("alexwal+*/local_fs/MNIST/*.py", cluster=_PS_AND_THREE, by_hand=True),
    Program("alexwal+*/local_fs/word_count/word_count.py"),
    Program(
        "kzhang28+*/mnist*.py",
        ("--data_dir=MNIST_data", "--log_dir=out", "--total_step=100"),
        cluster=_PS_AND_WORKERS,
        data=_MNIST,
        in_1_15="SyncReplicasOptimizer has no argument 'replica_id'",
    ),
    Program("hn826+*/*.py", ("--data_dir=MNIST_data",), cluster=_PS_AND_WORKERS, data=_MNIST),
    Program(
        "michaelhoanglong+*/distributed-deep-mnist-new.py",
        ("--data_dir=MNIST_data", "--log_dir=."),
        cluster=_PS_AND_WORKERS,
        data=_MNIST,
        in_1_15="You must feed a value for placeholder tensor 'Placeholder_2'",
    ),
    Program(
        "michaelhoanglong+*/distributed-deep-mnist*.py",
        ("--data_dir=MNIST_data", "--log_dir=."),
        cluster=_PS_AND_WORKERS,
        data=_MNIST,
    ),
    Program("e-bug+*/MNIST/deepMNIST.py", data=_MNIST),
    Program(
        "e-bug+*/MNIST/dist_deepMNIST_gpu.py",
        ("--data_format=NHWC", "--train_steps=50"),
        cluster=_PS_AND_WORKERS,
        data=_MNIST,
    ),
    Program("e-bug+*/report/source/listings/linear_reg.py"),
    Program("sfujiwara+*/minimal-dist/trainer/task.py", cluster=_PS_AND_WORKERS),
    Program(
        "barronalex+*/dmn_train.py",
        ("--babi_task_id=1",),
        data=((data_drawn.write_babi, "data/en-10k"), (data_drawn.write_babi, "data/en")),
    ),
    Program("dancsalo+*/train-eval.py"),
    Program("omoindrot+*/model/tests/*.py", cwd=".", path=(".",)),
    Program("omoindrot+*/train.py", ("--model_dir=experiments/batch_all",), data=((data.write_mnist, "data/mnist"),)),
    *(
        Program(
            f"yxtay+*/trainers/{name}.py",
            ("--train-steps=100",),
            module=f"trainers.{name}",
            cwd=".",
            data=((data_drawn.write_ratings, "data/ml-100k"),),
        )
        for name in ("linear", "deep", "linear_deep", "deep_fm")
    ),
    Program("vanhuyz+*/train.py", ("--image_size=32", "--ngf=4"), data=((data_drawn.write_fruits, "data/tfrecords"),)),
    Program(
        "lleewwiiss+*/initialisers/task.py",
        (
            "--train-files=data/train.tfrecords",
            "--eval-files=data/val.tfrecords",
            "--test-files=data/test.tfrecords",
            "--num-epochs=1",
            "--job-dir=out",
        ),
        module="initialisers.task",
        cwd=".",
        in_1_15="None values not supported: its model has no layers yet",
        data=((data_drawn.write_float_digits, "data"),),
    ),
    Program(
        "lilianweng+*/main.py",
        ("--train", "--max_iter=20", "--input_height=28", "--output_height=28", "--model_type=WGAN", "--batch_size=16"),
        data=((data_drawn.write_plain_mnist, "data/mnist"),),
    ),
    Program("Shaofanl+*/main.py", ("--pretrain_g_epochs=2", "--total_epochs=2")),
    Program(
        "tokestermw+*/train.py",
        ("--epoch_size=1",),
        in_1_15="Expected int32, got <absl.flags._flag.Flag object>",
        data=((data_drawn.write_ptb_texts, "data/ptb"),),
    ),
    Program("RLOpensource+*/lstm_test.py"),
    Program("RLOpensource+*/buffer_queue.py", in_1_15="its own FIFOQueue misses its argument 'lstm_size'"),
    Program("RLOpensource+*/py_process.py"),
    Program(
        "amygdala+*/workshop_sections/wide_n_deep/tf_train_and_evaluate/trainer/task.py",
        (
            "--train-files=../adult.data.csv",
            "--eval-files=../adult.test.csv",
            "--num-epochs=2",
            "--job-dir=out",
            "--train-steps=50",
        ),
        module="trainer.task",
        cwd="workshop_sections/wide_n_deep/tf_train_and_evaluate",
    ),
    Program(
        "amygdala+*/**/word2vec_basic_*.py",
        in_1_15="Dimensions must be equal, but are 1 and 128: nce_loss takes its labels first since 1.0",
        data=((data_files.write_text8, "."),),
    ),
    Program(
        "raviqqe+*/examples/mnist_full/mnist_full.py",
        (
            "--train_file=records/train.tfrecords",
            "--eval_file=records/train.tfrecords",
            "--output_dir=out",
            "--train_steps=50",
        ),
        path=(".",),
        data=((data.write_mnist_records, "records"),),
    ),
    Program(
        "agonzgarc+*/train.py",
        ("--image_size=32", "--ngf=4", "--batch_size=2", "--X=data/apple.tfrecords", "--Y=data/orange.tfrecords"),
        data=((data_drawn.write_fruits, "data"),),
    ),
    Program("sfujiwara+*/tfrecord/read_tfrecord.py"),
)
