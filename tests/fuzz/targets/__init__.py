"""The table of targets: what each is, which modules the fuzzer watches, how large its inputs are.

A target is the file of its name beside this one. Modules are watched by rewriting their bytecode as they are imported,
so none with functions that Numba compiles is named here.
"""

from __future__ import annotations

from typing import NamedTuple


class Target(NamedTuple):
    """A row."""

    #: What is read.
    what: str
    #: Packages and modules, those below them included.
    watched: tuple[str, ...]
    #: The longest input.
    most_bytes: int = 4096


_LINK = ("tenfold_link.wire", "tenfold_services.exchange", "tenfold_kernels.resources.messages")
_HTTP2 = ("tenfold_services.http2",)
_FILES = ("tenfold_core.checkpoint", "tenfold_core.records", "tenfold_core.tensor_util", "tenfold_core.files")
_TENSORS = ("tenfold_core.tensor_util", "tenfold_core.dtypes", "tenfold_kernels.resources.messages")

TARGETS: dict[str, Target] = {
    "link_frames": Target("frames of a link, and the first of them: HELLO and WELCOME", _LINK, 24_000),
    "link_calls": Target("what a link's frames carry: steps, graphs' runs, pushed tensors", _LINK),
    "http2_frames": Target("HTTP/2 frames, gRPC's headers and messages in them", _HTTP2, 12_000),
    "hpack_blocks": Target("HPACK header blocks, one after the other", ("hpack", *_HTTP2)),
    "grpc_messages": Target("messages of gRPC calls, compressed or not; requests with large tensors", _HTTP2, 40_000),
    "graphs": Target(
        "GraphDefs, through place, cut, compile and run",
        ("tenfold_compiler.graph", "tenfold_services.master", "tenfold_services.worker", "tenfold_core"),
        16_384,
    ),
    "tensors": Target("TensorProtos, and tensors in a link's records", (*_TENSORS, "tenfold_link.wire.values")),
    "checkpoint_bundles": Target("checkpoints of format V2: index and data", _FILES),
    "checkpoint_tables": Target("checkpoints of format V1", _FILES),
    "checkpoint_states": Target("the file `checkpoint`", ("tenfold.train.checkpoint_management",)),
    "safetensors": Target("safetensors files", ("tenfold_core.safetensors", "tenfold_core.files")),
    "records": Target("TFRecord files, compressed or not", _FILES),
    "parquet": Target("Parquet files", ("tenfold_core.parquet_files", "tenfold_core.files"), 8192),
    "event_files": Target("event files", (*_FILES, "tenfold.summary.summary_iterator")),
    "pods": Target("statuses of Kubernetes pods, and last words of their containers", ("tenfold.launchers",)),
    "pictures": Target("PNG files", ("tenfold_kernels.cpu._png", "tenfold_kernels.cpu.image_files"), 16_384),
    "media": Target(
        "GIF and BMP files, headers of JPEG files, WAV files",
        (
            "tenfold_kernels.cpu._bmp",
            "tenfold_kernels.cpu._gif",
            "tenfold_kernels.cpu._jpeg",
            "tenfold_kernels.cpu._wav",
            "tenfold_kernels.cpu.image_files",
        ),
        16_384,
    ),
    "examples": Target(
        "Examples and SequenceExamples",
        (
            "tenfold_kernels.cpu._examples",
            "tenfold_kernels.cpu.io_parsing_examples",
            "tenfold_kernels.cpu.io_parsing_sequences",
        ),
    ),
    "texts": Target(
        "CSV, JSON examples, numbers, Unicode, base64, packed and raw strings",
        (
            "tenfold_kernels.cpu.io_parsing",
            "tenfold_kernels.cpu.string",
            "tenfold_kernels.cpu.string_decode",
            "tenfold_kernels.cpu.string_number",
            "tenfold_kernels.cpu.string_split",
            "tenfold_kernels.cpu.string_unicode",
            "google.protobuf.json_format",
        ),
    ),
    "regexes": Target("regular expressions and what they are applied to", ("tenfold_kernels.cpu.string_regex",)),
    "huge_numbers": Target(
        "numbers of inputs and attributes that say sizes, places and counts", ("tenfold_kernels.arrays",), 64
    ),
    "writers": Target("what another step writes into what a compiled loop indexes by", ("support.racing",), 256),
    "rest_bodies": Target("tensors in JSON, and in the binary form beside it", ("tenfold_core.open_inference", "json")),
    "names": Target(
        "TF_CONFIG, cluster specs, addresses, device names, rendezvous keys",
        (
            "tenfold_core.cluster_spec",
            "tenfold_core.address",
            "tenfold_core.device",
            "tenfold_core.node_names",
            "tenfold.distribute.cluster_resolver",
            "tenfold_core.rendezvous_key",
        ),
    ),
}
