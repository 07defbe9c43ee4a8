"""`tf.contrib.session_bundle`: models as TensorFlow 0.x exported them, before `tf.saved_model`. As in 1.15.

An export is a folder named by its version: a meta graph whose collections say how it is asked, a checkpoint, assets.
"""

from tenfold.contrib.session_bundle import bundle_shim, constants, exporter, gc, session_bundle
from tenfold_protos import manifest_pb2

__all__ = ["bundle_shim", "constants", "exporter", "gc", "manifest_pb2", "session_bundle"]
