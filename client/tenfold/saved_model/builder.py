"""`tf.saved_model.builder`: the class of builder_impl.py under TensorFlow's name of its module."""

from __future__ import annotations

from tenfold.saved_model.builder_impl import SavedModelBuilder, _SavedModelBuilder

__all__ = ["SavedModelBuilder", "_SavedModelBuilder"]
