"""Strings (`tf.strings`): joining, formatting, parsing, hashing, regular expressions, encodings.

A string tensor holds bytes. One function an operation; those of `tf.strings` have shorter names there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import nest
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.op_builder import tensor_op
from tenfold.ops.sparse import renamed
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


def string_join(inputs: Any, separator: str = "", name: str | None = None) -> Tensor:
    """Joins the strings of several tensors element by element; scalars are joined with every element."""
    return tensor_op("StringJoin", name, inputs=list(inputs), separator=separator)


def fingerprint(data: Any, method: str = "farmhash64", name: str | None = None) -> Tensor:
    """The 64-bit hash of each row of `data`, as uint8 of shape [rows, 8]; any type of fixed size, or strings."""
    return tensor_op("Fingerprint", name, data=data, method=method)


def as_string(
    input: Any,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: str | None = None,
) -> Tensor:
    """Each element formatted as a string."""
    return tensor_op(
        "AsString",
        name,
        input=input,
        precision=precision,
        scientific=scientific,
        shortest=shortest,
        width=width,
        fill=fill,
    )


def string_to_number(string_tensor: Any, out_type: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """Each string parsed as a number."""
    return tensor_op("StringToNumber", name, string_tensor=string_tensor, out_type=out_type)


def string_length(input: Any, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """The length of each string, in bytes or in UTF-8 characters (`unit="UTF8_CHAR"`)."""
    return tensor_op("StringLength", name, input=input, unit=unit)


def substr(input: Any, pos: Any, len: Any, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """`len` bytes or characters from `pos` on."""
    return tensor_op("Substr", name, input=input, pos=pos, len=len, unit=unit)


def string_strip(input: Any, name: str | None = None) -> Tensor:
    """The strings without leading and trailing white space."""
    return tensor_op("StringStrip", name, input=input)


def string_lower(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """The strings in lower case."""
    return tensor_op("StringLower", name, input=input, encoding=encoding)


def string_upper(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """The strings in upper case."""
    return tensor_op("StringUpper", name, input=input, encoding=encoding)


def reduce_join(
    inputs: Any,
    axis: Any = None,
    keep_dims: bool | None = None,
    separator: str = "",
    name: str | None = None,
    reduction_indices: Any = None,
    keepdims: bool | None = None,
) -> Tensor:
    """Joins the strings along `axis`; along all dimensions, the last first, if `axis` is None."""
    inputs = convert_to_tensor(inputs)
    axis = renamed(axis, reduction_indices, "axis", "reduction_indices")
    keep_dims = bool(renamed(keepdims, keep_dims, "keepdims", "keep_dims"))
    if axis is None:
        if inputs.shape.ndims is None:
            raise ValueError(f"reduce_join over all dimensions needs a tensor of known rank; got {inputs!r}")
        axis = list(range(inputs.shape.ndims))
    return tensor_op(
        "ReduceJoin", name, inputs=inputs, reduction_indices=axis, keep_dims=keep_dims, separator=separator
    )


def regex_replace(
    input: Any, pattern: Any, rewrite: Any, replace_global: bool = True, name: str | None = None
) -> Tensor:
    """Replaces what matches `pattern` by `rewrite`."""
    if isinstance(pattern, (str, bytes)) and isinstance(rewrite, (str, bytes)):
        return tensor_op(
            "StaticRegexReplace", name, input=input, pattern=pattern, rewrite=rewrite, replace_global=replace_global
        )
    return tensor_op("RegexReplace", name, input=input, pattern=pattern, rewrite=rewrite, replace_global=replace_global)


def regex_full_match(input: Any, pattern: Any, name: str | None = None) -> Tensor:
    """True where the whole string matches `pattern`."""
    if isinstance(pattern, (str, bytes)):
        return tensor_op("StaticRegexFullMatch", name, input=input, pattern=pattern)
    return tensor_op("RegexFullMatch", name, input=input, pattern=pattern)


def string_to_hash_bucket(string_tensor: Any, num_buckets: int, name: str | None = None) -> Tensor:
    """A bucket number by a hash that never changes between releases."""
    return tensor_op("StringToHashBucket", name, string_tensor=string_tensor, num_buckets=num_buckets)


def string_to_hash_bucket_fast(input: Any, num_buckets: int, name: str | None = None) -> Tensor:
    """A bucket number by a fast hash that never changes between releases."""
    return tensor_op("StringToHashBucketFast", name, input=input, num_buckets=num_buckets)


def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Tensor:
    """Web-safe base64."""
    return tensor_op("EncodeBase64", name, input=input, pad=pad)


def decode_base64(input: Any, name: str | None = None) -> Tensor:
    """The bytes that the web-safe base64 strings encode."""
    return tensor_op("DecodeBase64", name, input=input)


# The names of `tf.strings`.
join = string_join
length = string_length
lower = string_lower
strip = string_strip
to_hash_bucket = string_to_hash_bucket
to_hash_bucket_fast = string_to_hash_bucket_fast
to_number = string_to_number
upper = string_upper


def string_format(
    template: str, inputs: Any, placeholder: str = "{}", summarize: int = 3, name: str | None = None
) -> Tensor:
    """The template with its placeholders replaced by the tensors. ValueError for a wrong number of them."""
    tensors = [convert_to_tensor(x) for x in (nest.flatten(inputs) if isinstance(inputs, (list, tuple)) else [inputs])]
    if template.count(placeholder) != len(tensors):
        raise ValueError(
            f"{template.count(placeholder)} placeholder(s) in template does not match {len(tensors)} tensor(s) "
            "provided as input"
        )
    return tensor_op(
        "StringFormat", name, inputs=tensors, template=template, placeholder=placeholder, summarize=summarize
    )


format = string_format
