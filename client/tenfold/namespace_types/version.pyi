# Written by `make stubs` from the table of tf.version in namespaces.py.

from tenfold.graph.graph import GRAPH_DEF_VERSION
from tenfold.versions import COMPILER_VERSION
from tenfold.versions import GIT_VERSION
from tenfold.versions import GRAPH_DEF_VERSION_MIN_CONSUMER
from tenfold.versions import GRAPH_DEF_VERSION_MIN_PRODUCER
from tenfold.versions import VERSION

__all__ = [
    "COMPILER_VERSION",
    "GIT_VERSION",
    "GRAPH_DEF_VERSION",
    "GRAPH_DEF_VERSION_MIN_CONSUMER",
    "GRAPH_DEF_VERSION_MIN_PRODUCER",
    "VERSION",
]
