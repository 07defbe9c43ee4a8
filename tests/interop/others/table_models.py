"""The larger programs of table.py: tensorflow/models and benchmarks, slim, BERT, gpt-2, nmt, transformers, GANs.

Their models are made small by arguments where they have some for it. data.py and data_models.py write what they read.
"""

from __future__ import annotations

from others import data, data_files, data_models, data_records
from others.program import Program

_PS_AND_WORKERS = (("ps", 1), ("workers", 2))
_TUTORIALS = "*models*/tutorials/"
_ONE_EPOCH = ("--data_dir=data", "--model_dir=out", "--train_epochs=1", "--epochs_between_evals=1")
_FLOWERS = ((data_files.write_iris, "home/.keras/datasets"),)
_CIFAR = ((data.write_cifar10, "data"),)

_CNN_FILE = "tensorflow+benchmarks-*/scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py"
_CNN = ("--batch_size=4", "--num_batches=3", "--num_warmup_batches=1", "--device=cpu", "--data_format=NHWC")
_SMALL_RESNET = ("--model=resnet20", "--data_name=cifar10")


def _cnn(variant: str, *args: str, cluster: tuple[tuple[str, int], ...] = ()) -> Program:
    shown = ("--local_parameter_device=cpu",) if cluster else ()
    return Program(_CNN_FILE, (*_CNN, *shown, *args), variant=variant, cluster=cluster)


_BERT = (
    *("--input_file=bert.tfrecord", "--output_dir=out", "--do_train=True", "--bert_config_file=bert.json"),
    *("--num_train_steps=20", "--num_warmup_steps=5", "--train_batch_size=4", "--max_seq_length=32"),
    "--max_predictions_per_seq=5",
)
_BERT_DATA = ((data.write_bert, "."), (data_models.write_cola, "."))
_NMT = (
    *("--src=vi", "--tgt=en", "--vocab_prefix=nmt/testdata/iwslt15.vocab.100", "--out_dir=out"),
    *(f"--{part}_prefix=nmt/testdata/iwslt15.tst2013.100" for part in ("train", "dev", "test")),
    *("--num_train_steps=6", "--steps_per_stats=2", "--num_layers=2", "--num_units=16", "--batch_size=16"),
)
_NO_PICKLES = "TypeError: can't pickle _thread.RLock objects"
_OWN_OPS = "word2vec_ops.so: cannot open shared object file: it is to be compiled against TensorFlow"

MODELS = (
    # tensorflow/models
    Program(
        "FLIR*/tutorials/image/cifar10/cifar10_train.py",
        ("--max_steps=10", "--data_dir=data", "--train_dir=out", "--batch_size=16"),
        data=_CIFAR,
    ),
    Program(
        "FLIR*/tutorials/image/cifar10/cifar10_multi_gpu_train.py",
        ("--max_steps=10", "--data_dir=data", "--train_dir=out", "--num_gpus=1", "--batch_size=16"),
        data=_CIFAR,
    ),
    # Their parser is asked at the import, when it knows only these.
    Program("mljack*/tutorials/image/cifar10/cifar10_*train.py", ("--data_dir=data", "--batch_size=16"), data=_CIFAR),
    Program(
        "tensorflow+models-1.4/tutorials/image/cifar10/cifar10_*train.py",
        ("--data_dir=data", "--batch_size=16"),
        data=_CIFAR,
    ),
    Program(
        "tensorflow+models-1.*/tutorials/image/cifar10/cifar10_*train.py",
        ("--max_steps=10", "--data_dir=data", "--train_dir=out", "--batch_size=16"),
        data=_CIFAR,
    ),
    Program("tensorflow+models-1.*/tutorials/image/cifar10/cifar10_input_test.py"),
    Program(
        "FLIR*/tutorials/image/cifar10_estimator/cifar10_main.py",
        ("--data_dir=data/cifar-10-batches-bin", "--model_dir=out", "--train_steps=5", "--train_batch_size=8"),
        data=_CIFAR,
    ),
    Program(
        "*models*/tutorials/image/cifar10_estimator/cifar10_main.py",
        (
            *("--data-dir=data", "--job-dir=out", "--num-gpus=0", "--train-steps=5", "--train-batch-size=8"),
            *("--eval-batch-size=20", "--num-layers=8"),
        ),
        data=((data_records.write_cifar_records, "data"),),
        in_1_15="module 'tensorflow.contrib.data' has no attribute 'TFRecordDataset'",
    ),
    Program(
        "*models*/tutorials/rnn/quickdraw/train_model.py",
        (
            *("--training_data=data/training.tfrecord-*", "--eval_data=data/eval.tfrecord-*", "--model_dir=out"),
            *("--classes_file=data/training.tfrecord.classes", "--steps=5", "--num_nodes=16"),
        ),
        data=((data_records.write_drawings, "data"),),
    ),
    Program(
        "FLIR*/tutorials/rnn/ptb/ptb_word_lm.py", ("--data_path=data", "--model=test"), data=((data.write_ptb, "data"),)
    ),
    Program(
        "*models*/tutorials/rnn/ptb/ptb_word_lm.py",
        ("--data_path=data", "--model=test", "--num_gpus=0"),
        data=((data.write_ptb, "data"),),
    ),
    Program(_TUTORIALS + "rnn/ptb/reader_test.py", cwd="tutorials/rnn/ptb"),
    Program(_TUTORIALS + "image/alexnet/alexnet_benchmark.py", ("--batch_size=2", "--num_batches=2")),
    Program(_TUTORIALS + "image/mnist/convolutional.py", ("--self_test",)),
    Program(_TUTORIALS + "embedding/*.py", in_1_15=_OWN_OPS),
    Program(_TUTORIALS + "rnn/translate/translate.py", ("--self_test",), in_1_15=_NO_PICKLES),
    Program(
        "tensorflow+models-1.8/official/resnet/cifar10_main.py",
        (*_ONE_EPOCH, "--batch_size=32", "--resnet_size=8", "--max_train_steps=5"),
        cwd=".",
        data=_CIFAR,
    ),
    Program(
        "*models*/official/resnet/cifar10_main.py",
        (
            *("--data_dir=data", "--model_dir=out", "--train_epochs=1", "--epochs_per_eval=1", "--batch_size=32"),
            "--resnet_size=8",
        ),
        path=("official/resnet",),
        data=_CIFAR,
    ),
    Program("*models*/official/resnet/*_test.py", cwd=".", path=(".",)),
    Program("*models*/official/wide_deep/*_test.py", cwd=".", path=(".",)),
    Program(
        "tensorflow+models-1.8/official/wide_deep/wide_deep.py",
        (*_ONE_EPOCH, "--batch_size=40", "--export_dir=exported"),
        cwd=".",
        data=((data_files.write_clean_census, "data"),),
    ),
    Program(
        "*models*/official/wide_deep/wide_deep.py",
        (
            *("--train_data=wide_deep_test.csv", "--test_data=wide_deep_test.csv", "--model_dir=out"),
            *("--train_epochs=1", "--epochs_per_eval=1"),
        ),
    ),
    Program("*models*/official/mnist/*_test.py", cwd=".", path=(".",)),
    Program(
        "*models*/official/utils/testing/reference_data_test.py",
        cwd=".",
        path=(".",),
        in_1_15="Test did not warn of minor graph change",
    ),
    Program("*models*/official/utils/*/*_test.py", cwd=".", path=(".",)),
    Program("*models*/official/transformer/**/*_test.py", cwd=".", path=(".",)),
    Program(
        "*models*/official/transformer/transformer_main.py",
        (
            *("--data_dir=data", "--model_dir=out", "--params=base", "--train_steps=4", "--steps_between_eval=2"),
            "--num_cpu_cores=1",
        ),
        data=((data_records.write_translations, "data"),),
    ),
    Program(
        "tensorflow+models-1.*/official/mnist/mnist.py",
        ("--data_dir=data", "--model_dir=out", "--train_epochs=1"),
        cwd="official/mnist",
        data=((data_models.write_some_mnist, "data"),),
    ),
    Program(
        "*models*/official/mnist/mnist.py",
        ("--data_dir=data", "--model_dir=out", "--train_epochs=1"),
        data=((data_models.write_mnist_tfrecords, "data"),),
    ),
    Program("*models*/samples/core/get_started/estimator_test.py", data=_FLOWERS),
    Program("*models*/samples/core/get_started/*.py", ("--train_steps=50",), data=_FLOWERS),
    *(
        Program(
            f"{models}/samples/cookbook/regression/{name}.py",
            data=((data_files.write_cars, "home"),),
            in_1_15="input_fn should return (features, labels) as a len 2 tuple",
        )
        for models in ("tensorflow+models-1.4", "mljack+tensorflow-models")
        for name in ("linear_regression", "regression_test")
    ),
    Program(
        "*models*/samples/cookbook/regression/*.py", data=((data_files.write_cars, "home"),), but=("automobile_data",)
    ),
    Program(
        "mljack*/research/resnet/resnet_main.py",
        (
            *("--train_data_path=data/cifar-10-batches-bin/data_batch*", "--log_root=out", "--train_dir=out/train"),
            *("--dataset=cifar10", "--num_gpus=0"),
        ),
        data=_CIFAR,
    ),
    Program("mljack*/research/*/*/neural_gpu_trainer.py"),
    # slim
    Program(
        "*/**/train_image_classifier.py",
        (
            *("--dataset_name=cifar10", "--dataset_split_name=train", "--dataset_dir=data", "--model_name=cifarnet"),
            *("--preprocessing_name=cifarnet", "--max_number_of_steps=5", "--batch_size=8", "--train_dir=out"),
            *("--clone_on_cpu=True", "--num_readers=1", "--num_preprocessing_threads=1"),
        ),
        data=((data_models.write_slim_cifar10, "data"),),
    ),
    Program(
        "rwightman*/export_inference_graph.py", ("--output_file=graph.pb", "--model_name=lenet", "--dataset_name=mnist")
    ),
    Program("rwightman*/export_inference_graph_test.py"),
    Program("rwightman*/nets/*_test.py", cwd=".", path=(".",)),
    Program("rwightman*/deployment/*_test.py", cwd=".", path=(".",)),
    # tensorflow/benchmarks
    _cnn("", "--model=trivial"),
    _cnn("resnet20", *_SMALL_RESNET),
    Program(
        "tensorflow+benchmarks-1.12/scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py",
        (*_CNN, *_SMALL_RESNET, "--data_dir=cifar-10-batches-py"),
        variant="resnet20, CIFAR-10 from files",
        data=((data_models.write_cifar_pickles, "."),),
    ),
    _cnn("lenet, forward only", "--model=lenet", "--forward_only"),
    _cnn("resnet20, replicated", *_SMALL_RESNET, "--variable_update=replicated"),
    _cnn("resnet20, all-reduce", *_SMALL_RESNET, "--variable_update=replicated", "--all_reduce_spec=pscpu"),
    _cnn("resnet20, independent", *_SMALL_RESNET, "--variable_update=independent"),
    _cnn("alexnet", "--model=alexnet", "--num_batches=2", "--num_warmup_batches=0", "--batch_size=2"),
    _cnn("resnet50", "--model=resnet50", "--num_batches=1", "--num_warmup_batches=0", "--batch_size=1"),
    _cnn("resnet20, 1 ps and 2 workers", *_SMALL_RESNET, cluster=_PS_AND_WORKERS),
    _cnn(
        "resnet20, distributed_replicated, 1 ps and 2 workers",
        *_SMALL_RESNET,
        "--variable_update=distributed_replicated",
        cluster=_PS_AND_WORKERS,
    ),
    Program("tensorflow+benchmarks-1.*/scripts/tf_cnn_benchmarks/*_util_test.py"),
    Program("tensorflow+benchmarks-1.*/scripts/tf_cnn_benchmarks/allreduce_test.py"),
    # Language
    Program("tensorflow+nmt/nmt/nmt.py", _NMT, module="nmt.nmt", cwd="."),
    Program(
        "tensorflow+nmt/nmt/nmt.py",
        (*_NMT, "--attention=scaled_luong", "--encoder_type=bi"),
        variant="attention",
        module="nmt.nmt",
        cwd=".",
    ),
    Program("tensorflow+nmt/nmt/**/*_test.py", as_module=True, cwd=".", path=(".",)),
    Program("google-research+bert/*_test.py"),
    Program("google-research+bert/run_pretraining.py", _BERT, data=_BERT_DATA),
    Program(
        "google-research+bert/run_classifier.py",
        (
            *("--task_name=cola", "--do_train=true", "--do_eval=true", "--do_predict=true", "--data_dir=cola"),
            *("--vocab_file=vocab.txt", "--bert_config_file=bert.json", "--max_seq_length=32", "--output_dir=out"),
            *("--train_batch_size=8", "--num_train_epochs=1"),
        ),
        data=_BERT_DATA,
    ),
    Program(
        "google-research+bert/create_pretraining_data.py",
        ("--input_file=sample_text.txt", "--output_file=out.tfrecord", "--vocab_file=vocab.txt", "--max_seq_length=64"),
        data=_BERT_DATA,
    ),
    Program(
        "openai+gpt-2/src/generate_unconditional_samples.py",
        ("--model_name=tiny", "--nsamples=1", "--batch_size=1", "--length=4"),
        cwd=".",
        path=("src",),
        data=((data.write_gpt2, "models/tiny"),),
    ),
    Program(
        "Kyubyong+transformer/train.py",
        (
            *("--num_epochs=1", "--batch_size=16", "--d_model=16", "--d_ff=32", "--num_blocks=1", "--num_heads=2"),
            "--vocab_size=50",
        ),
        data=((data_models.write_sentence_pairs, "iwslt2016"),),
    ),
    Program("Kyubyong+transformer/tf1.2_legacy/train.py", data=((data_models.write_legacy_pairs, "."),)),
    Program("Kyubyong+tacotron/train.py"),
    Program(
        "kimiyoung+transformer-xl/tf/data_utils.py",
        (
            *("--data_dir=data", "--dataset=ptb", "--per_host_train_bsz=4", "--per_host_valid_bsz=4"),
            *("--tgt_len=8", "--num_passes=1", "--use_tpu=False"),
        ),
        data=((data_models.write_words, "data"),),
    ),
    Program(
        "kimiyoung+transformer-xl/tf/train_gpu.py",
        (
            *("--data_dir=records", "--record_info_dir=records", "--corpus_info_path=corpus-info.json"),
            *("--model_dir=out", "--num_core_per_host=1", "--train_batch_size=4", "--train_steps=10"),
            *("--iterations=2", "--tgt_len=8", "--mem_len=8", "--n_layer=2", "--d_model=16", "--d_embed=16"),
            *("--n_head=2", "--d_head=8", "--d_inner=32"),
        ),
        data=((data_models.write_xl_records, "."),),
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
    Program("brightmart+text_classification/a00_Bert/train_bert_toy_task.py"),
    *(
        Program(f"brightmart+text_classification/{file}.py", in_1_15="RuntimeError: its data are to be downloaded")
        for file in ("a00_Bert/train_bert_multi-label", "a02_TextCNN/p7_TextCNN_train")
    ),
    Program("brightmart+text_classification/**/*.py", but=("tflearn", "Tflearn", "unused", "a08_boosting")),
    Program(
        "tensorflow+tensor2tensor/tensor2tensor/bin/t2t_translate_all.py",
        cwd=".",
        path=(".",),
        in_1_15="TypeError: expected str, bytes or os.PathLike object, not NoneType: it wants a folder of checkpoints",
    ),
    Program("tensorflow+tensor2tensor/tensor2tensor/bin/t2t_*.py", cwd=".", path=(".",)),
    Program("tensorflow+tensor2tensor/tensor2tensor/layers/*_test.py", cwd=".", path=(".",)),
    Program("tensorflow+tensor2tensor/tensor2tensor/models/transformer_test.py", cwd=".", path=(".",)),
    # Pictures
    Program(
        "carpedm20+DCGAN-tensorflow/main.py",
        ("--dataset=mnist", "--data_dir=data", "--train", "--epoch=1", "--input_height=28", "--output_height=28"),
        data=((data_models.write_whole_mnist, "data/mnist"),),
    ),
    Program(
        "affinelayer+pix2pix-tensorflow/pix2pix.py",
        (
            *("--mode=train", "--input_dir=data", "--output_dir=out", "--max_epochs=1", "--ngf=4", "--ndf=4"),
            *("--summary_freq=2", "--progress_freq=1"),
        ),
        data=((data_models.write_pairs, "data"),),
    ),
    # Reinforcement, and what needs others' packages
    Program(
        "openai+baselines/baselines/common/tests/test_tf_util.py",
        module="pytest",
        args=("baselines/common/tests/test_tf_util.py",),
        cwd=".",
    ),
    Program(
        "openai+baselines/baselines/run.py",
        ("--alg=deepq", "--env=CartPole-v0", "--num_timesteps=500"),
        module="baselines.run",
        cwd=".",
    ),
    Program("uber+horovod/examples/tensorflow/*.py"),
    Program("yahoo+TensorFlowOnSpark/examples/mnist/estimator/*.py"),
)
