"""`tf.saved_model.loader`: the functions of loader_impl.py under TensorFlow's name of their module."""

from __future__ import annotations

from tenfold.saved_model.loader_impl import load, maybe_saved_model_directory

__all__ = ["load", "maybe_saved_model_directory"]
