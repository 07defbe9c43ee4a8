"""Arguments of TensorFlow's that public functions accept and that change nothing: a table, and what finds them.

docs/compatibility.md shows the table. `unread` looks for arguments that no line of a function reads;
tests/unit/house/test_compatibility.py compares the two.
"""

from __future__ import annotations

import ast
import inspect
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_CHECKED = "indices are always checked"
_DENSE = "a hint; the product is the same"
_FUSED = "what is fused is decided when the graph is compiled"
#: Public name → its arguments, and why they change nothing.
INERT: dict[str, tuple[str, str]] = {
    "tf.CriticalSection": ("import_scope", "it is for a definition that no public function writes"),
    "tf.argsort": ("stable", "the order is always stable"),
    "tf.einsum": ("optimize", "inputs are combined from left to right"),
    "tf.gather": ("validate_indices", _CHECKED),
    "tf.feature_column.embedding_column": ("do_fusion", _FUSED),
    "tf.feature_column.shared_embedding_columns": ("do_fusion", _FUSED),
    "tf.get_local_variable": ("trainable", "a local variable never is, as in TensorFlow"),
    "tf.hessians": ("name", "operations are not grouped under it, as in TensorFlow"),
    "tf.import_graph_def": ("op_dict", "deprecated in TensorFlow, too: definitions are those of the registry"),
    "tf.matmul": ("a_is_sparse b_is_sparse", _DENSE),
    "tf.strided_slice": ("var", "assign to a slice by `v[…].assign(…)`"),
    "tf.io.gfile.walk": ("onerror", "a folder that cannot be read is passed over"),
    "tf.linalg.matrix_rank": ("validate_args", "an input that is not a matrix is always refused"),
    "tf.linalg.matvec": ("a_is_sparse b_is_sparse", _DENSE),
    "tf.linalg.pinv": ("validate_args", "an input that is not a matrix is always refused"),
    "tf.nn.ctc_loss_v2": ("unique", "the loss is computed without it"),
    "tf.nn.embedding_lookup": ("validate_indices", _CHECKED),
    "tf.nn.moments": ("shift", "TensorFlow 1.15 does not use it either"),
    "tf.resource_loader.readahead_file_path": ("readahead", "the file is read where it is"),
    "tf.test.is_gpu_available": ("cuda_only", "every GPU is one of CUDA's"),
    "tf.train.export_meta_graph": ("save_debug_info", "stack traces are not written"),
}


@cache
def _functions(file: str) -> dict[int, ast.FunctionDef]:
    """The functions of a source file by the line of their `def` or of their first decorator."""
    with open(file, encoding="utf-8") as source:
        nodes = [node for node in ast.walk(ast.parse(source.read())) if isinstance(node, ast.FunctionDef)]
    return {min([node.lineno, *(each.lineno for each in node.decorator_list)]): node for node in nodes}


def unread(function: Callable[..., Any]) -> list[str]:
    """The arguments that the source of a function of ours never reads; none for one whose body only raises."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or "/tenfold/" not in code.co_filename:
        return []
    node = _functions(code.co_filename).get(code.co_firstlineno)
    if node is None or all(isinstance(each, ast.Raise | ast.Pass | ast.Expr) for each in node.body):
        return []
    read = {each.id for each in ast.walk(ast.Module(node.body, [])) if isinstance(each, ast.Name)}
    arguments = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return [each for each in arguments if each not in read and each not in ("self", "cls", "_")]
