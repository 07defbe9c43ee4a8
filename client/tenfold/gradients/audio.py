"""Gradient rows of audio ops: none has one, as in TensorFlow. The definitions are in tenfold_core/opdefs/audio.py."""

from __future__ import annotations

from tenfold.gradients.registry import not_differentiable, not_implemented

not_differentiable("DecodeWav", "EncodeWav", why="bytes of files")
not_implemented("AudioSpectrogram", "Mfcc")
