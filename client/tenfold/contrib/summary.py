"""`tf.contrib.summary`: the writers of summary/task_writers.py and the ops of summary/writer_ops.py."""

from tenfold.summary.task_writers import (
    always_record_summaries,
    create_file_writer,
    create_summary_file_writer,
    flush,
    never_record_summaries,
    record_summaries_every_n_global_steps,
    should_record_summaries,
    summary_writer_initializer_op,
)
from tenfold.summary.writer_ops import (
    all_summary_ops,
    audio,
    eval_dir,
    generic,
    graph,
    histogram,
    image,
    import_event,
    initialize,
    scalar,
)

__all__ = [
    "all_summary_ops",
    "always_record_summaries",
    "audio",
    "create_file_writer",
    "create_summary_file_writer",
    "eval_dir",
    "flush",
    "generic",
    "graph",
    "histogram",
    "image",
    "import_event",
    "initialize",
    "never_record_summaries",
    "record_summaries_every_n_global_steps",
    "scalar",
    "should_record_summaries",
    "summary_writer_initializer_op",
]
