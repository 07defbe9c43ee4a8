"""A model's profile: parameters, float operations, times. The numbers are those that TensorFlow 1.15 reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from tenfold_core import errors

if TYPE_CHECKING:
    from pathlib import Path

Options = tf.profiler.ProfileOptionBuilder


@pytest.fixture
def network() -> Any:
    """A convolution and a dense layer; their output."""
    with tf.Graph().as_default():
        images = tf.placeholder(tf.float32, [2, 8, 8, 3], name="images")
        with tf.variable_scope("conv"):
            weights = tf.get_variable("weights", [3, 3, 3, 4])
            biases = tf.get_variable("biases", [4])
            hidden = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(images, weights, [1, 1, 1, 1], "SAME"), biases))
        pooled = tf.nn.max_pool(hidden, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
        kernel = tf.get_variable("dense/kernel", [64, 5])
        yield tf.matmul(tf.reshape(pooled, [2, 64]), kernel, name="dense/logits")


def silent(options: Any) -> Any:
    return Options(options).with_empty_output().build()


def test_parameters_by_scope(network: Any, capsys: pytest.CaptureFixture[str]) -> None:
    found = tf.profiler.profile(network.graph)

    assert found.total_parameters == 3 * 3 * 3 * 4 + 4 + 64 * 5
    assert [each.name for each in found.children] == ["conv", "dense"]
    assert [each.name for each in found.children[0].children] == ["conv/biases", "conv/weights"]
    shown = capsys.readouterr().out
    assert "node name | # parameters\n_TFProfRoot (--/432 params)\n  conv (--/112 params)\n" in shown
    assert "    conv/weights (3x3x3x4, 108/108 params)\n" in shown


def test_float_operations(network: Any) -> None:
    by_op = tf.profiler.profile(network.graph, cmd="op", options=silent(Options.float_operation()))
    by_scope = tf.profiler.profile(network.graph, options=silent(Options.float_operation()))

    convolution, bias, pool = 2 * 8 * 8 * 4 * 27 * 2, 2 * 8 * 8 * 4, 2 * 4 * 4 * 4 * 4
    product = 2 * 64 * 2 * 5
    first = by_op.children[0]
    assert (first.name, first.float_ops) == ("Conv2D", convolution)
    assert (first.children[0].name, first.children[0].float_ops) == ("MatMul", product)
    of_initializers = sum(each.float_ops for each in graph_nodes(by_op) if "/Initializer/" in each.name)
    assert by_op.total_float_ops - of_initializers == convolution + bias + pool + product
    assert by_scope.total_float_ops == by_op.total_float_ops


def graph_nodes(root: Any) -> Any:
    for child in root.children:
        yield from child.graph_nodes
        yield from graph_nodes(child)


def test_times_of_traced_steps(network: Any, tmp_path: Path) -> None:
    with tf.Session(graph=network.graph) as session, network.graph.as_default():
        session.run(tf.global_variables_initializer())
        profiler = tf.profiler.Profiler(network.graph)
        for step in (3, 4):
            traced = tf.RunMetadata()
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            feeds = {"images:0": [[[[1.0] * 3] * 8] * 8] * 2}
            session.run(network, feeds, options=options, run_metadata=traced)
            profiler.add_step(step, traced)
    report = tmp_path / "report"
    options = Options(Options.time_and_memory(min_bytes=0)).with_file_output(str(report)).with_step(4).build()

    found = profiler.profile_operations(options)

    assert found.total_exec_micros >= found.children[0].exec_micros > 0
    kinds = {each.name for each in graph_nodes(found)}
    assert {"dense/logits", "conv/Conv2D"} <= kinds
    text = report.read_text()
    assert "Profile:\nnode name | requested bytes | total execution time | accelerator execution time | cpu" in text
    with pytest.raises(errors.InvalidArgumentError, match=r"step=5 not found. Available steps: \[3, 4\]"):
        profiler.profile_name_scope(Options(options).with_step(5).build())


def test_names_choose_and_hide(network: Any) -> None:
    options = Options(Options.trainable_variables_parameter()).with_empty_output()
    hidden = options.with_node_names(hide_name_regexes=[".*weights"]).build()
    started = options.with_node_names(start_name_regexes=["dense"], hide_name_regexes=[]).build()

    assert tf.profiler.profile(network.graph, options=hidden).total_parameters == 4 + 64 * 5
    assert [each.name for each in tf.profiler.profile(network.graph, options=started).children] == ["dense"]


def test_a_log_adds_types_and_operations(network: Any, tmp_path: Path) -> None:
    log = tf.profiler.OpLogProto()
    log.log_entries.add(name="conv/Relu", float_ops=7, types=["mine"])
    options = Options(Options.float_operation()).with_empty_output().with_accounted_types(["mine"]).build()

    found = tf.profiler.profile(network.graph, op_log=log, options=options)
    tf.profiler.write_op_log(network.graph, str(tmp_path), log, add_trace=False)

    assert found.total_float_ops == 7
    written = tf.profiler.OpLogProto.FromString((tmp_path / "tfprof_log").read_bytes())
    entries = {entry.name: entry for entry in written.log_entries}
    assert list(entries["conv/Relu"].types) == ["mine"]
    assert list(entries["conv/weights"].types) == ["_trainable_variables"]


def test_what_is_left_out_says_so(network: Any) -> None:
    with pytest.raises(errors.UnimplementedError, match=r"view .code. is not part of Tenfold.*Timeline"):
        tf.profiler.profile(network.graph, cmd="code")
    with pytest.raises(errors.InvalidArgumentError, match="unknown cmd: ops"):
        tf.profiler.profile(network.graph, cmd="ops")
    with pytest.raises(errors.UnimplementedError, match="output 'timeline'"):
        tf.profiler.profile(network.graph, options=Options().with_timeline_output("a").build())


def test_the_names_of_old(network: Any) -> None:
    old = tf.contrib.tfprof.model_analyzer
    options = silent(old.TRAINABLE_VARS_PARAMS_STAT_OPTIONS)

    assert old.print_model_analysis(network.graph, tfprof_options=options).total_parameters == 432
    assert tf.contrib.signal.frame is tf.signal.frame
