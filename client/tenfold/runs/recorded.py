"""What a program records of itself for its run: parameters, versions, seed and source. Reads only what is loaded.

Parameters are the values of absl's flags, what argparse has parsed, and the newest `tf.contrib.training.HParams`, in
this order: a later one of the same name counts. Read by program_report.py with each of its reports. argparse keeps
nothing of what it parsed, so `watch` notes it: cli/child.py calls it before a program starts, and `import tenfold`
where the environment names a control service.
"""

from __future__ import annotations

import enum
import functools
import itertools
import json
import platform
import re
import sys
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping

#: The most that is recorded: parameters, characters of a name and of a value.
_PARAMETERS, _NAME, _VALUE = 500, 200, 1000
#: Integers beyond this are recorded as text: JSON's readers do not agree on them.
_WHOLE = 1 << 53
#: Flags that say which task a process is: they tell one task from another, and no run.
_PLACES = frozenset(
    (
        "ps_hosts",
        "worker_hosts",
        "chief_hosts",
        "master_hosts",
        "evaluator_hosts",
        "job_name",
        "task_index",
        "task_type",
    )
)
#: Words of a name that holds a secret, and pairs of them.
_SECRETS = frozenset(("token", "secret", "password", "passwd", "credential", "credentials", "cookie", "apikey", "dsn"))
_SECRET_KEYS = frozenset(("api", "access", "private", "auth", "encryption"))
NOT_RECORDED = "(not recorded)"

#: What argparse parsed last.
_parsed: deque[argparse.Namespace] = deque(maxlen=4)


def watch() -> None:
    """From now on what argparse parses is noted. Idempotent."""
    import argparse

    parse = argparse.ArgumentParser.parse_known_args
    if getattr(parse, "noted", False):
        return

    @functools.wraps(parse)
    def parse_known_args(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = parse(self, *args, **kwargs)
        namespace = found[0]
        if all(namespace is not each for each in _parsed):
            _parsed.append(namespace)
        return found

    parse_known_args.noted = True  # type: ignore[attr-defined]
    argparse.ArgumentParser.parse_known_args = parse_known_args  # type: ignore[method-assign]


def parameters() -> dict[str, bool | int | float | str]:
    """The program's parameters as they are now, by name. Values that are no numbers, truth values or texts become text;
    those of a name that holds a secret are not recorded. Never raises for a value that cannot be shown."""
    found: dict[str, Any] = {}
    for source in (_absl_flags(), *(vars(each) for each in tuple(_parsed)), *_hparams()):
        found.update(source)
    return shown(found)


def shown(values: Mapping[str, Any]) -> dict[str, bool | int | float | str]:
    """The values as they are recorded: without None, and without what says which task a process is."""
    kept: dict[str, bool | int | float | str] = {}
    for name, value in values.items():
        if value is None or name in _PLACES or not 0 < len(name) <= _NAME or "\0" in name:
            continue
        if len(kept) == _PARAMETERS:
            break
        kept[name] = NOT_RECORDED if _is_secret(name) else _plain(value)
    return kept


def versions() -> dict[str, str]:
    """Of Python, Tenfold, and NumPy where it is loaded."""
    from tenfold.versions import tenfold

    numpy = sys.modules.get("numpy")
    told = {"python": platform.python_version(), "tenfold": tenfold}
    return told if numpy is None else {**told, "numpy": numpy.__version__}


def _absl_flags() -> dict[str, Any]:
    """The flags that the program and its modules define, once they are parsed; none of absl's own."""
    flags = sys.modules.get("absl.flags")
    if flags is None or not flags.FLAGS.is_parsed():
        return {}
    by_module = flags.FLAGS.flags_by_module_dict()
    return {
        flag.name: flag.value
        for module, defined in by_module.items()
        if module.partition(".")[0] != "absl"
        for flag in defined
    }


def _hparams() -> Iterable[dict[str, Any]]:
    module = sys.modules.get("tenfold.contrib.training.hparam")
    return () if module is None else [each.values() for each in tuple(module.newest)]


def _is_secret(name: str) -> bool:
    words = [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word]
    pairs = itertools.pairwise(words)
    return not _SECRETS.isdisjoint(words) or any(a in _SECRET_KEYS and b in ("key", "keys") for a, b in pairs)


def _plain(value: Any) -> bool | int | float | str:
    if isinstance(value, enum.Enum):
        return value.name[:_VALUE]
    if not isinstance(value, (bool, int, float, str)) and callable(item := getattr(value, "item", None)):
        try:
            value = item()  # a scalar of NumPy
        except Exception:
            return _text(value)
    if isinstance(value, bool) or (isinstance(value, int) and -_WHOLE <= value <= _WHOLE):
        return value
    if isinstance(value, float) and value - value == 0:
        return value
    return _text(value)


def _text(value: Any) -> str:
    try:
        text = json.dumps(value) if isinstance(value, (list, tuple)) else str(value)
    except Exception:
        text = f"a {type(value).__name__}"
    return text.replace("\0", "")[:_VALUE]
