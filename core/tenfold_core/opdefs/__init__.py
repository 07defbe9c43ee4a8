"""What every operation takes and gives: one table of op definitions a family.

`get("MatMul")` gives the parsed `OpDef`. Names, argument order, attributes and defaults are those of TensorFlow's
registry; the graph, the placer, the partitioner and the kernels all ask here.
"""

from tenfold_core.opdefs.table import FAMILIES, family_of, family_of_module, get, has, names

__all__ = ["FAMILIES", "family_of", "family_of_module", "get", "has", "names"]
