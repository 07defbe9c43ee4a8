"""What TensorFlow answers to graphs of placeholders and nodes, run without optimizations.

Run under TensorFlow's interpreter: `python ask.py QUESTIONS ANSWERS`, both pickles. A question is (a GraphDef, the
TensorProtos that are fed, by name, the names of what is fetched, and of the node that runs last, all of whose outputs
are fetched where no names are given); an answer is a list of TensorProtos or the error's class and text. Forks before
the first question, and again after one at which TensorFlow's process ends. make.py is the other end.
"""

import contextlib
import os
import pickle
import signal
import sys

#: After which a question has no answer: TensorFlow's process ends.
SECONDS = 5


def answer(tf, config, make, question):
    graph_def, fed, names, last = question
    tf1 = tf.compat.v1
    with tf1.Graph().as_default() as graph:
        try:
            tf1.import_graph_def(tf1.GraphDef.FromString(graph_def), name="")
        except ValueError as error:
            return f"graph: {error}"
        feeds = {}
        for name, data in fed.items():
            feeds[name] = tf.make_ndarray(make.FromString(data))
        node = graph.get_operation_by_name(last)
        outputs = list(node.outputs) if names is None else [graph.get_tensor_by_name(name) for name in names]
        with tf1.Session(config=config) as session:
            try:
                values = session.run([*outputs, node], feeds)[:-1]
            except tf.errors.OpError as error:
                return f"{type(error).__name__.replace('Error', '')}: {error.message}"
        return [
            tf1.make_tensor_proto(value, output.dtype).SerializeToString()
            for value, output in zip(values, outputs)  # noqa: B905 - also for the Python of TensorFlow 1.15
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
