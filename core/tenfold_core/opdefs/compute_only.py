"""Which ops a caller may run who may only compute, of the role run:untrusted. What is not in this table, he may not.

Asked by services/master/untrusted.py of every node and every function of a graph that comes in. State is allowed, since
such a session has containers of its own. A new op of a family below is allowed by that: one that opens files, calls
functions of a program, talks to tasks or ends them belongs to REFUSED.
"""

from __future__ import annotations

from tenfold_core.opdefs import table

#: Families that only compute, or keep state in the session's containers.
_FAMILIES = frozenset(
    (
        "array",
        "audio",
        "control_flow",
        "data_flow",
        "image",
        "linalg",
        "list",
        "lookup",
        "math",
        "nn",
        "random",
        "sdca",
        "sparse",
        "special",
        "spectral",
        "state",
        "string",
    )
)

#: Of the other families, those that make bytes of tensors and tensors of bytes.
_OTHERS = frozenset(
    (
        "AudioSummary",
        "AudioSummaryV2",
        "DecodeCSV",
        "DecodePaddedRaw",
        "DecodeRaw",
        "HistogramSummary",
        "ImageSummary",
        "MergeSummary",
        "ParallelConcat",
        "ParseExample",
        "ParseExampleV2",
        "ParseSequenceExample",
        "ParseSequenceExampleV2",
        "ParseSingleExample",
        "ParseSingleSequenceExample",
        "ParseTensor",
        "ScalarSummary",
        "SerializeTensor",
        "ShardedFilename",
        "ShardedFilespec",
        "TensorSummary",
        "TensorSummaryV2",
    )
)

#: Op → what it does beside computing.
REFUSED = {
    "Abort": "it ends the task",
    "FixedUnigramCandidateSampler": "it reads a file",
    "ImmutableConst": "it reads a file",
    "InitializeTableFromTextFile": "it reads a file",
    "InitializeTableFromTextFileV2": "it reads a file",
    "Print": "it writes to the task's log",
    "PrintV2": "it writes to the task's log, or a file",
    "RecordInput": "it reads files",
    "RemoteCall": "it runs a function on another task",
}

_WHY_FAMILY = {
    "dataset": "datasets read files",
    "io": "it uses files",
    "parquet": "datasets read files",
    "script": "it calls a function of a program",
    "sendrecv": "it is the runtime's own",
    "summary": "it writes files",
}


def refusal(op: str) -> str | None:
    """Why a caller that may only compute may not run `op`; None if he may."""
    if op in REFUSED:
        return REFUSED[op]
    if op.startswith("_"):
        return "it is the runtime's own"
    if op in _OTHERS:
        return None
    if not table.has(op):
        return "it is not known here"
    family = table.family_of(op)
    if family not in _FAMILIES:
        return _WHY_FAMILY.get(family, "it does more than compute")
    if table.get(op).is_distributed_communication:
        return "it talks to other tasks"
    return None
