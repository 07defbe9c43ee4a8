"""Why whole families of ops have no kernel on a GPU: a reason a family, where no row of the op says another one.

registry.absence asks here last. Families of ops that compute (array, math, nn, random, state) are not listed: there
each op without a kernel has a row of its own beside those that have one, `no_kernel(op, device="GPU", why=…)`.
"""

from __future__ import annotations

from tenfold_core import opdefs

#: Op family → the reason.
FAMILIES = {
    "audio": "sounds are taken apart on the host",
    "control_flow": "functions are called on the host; If and While are Switch and Merge before they are placed",
    "data_flow": "a host resource",
    "dataset": "elements of datasets are made on the host",
    "embedding": "a host resource",
    "fused": "made by TensorFlow's passes, or for its CPU; ours fuse what there are kernels for",
    "image": "images are decoded and changed on the host",
    "io": "files and examples are read and written on the host",
    "linalg": "LAPACK's, on the host",
    "list": "lists of tensors are handles, which are in the host's memory",
    "lookup": "a host resource",
    "parquet": "files are read on the host",
    "script": "it calls a function of the program that opened the session",
    "sdca": "TensorFlow has no such kernel either: an example at a time",
    "sparse": "indices of sparse tensors decide shapes, which are the host's",
    "special": "no program of the op census uses it",
    "spectral": "no program of the op census uses it",
    "string": "strings are in the host's memory",
    "summary": "summaries are strings, which are in the host's memory",
    "work_queue": "a host resource",
}


def why(op: str) -> str | None:
    """The reason for an op that has neither a kernel on a GPU nor a row that says why."""
    return FAMILIES.get(opdefs.family_of(op)) if opdefs.has(op) else None
