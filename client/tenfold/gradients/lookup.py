"""Gradient rows of lookup tables; the op definitions are in tenfold_core/opdefs/lookup.py.

Look-ups are not differentiable.
"""

from __future__ import annotations

from tenfold.gradients.registry import not_differentiable

not_differentiable(
    "AnonymousHashTable",
    "AnonymousMutableDenseHashTable",
    "AnonymousMutableHashTable",
    "AnonymousMutableHashTableOfTensors",
    "HashTable",
    "InitializeTable",
    "InitializeTableFromTextFile",
    "LookupTableExport",
    "LookupTableExportV2",
    "LookupTableFind",
    "LookupTableImport",
    "LookupTableInsert",
    "LookupTableRemoveV2",
    "LookupTableSize",
    "MutableDenseHashTable",
    "MutableDenseHashTableV2",
    "MutableHashTable",
    "MutableHashTableOfTensors",
    "MutableHashTableOfTensorsV2",
    "MutableHashTableV2",
    why="what a table holds depends on no input of the step",
)

not_differentiable(
    "HashTableV2",
    "InitializeTableFromTextFileV2",
    "InitializeTableV2",
    "LookupTableFindV2",
    "LookupTableImportV2",
    "LookupTableInsertV2",
    "LookupTableSizeV2",
    why="the value comes from another step or from outside",
)
