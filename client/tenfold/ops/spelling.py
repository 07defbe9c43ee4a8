"""Logs a warning, once, when a program uses a name of the releases before TensorFlow 1.0.

Called by deprecated_names.py and by the functions that take arguments in the order of those releases.
"""

from __future__ import annotations

from tenfold import logging

_warned: set[str] = set()


def warn_once(old: str, new: str) -> None:
    """Logs, once per process, that `old` is called `new` since TensorFlow 1.0."""
    if old in _warned:
        return
    _warned.add(old)
    logging.warning("%s is the spelling of a release before 1.0; use %s", old, new)
