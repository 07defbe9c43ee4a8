"""Names and habits that Python had in the days of TensorFlow 1 and has no more, for programs that run unchanged.

as_tensorflow.py puts them back in processes in which `import tensorflow` gives Tenfold, and only there; old_numpy.py
does the same for NumPy.
"""

from __future__ import annotations

import base64
import builtins
import collections
import collections.abc
import fractions
import functools
import html
import html.parser
import inspect
import json
import math
import platform
import random
import sys
import threading
import time
import types
import xml.etree.ElementTree as element_tree
from typing import Any

#: Module, name that went, what stands for it. `collections` had the abstract classes until Python 3.10.
_GONE: tuple[tuple[Any, str, Any], ...] = (
    *((collections, name, getattr(collections.abc, name)) for name in collections.abc.__all__),
    (fractions, "gcd", math.gcd),
    (time, "clock", time.perf_counter),
    (base64, "encodestring", base64.encodebytes),
    (base64, "decodestring", base64.decodebytes),
    (html.parser.HTMLParser, "unescape", staticmethod(html.unescape)),
    (platform, "linux_distribution", lambda *args, **more: ("", "", "")),
    (platform, "dist", lambda *args, **more: ("", "", "")),
    (threading.Thread, "isAlive", threading.Thread.is_alive),
)


def restore() -> None:
    """Gives Python's modules the names that they lack. What they have stays as it is."""
    from tenfold.compat.python.tf_inspect import getargspec

    for module, name, value in (*_GONE, (inspect, "getargspec", getargspec)):
        if name not in vars(module):
            setattr(module, name, value)
    sys.modules.setdefault("xml.etree.cElementTree", element_tree)
    # of the class, and of the generator that the module's functions belong to
    random.Random.sample = _of_sets(random.Random.sample)  # type: ignore[method-assign]
    random.sample = types.MethodType(random.Random.sample, random.sample.__self__)  # type: ignore[attr-defined]
    json.loads, json.load = _without_encoding(json.loads), _without_encoding(json.load)
    builtins.open = _with_universal_newlines(builtins.open)


def _of_sets(sample: Any) -> Any:
    """`Random.sample` that takes the keys of a dictionary and sets, which Python 3.11 began to refuse."""

    @functools.wraps(sample)
    def of_sets(self: random.Random, population: Any, k: int, **more: Any) -> Any:
        return sample(self, tuple(population) if isinstance(population, collections.abc.Set) else population, k, **more)

    return of_sets


def _without_encoding(load: Any) -> Any:
    """`json.load` that ignores `encoding=`, as until Python 3.9."""

    @functools.wraps(load)
    def without_encoding(*args: Any, encoding: Any = None, **more: Any) -> Any:
        return load(*args, **more)

    return without_encoding


def _with_universal_newlines(open_file: Any) -> Any:
    """`open` that takes "rU", which Python 3.11 began to refuse: universal newlines are what text files have."""

    @functools.wraps(open_file)
    def with_universal_newlines(file: Any, mode: Any = "r", *args: Any, **more: Any) -> Any:
        if isinstance(mode, str) and "U" in mode and not set(mode) & set("wxa+"):
            mode = mode.replace("U", "") or "r"
            mode = mode if "r" in mode else f"r{mode}"
        return open_file(file, mode, *args, **more)

    return with_universal_newlines
