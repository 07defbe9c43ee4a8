"""What TensorFlow answers to cases: each a graph of placeholders and one node, run without optimizations.

Run under TensorFlow's interpreter: `python ask.py QUESTIONS ANSWERS`, both pickles. A question is (a GraphDef, the
TensorProtos that are fed), an answer is a list of TensorProtos or the error's class. Forks before the first question,
and again after one at which TensorFlow's process ends. tensorflow.py is the other end.
"""

import contextlib
import os
import pickle
import signal
import sys

#: After which a question has no answer: TensorFlow's process ends.
SECONDS = 5


def answer(tf, config, make, question):
    graph_def, fed = question
    tf1 = tf.compat.v1
    with tf1.Graph().as_default() as graph:
        try:
            tf1.import_graph_def(tf1.GraphDef.FromString(graph_def), name="")
        except ValueError as error:
            return f"graph: {error}"
        feeds = {}
        for k, data in enumerate(fed):
            proto = make.FromString(data)
            feeds[f"x{k}:0"] = tf.make_ndarray(proto)
        node = graph.get_operation_by_name("n")
        with tf1.Session(config=config) as session:
            try:
                values = session.run(list(node.outputs), feeds)
            except tf.errors.OpError as error:
                return f"{type(error).__name__.replace('Error', '')}: {error.message}"
        return [
            tf1.make_tensor_proto(value, output.dtype).SerializeToString()
            for value, output in zip(values, node.outputs)  # noqa: B905 - also for the Python of TensorFlow 1.15
        ]


def main(questions_path, answers_path):
    import tensorflow as tf
    from tensorflow.core.framework import tensor_pb2
    from tensorflow.core.protobuf import config_pb2

    with contextlib.suppress(ImportError):
        import tensorflow.contrib.seq2seq  # it registers GatherTree
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
    config = config_pb2.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    with open(questions_path, "rb") as file:
        questions = pickle.load(file)
    answers = []
    while len(answers) < len(questions):
        if not os.fork():
            with open(f"{answers_path}.part", "ab") as file:
                for question in questions[len(answers) :]:
                    signal.alarm(SECONDS)
                    pickle.dump(answer(tf, config, tensor_pb2.TensorProto, question), file)
                    file.flush()
            os._exit(0)
        os.wait()
        with open(f"{answers_path}.part", "rb") as file:
            while True:
                try:
                    answers.append(pickle.load(file))
                except (EOFError, pickle.UnpicklingError):
                    break
        os.unlink(f"{answers_path}.part")
        if len(answers) < len(questions):
            answers.append("ended")
    with open(answers_path, "wb") as file:
        pickle.dump(answers, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
