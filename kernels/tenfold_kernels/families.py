"""Which modules hold the kernels of a family of ops. registry.py imports a family's when it is first asked for one.

A family is a stem of tenfold_core/opdefs. An op whose kernel lies in another family's module needs that module in its
own family's row, or it is found only when somebody asked for the other family before: a test compares them.
"""

from __future__ import annotations

#: Device type → op family (the stem of tenfold_core/opdefs) → modules of this package that hold its rows.
FAMILY_MODULES: dict[str, dict[str, tuple[str, ...]]] = {
    "CPU": {
        "math": (
            "cpu.math",
            "cpu.math_reduction",
            "cpu.math_misc",
            "cpu.math_bits",
            "cpu.math_segments",
            "cpu.special",
            "cpu.list_math",
            "cpu.sparse",  # SparseTensorDenseAdd
        ),
        "special": ("cpu.special",),
        "linalg": ("cpu.linalg", "cpu.math_misc"),  # BatchCholesky, BatchMatrixInverse
        "spectral": ("cpu.spectral",),
        "sparse": (
            "cpu.sparse",
            "cpu.sparse_math",
            "cpu.sparse_maps",
            "cpu.sparse_serialize",
            "cpu.sparse_sets",
            "cpu.sparse_cross",
        ),
        "image": ("cpu.image", "cpu.image_png", "cpu.image_resize"),
        "fused": ("cpu.fused", "cpu.nn_norm"),
        "script": ("cpu.script",),
        "nn": (
            "cpu.nn",
            "cpu.nn_loss",
            "cpu.nn_conv",
            "cpu.nn_depthwise",
            "cpu.nn_pool",
            "cpu.nn_pool_argmax",
            "cpu.nn_norm",
            "cpu.nn_misc",
            "cpu.image",
            "cpu.image_resize",
        ),
        "array": (
            "cpu.array",
            "cpu.array_shape",
            "cpu.array_slice",
            "cpu.array_gather",
            "cpu.array_index",
            "cpu.array_diag",
            "cpu.array_quantize",
            "cpu.array_more",
            "cpu.state_scatter",  # ScatterNd* on references
        ),
        "state": ("cpu.state", "cpu.state_scatter", "cpu.state_apply"),
        "control_flow": ("cpu.control_flow", "cpu.script", "cpu.functional"),
        "data_flow": (
            "cpu.data_flow_queue",
            "cpu.data_flow_accumulator",
            "cpu.data_flow_array",
            "cpu.data_flow_barrier",
            "cpu.data_flow_stage",
            "cpu.data_flow_map_stage",
            "cpu.data_flow_session",
            "cpu.data_flow",
        ),
        "dataset": ("cpu.optional", "cpu.dataset", "cpu.dataset_sources", "cpu.dataset_iterator"),
        "list": ("cpu.list", "cpu.list_whole"),
        "lookup": ("cpu.lookup",),
        "io": (
            "cpu.io",
            "cpu.io_checkpoint",
            "cpu.io_readers",
            "cpu.io_remap",
            "cpu.parsing",
            "cpu.parsing_examples",
            "cpu.parsing_sequences",
        ),
        "string": (
            "cpu.string",
            "cpu.string_hash",
            "cpu.string_number",
            "cpu.string_regex",
            "cpu.string_split",
            "cpu.string_unicode",
            "cpu.parsing",  # DecodeCompressed, DecodeJSONExample
        ),
        "summary": ("cpu.summary", "cpu.summary_media", "cpu.summary_writer"),
        "random": ("cpu.random", "cpu.random_candidates", "cpu.random_rejection", "cpu.random_stateless"),
        "sendrecv": ("cpu.sendrecv",),
    },
    "GPU": {},
}
