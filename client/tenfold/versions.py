"""Version constants that programs read (`tf.VERSION`, `tf.version`).

VERSION is the TensorFlow release whose Python API Tenfold has, because programs compare it to decide what to call;
Tenfold's own version is `tf.versions.tenfold`, and `tenfold.__version__`. Where a program imports Tenfold as
`tensorflow`, `tf.__version__` is VERSION.
"""

#: The release of TensorFlow whose names, arguments and defaults are followed.
VERSION = "1.15.0"
GIT_VERSION = "unknown"
COMPILER_VERSION = "none"
CXX11_ABI_FLAG = 0
MONOLITHIC_BUILD = 0
#: Versions of GraphDef that are read; `GRAPH_DEF_VERSION` is what is written.
GRAPH_DEF_VERSION_MIN_CONSUMER = 0
GRAPH_DEF_VERSION_MIN_PRODUCER = 0


def __getattr__(name: str) -> str:
    """`tenfold`: this package's own version, read when somebody asks."""
    if name == "tenfold":
        from importlib.metadata import version

        return version("tenfold")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
