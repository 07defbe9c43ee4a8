"""Version constants that programs read (`tf.VERSION`, `tf.version`).

VERSION is the TensorFlow release whose Python API Tenfold has, because programs compare it to decide what to call;
Tenfold's own version is `tf.__version__`.
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
