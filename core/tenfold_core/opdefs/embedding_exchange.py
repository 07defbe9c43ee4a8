"""Op definitions: lookups of embedding variables as one exchange with each task that holds a part of their tables.

They are Tenfold's own. The client writes a split, lookups of the parts and a merge for each lookup;
compiler/graph/lookups_together.py makes one of each for many. `N` is how many lookups a node stands for. Ids of all of
them lie behind each other, and `sizes` says how many each has. A row each; see `tenfold_core/op_def.py`.
"""

from __future__ import annotations

from tenfold_core.opdefs import shape_fns_resources as r
from tenfold_core.opdefs.table import family

op = family("embedding")

op(
    "EmbeddingMerge",
    "ids: N * Tkeys, places: int64, rows: parts * T",
    "output: N * T",
    "N: int >= 1",
    "parts: int >= 1",
    "Tkeys: {int64, int32}",
    "T: type",
    shape=r.merged_embeddings,
)
op(
    "EmbeddingRows",
    "rows: T, sizes: int64",
    "output: N * T",
    "N: int >= 1",
    "T: type",
    shape=r.rows_of_each,
)
op(
    "EmbeddingSplit",
    "ids: N * Tkeys",
    "keys: parts * Tkeys, sizes: parts * int64, places: int64",
    "N: int >= 1",
    "parts: int >= 1",
    "Tkeys: {int64, int32}",
    "distinct: bool = true",
    shape=r.split_ids,
)
op(
    "EmbeddingSum",
    "gradients: N * T, places: int64, sizes: parts * int64",
    "sums: parts * T",
    "N: int >= 1",
    "parts: int >= 1",
    "T: {numeric}",
    shape=r.summed_embeddings,
)
op(
    "KvResourceGathers",
    "resources: N * resource, keys: Tkeys, sizes: int64",
    "output: dtype",
    "N: int >= 1",
    "dtype: type",
    "Tkeys: {int64, int32}",
    "is_inference: bool = false",
    stateful=True,
    shape=r.gathered_embeddings,
)
op(
    "KvResourceSparseApplies",
    "resources: M * resource, others: Tothers, grad: T, indices: Tindices, sizes: int64",
    "",
    "op: string",
    "apart: list(int) >= 1",
    "N: int >= 1",
    "M: int >= 1",
    "Tothers: list(type) >= 0",
    "T: {numeric}",
    "Tindices: {index}",
    stateful=True,
)
