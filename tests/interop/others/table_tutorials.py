"""Rows of table.py for tutorials that want data of their own; those that want none are in table.py."""

from __future__ import annotations

from others import data, data_files, data_models, data_tutorials
from others.program import Program

_PIX2PIX = ("--mode=train", "--input_dir=data", "--output_dir=out", "--max_epochs=1", "--ngf=4", "--ndf=4")
_EXERCISE = "ChengBinJin+TensorFlow-Exercise/src/"
_HVASS = "ChengBinJin+Hvass-Laboratory-Tensorflow/src/"
_WEIHAI = "ChengBinJin+TensorFlow-Tutorials-Weihai/src/"
_CIFAR = data_tutorials.write_downloaded_cifar
_YONG = "yongyehuang+Tensorflow-Tutorial/"

TUTORIALS = (
    Program(
        "dongminlee94+RL-Tensorflow-Tutorial/RL_Lab_07_1.py",
        in_1_15="IndentationError: unindent does not match any outer indentation level",
    ),
    *(
        Program(f"{_HVASS}{lesson}_*.py", data=((data_tutorials.write_mnist_with_errors, "../data/MNIST"),))
        for lesson in ("01", "02", "03B", "03C", "04", "05", "12", "13B", "17")
    ),
    Program(_HVASS + "06_*.py", data=((_CIFAR, "../data/CIFAR-10"),)),
    Program(_WEIHAI + "example21.py", data=((data_tutorials.write_mnist_with_errors, "data/MNIST_data"),)),
    Program(_WEIHAI + "example2[56].py", data=((_CIFAR, "data/CIFAR-10"),)),
    Program("ChengBinJin+Tensorflow-SungKim/src/ML_lab_10_06.py", data=((_CIFAR, "../data/cifar10"),)),
    Program(_EXERCISE + "CS230*.py", data=((data_tutorials.write_lines, "data"),)),
    Program(
        _EXERCISE + "Create*.py",
        data=((data_tutorials.write_cats_and_dogs, "../imgs"), (data_tutorials.make_folder, "data")),
    ),
    Program(_EXERCISE + "create_tfrecord.py", data=((data_tutorials.make_folder, "data"),)),
    Program("easy-tensorflow+*/*/code/*Static*/main.py", in_1_15="NameError: name 'Static_LSTM' is not defined"),
    Program("easy-tensorflow+*/*/code/**/main.py", data=((data_tutorials.write_mnist_with_errors, "MNIST_data"),)),
    Program("easy-tensorflow+*/*/code/main.py", data=((data_tutorials.write_mnist_with_errors, "MNIST_data"),)),
    Program(_YONG + "models/m04_pix2pix/train.py", _PIX2PIX, data=((data_models.write_pairs, "data"),)),
    Program(_YONG + "models/m04_pix2pix/pix2pix.py", _PIX2PIX, data=((data_models.write_pairs, "data"),)),
    Program(_YONG + "models/m0[23]*/*.py", data=((data_tutorials.write_faces, "../../data/anime"),)),
    Program(
        _YONG + "example-python/*image*.py", data=((data_tutorials.write_sketches, "../data/sketchy_000000000000"),)
    ),
    Program(
        _YONG + "utils/u02_tfrecord/*image_writer.py",
        data=((data_tutorials.write_sketches, "../../data/sketchy_000000000000"),),
    ),
    Program(_YONG + "utils/u02_tfrecord/*seqence_writer.py", data=((data_tutorials.make_folder, "../../data"),)),
    Program(
        "caicloud+*/*/0.12.*/Chapter10/2.*.py",
        in_1_15="Only call `sparse_softmax_cross_entropy_with_logits` with named arguments",
    ),
    Program("caicloud+*/*/1.4.0/Chapter12/2.*.py", in_1_15="tf.contrib.data has no attribute 'TFRecordDataset'"),
    Program(
        "caicloud+*/caicloud.tensorflow/**/ptb_word_lm.py",
        ("--data_path=data", "--model=small"),
        path=("caicloud.tensorflow",),
        data=((data.write_ptb, "data"),),
        in_1_15="'str' object has no attribute 'decode': it is for Python 2",
    ),
    Program(
        "caicloud+*/caicloud.tensorflow/**/ptb/reader_test.py",
        in_1_15="'str' object has no attribute 'decode': it is for Python 2",
    ),
    Program("chiphuyen+*/*/0[37]_*starter.py", in_1_15="it is an exercise with gaps"),
    *(
        Program(f"chiphuyen+*/examples/{lesson}.py", data=((data_models.write_whole_mnist, "data/mnist"),))
        for lesson in ("03_logreg*", "07_convnet*")
    ),
    *(
        Program(f"chiphuyen+*/{examples}/04_word2vec*.py", data=((data_files.write_text8, "data"),), but=("starter",))
        for examples in ("examples", "2017/examples")
    ),
)
