"""The ops of `tf.summary`: each gives a string tensor that holds a serialized Summary. Follows TF 1.15's summary.py."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from google.protobuf import json_format

from tenfold import logging
from tenfold.graph import add_to_collections, convert_to_tensor, get_collection, name_scope
from tenfold.graph.collections import GraphKeys
from tenfold.graph.op_builder import apply_op
from tenfold_core import dtypes
from tenfold_protos import summary_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tenfold_protos.node_def_pb2 import NodeDef

_ILLEGAL = re.compile(r"[^-/\w\.]")


def scalar(name: str, tensor: Any, collections: Sequence[str] | None = None, family: str | None = None) -> Any:
    """One number. `tensor` is a real scalar; the tag is the op's full name, after `family/` if given."""
    with _scope(name, family, [tensor]) as (tag, scope):
        return _collected(apply_op("ScalarSummary", tags=tag, values=tensor, name=scope), collections)


def image(
    name: str, tensor: Any, max_outputs: int = 3, collections: Sequence[str] | None = None, family: str | None = None
) -> Any:
    """Images, PNG-encoded. `tensor` is [batch, height, width, channels], uint8 or float32, 1, 3 or 4 channels."""
    with _scope(name, family, [tensor]) as (tag, scope):
        value = apply_op("ImageSummary", tag=tag, tensor=tensor, max_images=max_outputs, name=scope)
        return _collected(value, collections)


def histogram(name: str, values: Any, collections: Sequence[str] | None = None, family: str | None = None) -> Any:
    """The distribution of a real tensor of any shape."""
    with _scope(name, family, [values], "HistogramSummary") as (tag, scope):
        return _collected(apply_op("HistogramSummary", tag=tag, values=values, name=scope), collections)


def audio(
    name: str,
    tensor: Any,
    sample_rate: Any,
    max_outputs: int = 3,
    collections: Sequence[str] | None = None,
    family: str | None = None,
) -> Any:
    """Sound clips. `tensor` is float32 [batch, frames, channels] or [batch, frames] in -1…1, `sample_rate` in hertz."""
    with _scope(name, family, [tensor]) as (tag, scope):
        rate = convert_to_tensor(sample_rate, dtype=dtypes.float32, name="sample_rate")
        value = apply_op(
            "AudioSummaryV2", tag=tag, tensor=tensor, max_outputs=max_outputs, sample_rate=rate, name=scope
        )
        return _collected(value, collections)


def text(name: str, tensor: Any, collections: Sequence[str] | None = None) -> Any:
    """Text, shown as Markdown. Raises ValueError unless `tensor` holds strings."""
    if tensor.dtype.base_dtype != dtypes.string:
        raise ValueError(f"Expected tensor {tensor.name} to have dtype string, got {tensor.dtype}")
    metadata = summary_pb2.SummaryMetadata(plugin_data={"plugin_name": "text"})
    return tensor_summary(name, tensor, summary_metadata=metadata, collections=collections)


def tensor_summary(
    name: str,
    tensor: Any,
    summary_description: str | None = None,
    collections: Sequence[str] | None = None,
    summary_metadata: summary_pb2.SummaryMetadata | None = None,
    family: str | None = None,
    display_name: str | None = None,
) -> Any:
    """Any tensor as it is, with metadata that tells a plugin of TensorBoard what to do with it."""
    metadata = summary_pb2.SummaryMetadata()
    if summary_metadata is not None:
        metadata.CopyFrom(summary_metadata)
    if summary_description is not None:
        metadata.summary_description = summary_description
    if display_name is not None:
        metadata.display_name = display_name
    with _scope(name, family, [tensor]) as (tag, scope):
        value = apply_op(
            "TensorSummaryV2",
            tensor=tensor,
            tag=tag,
            serialized_summary_metadata=metadata.SerializeToString(),
            name=scope,
        )
        return _collected(value, collections)


def merge(inputs: Sequence[Any], collections: Sequence[str] | None = None, name: str | None = None) -> Any:
    """Several summaries as one. The step fails if two of them have the same tag."""
    name = _clean(name)
    with name_scope(name, "Merge", inputs):
        value = apply_op("MergeSummary", inputs=list(inputs), name=name)
        return _collected(value, collections, ())


def merge_all(key: str = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None) -> Any:
    """All summaries of a collection as one; None if there are none."""
    found = get_collection(key, scope=scope)
    return merge(found, name=name) if found else None


def get_summary_description(node_def: NodeDef) -> summary_pb2.SummaryDescription:
    """The description that a TensorSummary node carries as JSON text. Raises ValueError for a node of another op."""
    if node_def.op != "TensorSummary":
        raise ValueError(f"Can't get_summary_description on {node_def.op}")
    description = summary_pb2.SummaryDescription()
    text = node_def.attr["description"].s.decode("utf-8")
    return json_format.Parse(text, description) if text else description


@contextmanager
def _scope(
    name: str, family: str | None, values: Sequence[Any], default_name: str | None = None
) -> Iterator[tuple[str, str]]:
    """The tag and the op's name, both unique: the tag is the full scope, with the family in front."""
    cleaned, family = _clean(name), _clean(family)
    with name_scope(cleaned if family is None else f"{family}/{cleaned}", default_name, values) as scope:
        tag = scope.rstrip("/")
        yield (tag if family is None else f"{family}/{tag}"), scope


def _clean(name: str | None) -> str | None:
    """`name` as a legal name of an op; logs if it had to be changed."""
    if name is None:
        return None
    cleaned = _ILLEGAL.sub("_", name).lstrip("/")
    if cleaned != name:
        logging.info("Summary name %s is illegal; using %s instead.", name, cleaned)
    return cleaned


def _collected(value: Any, collections: Sequence[str] | None, default: Sequence[str] = (GraphKeys.SUMMARIES,)) -> Any:
    add_to_collections(default if collections is None else collections, value)
    return value
