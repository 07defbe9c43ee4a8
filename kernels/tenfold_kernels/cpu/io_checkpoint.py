"""Checkpoints: variables to files and back. SaveV2, RestoreV2 and MergeV2Checkpoints are format V2, the rest is V1.

All of them block while the disk does. What a file looks like is tenfold_core/checkpoint's matter; here are the ops'
inputs and TensorFlow's words for what is wrong with them. Follows save_restore_v2_ops.cc and save_restore_tensor.cc.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from tenfold_core import checkpoint, dtypes, errors
from tenfold_core.file_names import file_path, parent
from tenfold_core.graph_files import graph_files
from tenfold_kernels.arrays import Array, invalid, shape_text
from tenfold_kernels.cpu._cuts import cut, no_embeddings, value_of
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.resources.messages import variants_from_bytes, variants_to_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tenfold_core.dtypes import DType
    from tenfold_kernels.resources.read_in_pieces import ReadInPieces


def _text(value: bytes) -> str:
    return file_path(value)


def _texts(value: Array) -> list[str]:
    return [_text(item) for item in value.reshape(-1).tolist()]


def _plain(value: Array) -> list[str]:
    """Names of tensors, which are no files."""
    return [os.fsdecode(item) for item in value.reshape(-1).tolist()]


def checked_v2_inputs(prefix: Array, names: Array, specs: Array) -> tuple[str, list[str], list[str]]:
    """The file, the names and the slices that SaveV2 and its kin are given. Raises InvalidArgumentError."""
    if prefix.size != 1:
        raise invalid(f"Input prefix should have a single element, got {prefix.size} instead.")
    if names.ndim != 1 or specs.ndim != 1:
        raise invalid(
            "Input tensor_names and shape_and_slices should be an 1-D tensors, got "
            f"{shape_text(names.shape)} and {shape_text(specs.shape)} instead."
        )
    if names.size != specs.size:
        raise invalid(
            f"tensor_names and shape_and_slices have different number of elements: {names.size} vs. {specs.size}"
        )
    return _texts(prefix)[0], _plain(names), _plain(specs)


def parsed_spec(spec: str, value: Array) -> tuple[tuple[int, ...], checkpoint.TensorSlice]:
    """The whole shape, and which part of it `value` is. Raises InvalidArgumentError for one of another shape."""
    shape, part, part_shape = checkpoint.parse_shape_and_slice(spec)
    if part_shape != value.shape:
        raise invalid(
            "Slice in shape_and_slice specification does not match the shape of the tensor to  save: "
            f"{spec}, tensor: {shape_text(value.shape)}"
        )
    return shape, part


@kernel("SaveV2", files=True)
def build_save_v2(node: KernelNode) -> Compute:
    """Of the handle of an embedding variable all that the variable has, of another one's its value; all variables as
    they are at one moment."""
    types: Sequence[DType] = [t.base_dtype for t in node.input_types[3:]]
    has_embeddings = dtypes.resource in types
    if has_embeddings:
        from tenfold_kernels.cpu.embedding import saved_embeddings

    def compute(prefix: Array, tensor_names: Array, shape_and_slices: Array, *tensors: Array) -> None:
        where, names, specs = checked_v2_inputs(prefix, tensor_names, shape_and_slices)
        if len(tensors) != len(names):
            raise invalid(f"Got {len(names)} tensor names but {len(tensors)} tensors.")
        embeddings: dict[str, Iterable[tuple[str, Array]]] = {}
        values: Sequence[Array | ReadInPieces]
        if has_embeddings:
            embeddings, values = saved_embeddings(node, names, tensors, where)
        else:
            with cut(node, names, tensors, no_embeddings) as made:
                values = made.values
        with checkpoint.BundleWriter(where, files=graph_files()) as writer:
            for name, spec, held, dtype in zip(names, specs, values, types, strict=True):
                if name in embeddings:
                    for each, found in embeddings[name]:
                        writer.add(each, found, dtypes.as_dtype(found.dtype))
                    continue
                tensor = value_of(held)
                if dtype is dtypes.resource:
                    dtype = dtypes.as_dtype(tensor.dtype)
                value = variants_to_bytes(tensor) if dtype is dtypes.variant else tensor
                if spec:
                    shape, part = parsed_spec(spec, value)
                    writer.add_slice(name, shape, part, value, dtype)
                else:
                    writer.add(name, value, dtype)

    return compute


@kernel("RestoreV2", files=True)
def build_restore_v2(node: KernelNode) -> Compute:
    """Reads a V2 checkpoint, or a V1 one where there is no index of that name."""
    types = node.output_types
    single = len(types) == 1

    def compute(prefix: Array, tensor_names: Array, shape_and_slices: Array) -> Any:
        if tensor_names.size != len(types):
            raise invalid(f"Got {tensor_names.size} tensor names, but {len(types)} expected dtypes.")
        where, names, specs = checked_v2_inputs(prefix, tensor_names, shape_and_slices)
        if graph_files().exists(checkpoint.meta_filename(where)):
            values = restored_bundle(where, names, specs, types)
        else:
            with checkpoint.SliceTableReader(where, files=graph_files()) as reader:
                values = [
                    _restore_v1(reader, where, name, spec, dtype)
                    for name, spec, dtype in zip(names, specs, types, strict=True)
                ]
        return values[0] if single else tuple(values)

    return compute


def restored_bundle(where: str, names: list[str], specs: list[str], types: Sequence[DType]) -> list[Array]:
    """What a bundle has under these names. Blocks; raises the step's error for what it lacks or has otherwise."""
    with checkpoint.BundleReader(where, files=graph_files()) as reader:
        wrong = []
        stored = [reader.dtype_and_shape(name) for name in names]
        for name, (dtype, _), expected in zip(names, stored, types, strict=True):
            if dtype is not expected:
                wrong.append(
                    f"tensor_name = {name}; expected dtype {expected.op_name} does not equal "
                    f"original dtype {dtype.op_name}"
                )
        if wrong:
            raise invalid("\n".join(wrong))
        parts: list[checkpoint.TensorSlice | None] = []
        for name, spec, (_, shape) in zip(names, specs, stored, strict=True):
            whole, part, _ = checkpoint.parse_shape_and_slice(spec) if spec else (shape, None, shape)
            if whole != shape:
                raise invalid(
                    f"tensor_name = {name}; shape in shape_and_slice spec {shape_text(whole)} does not match "
                    f"the shape stored in checkpoint: {shape_text(shape)}"
                )
            parts.append(part)
        values: dict[int, Array] = {}
        for i in sorted(range(len(names)), key=lambda i: reader.place(names[i])):
            part = parts[i]
            values[i] = reader.read(names[i]) if part is None else reader.read_slice(names[i], part)
            if types[i] is dtypes.variant:
                values[i] = variants_from_bytes(values[i], names[i])
    return [values[i] for i in range(len(names))]


@kernel("MergeV2Checkpoints", files=True)
def build_merge_v2(node: KernelNode) -> Compute:
    """The end of a sharded save: many bundles become one; their folders go if they are empty."""
    delete = bool(node.attrs.get("delete_old_dirs", True))
    allow_missing = bool(node.attrs.get("allow_missing_files", False))

    def compute(prefixes: Array, destination: Array) -> None:
        if prefixes.ndim != 1:
            raise invalid(
                f"Input checkpoint_prefixes should be an 1-D tensor, got {shape_text(prefixes.shape)} instead."
            )
        if destination.ndim:
            raise invalid(
                f"Input destination_prefix should be a scalar tensor, got {shape_text(destination.shape)} instead."
            )
        where, sources = _texts(destination)[0], _texts(prefixes)
        checkpoint.merge_bundles(sources, where, allow_missing_files=allow_missing, files=graph_files())
        if delete:
            for folder in {parent(source) for source in sources} - {parent(where)}:
                with contextlib.suppress(OSError):  # not empty, or gone with another task's merge
                    graph_files().remove_folder(folder)

    return compute


@kernel("Save", "SaveSlices", files=True)
def build_save(node: KernelNode) -> Compute:
    fixed = 3 if node.op == "SaveSlices" else 2
    types: Sequence[DType] = [t.base_dtype for t in node.input_types[fixed:]]

    def compute(filename: Array, tensor_names: Array, *rest: Array) -> None:
        if filename.size != 1:
            raise invalid(f"Input 0 (filename) must be a string scalar; got a tensor of {filename.size}elements")
        names = _plain(tensor_names)
        specs = _plain(rest[0]) if fixed == 3 else [""] * len(names)
        values = rest[fixed - 2 :]
        if len(specs) != len(names):
            raise invalid(f"Expected {len(names)} elements for the tensor shapes and slices but got {len(specs)}")
        if len(values) != len(names):
            raise invalid(
                f"Expected totally {len(names) + fixed} inputs as input #1 (which is a string tensor of saved names) "
                f"contains {len(names)} names, but received {len(values) + fixed} inputs"
            )

        def tensors() -> Iterator[checkpoint.SavedTensor]:
            for name, spec, value, dtype in sorted(
                zip(names, specs, values, types, strict=True), key=lambda row: row[0].encode("utf-8", "surrogateescape")
            ):
                shape, part = (
                    parsed_spec(spec, value) if spec else (value.shape, checkpoint.TensorSlice.full(value.ndim))
                )
                yield checkpoint.SavedTensor(name, shape, part, value, dtype)

        checkpoint.write_slice_table(_texts(filename)[0], tensors(), files=graph_files())

    return compute


@kernel("Restore", "RestoreSlice", files=True)
def build_restore(node: KernelNode) -> Compute:
    dtype = node.output_types[0]

    def compute(file_pattern: Array, tensor_name: Array, shape_and_slice: Array | None = None) -> Array:
        if file_pattern.size != 1:
            raise invalid(
                f"Input 0 (file_pattern) must be a string scalar; got a tensor of {file_pattern.size} elements"
            )
        if not tensor_name.size or (shape_and_slice is not None and not shape_and_slice.size):
            raise invalid("Input 1 (file_pattern) must be a have at least 1 elements")
        pattern = _texts(file_pattern)[0]
        spec = "" if shape_and_slice is None else _plain(shape_and_slice)[0]
        with checkpoint.SliceTableReader(pattern, files=graph_files()) as reader:
            return _restore_v1(reader, pattern, _plain(tensor_name)[0], spec, dtype)

    return compute


def _restore_v1(reader: checkpoint.SliceTableReader, pattern: str, name: str, spec: str, expected: DType) -> Array:
    found = reader.dtype_and_shape(name)
    if found is None:
        raise errors.not_found(f'Tensor name "{name}" not found in checkpoint files {pattern}')
    dtype, shape = found
    if dtype is not expected:
        raise invalid(
            f"Expected to restore a tensor of type {expected.op_name}, got a tensor of type {dtype.op_name} instead: "
            f"tensor_name = {name}"
        )
    part = checkpoint.TensorSlice.full(len(shape))
    if spec:
        whole, part, _ = checkpoint.parse_shape_and_slice(spec)
        if whole != shape:
            raise invalid(
                "Shape in shape_and_slice spec does not match the shape in the save file: "
                f"{shape_text(whole)}, save file shape: {shape_text(shape)}"
            )
    return reader.read_slice(name, part)
