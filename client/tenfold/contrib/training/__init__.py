"""`tf.contrib.training`: HParams, batches by bucket or class, training and evaluation loops, placing strategies.

Each name is loaded from its module at its first use.
"""

from tenfold.contrib.lazy import lazy_names

_EVALUATION = """
    StopAfterNEvalsHook SummaryAtEndHook checkpoints_iterator evaluate_once evaluate_repeatedly
    get_or_create_eval_step wait_for_new_checkpoint
"""
_HOME = "tenfold.contrib.training"
_STATES = "batches of sequences with saved states; `tf.nn.dynamic_rnn` on batches of `tf.data` trains such models"

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        f"{_HOME}.hparam": "HParamDef HParams parse_values",
        f"{_HOME}.bucket_ops": "bucket bucket_by_sequence_length",
        f"{_HOME}.resample": "resample_at_rate weighted_resample",
        f"{_HOME}.sampling_ops": "rejection_sample stratified_sample",
        f"{_HOME}.evaluation": _EVALUATION,
        f"{_HOME}.training": """
            add_gradients_summaries clip_gradient_norms clip_gradient_norms_fn create_train_op multiply_gradients train
        """,
        f"{_HOME}.device_setter": "GreedyLoadBalancingStrategy RandomStrategy byte_size_load_fn",
    },
    left_out={
        "NextQueuedSequenceBatch": _STATES,
        "SequenceQueueingStateSaver": _STATES,
        "batch_sequences_with_states": _STATES,
        "FeedingQueueRunner": "it fed queues from Python; `tf.data.Dataset.from_generator` and `tf.py_func` do",
        "Tuner": "an interface that TensorFlow itself has no implementation of",
    },
)
