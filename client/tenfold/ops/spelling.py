"""Tells a program, once, that it uses a spelling of the releases before TensorFlow 1.0.

Called by deprecated_names.py and by the functions that take arguments in the order of those releases.
"""

from __future__ import annotations

from tenfold import logging

_told: set[str] = set()


def tell_once(old: str, new: str) -> None:
    """Logs, once a process, that `old` is called `new` since TensorFlow 1.0."""
    if old in _told:
        return
    _told.add(old)
    logging.warning("%s is the spelling of a release before 1.0; use %s", old, new)
