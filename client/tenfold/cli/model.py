"""`tenfold model show FOLDER`: what a SavedModel holds: graphs by their tags, signatures with their tensors, files.

Reads the files alone (core/tenfold_core/saved_model.py); served_models.py asks a control service for those it serves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tenfold.cli.group import Group
from tenfold.cli.served_models import list_models, register

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tenfold_protos.meta_graph_pb2 import MetaGraphDef, TensorInfo


@click.group(cls=Group)
def model() -> None:
    """Look into SavedModels, and into those that a control service serves."""


model.add_command(register)
model.add_command(list_models)


@model.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False))
def show(folder: str) -> None:
    """Print the graphs, signatures and files of the SavedModel in FOLDER."""
    # beside NumPy, which no other command needs
    from tenfold_core import errors, saved_model

    try:
        for graph in saved_model.read(folder).meta_graphs:
            lines = list(_lines(graph))
            click.echo(f"graph {', '.join(graph.meta_info_def.tags) or 'without tags'}")
            for line in lines:
                click.echo(f"  {line}")
    except errors.OpError as error:
        raise click.ClickException(error.message) from None
    except (OSError, RuntimeError, TypeError) as error:
        raise click.ClickException(str(error)) from None


def _lines(graph: MetaGraphDef) -> Iterator[str]:
    from tenfold_core import saved_model

    definition = graph.graph_def
    written_by = graph.meta_info_def.tensorflow_git_version or graph.meta_info_def.tensorflow_version
    yield f"{len(definition.node)} nodes, {len(definition.library.function)} functions; written by {written_by or '?'}"
    for name, signature in sorted(graph.signature_def.items()):
        yield f"signature {name}" + (f" ({signature.method_name})" if signature.method_name else "")
        for what, infos in (("input", signature.inputs), ("output", signature.outputs)):
            yield from _tensors(what, infos)
    for tensor, path in saved_model.asset_paths("", graph).items():
        yield f"file {path} for {tensor}"
    if init_op := saved_model.init_op_name(graph):
        yield f"init op {init_op}"


def _tensors(what: str, infos: Mapping[str, TensorInfo]) -> Iterator[str]:
    from tenfold_core.dtypes import as_dtype

    for name, info in sorted(infos.items()):
        if not info.dtype:
            yield f"  {what} {name}: operation {info.name}"
            continue
        sizes = [str(dim.size) for dim in info.tensor_shape.dim]
        shape = "of any shape" if info.tensor_shape.unknown_rank else f"[{', '.join(sizes)}]"
        sparse = info.coo_sparse.values_tensor_name
        where = f"sparse, {sparse}" if sparse else info.name
        yield f"  {what} {name}: {as_dtype(info.dtype).name} {shape}, {where}"
