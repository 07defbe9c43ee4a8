"""`tf.logging`: TensorFlow's log functions over Python's logger `tenfold`.

Warnings and errors are shown until a program asks for more with `set_verbosity`. A handler is added only when
logging is not configured.
"""

from __future__ import annotations

import logging as _logging
import sys
from typing import Any

DEBUG = _logging.DEBUG
INFO = _logging.INFO
WARN = _logging.WARNING
ERROR = _logging.ERROR
FATAL = _logging.CRITICAL

_logger = _logging.getLogger("tenfold")
#: Message → how often `log_every_n` and `log_first_n` saw it.
_counts: dict[str, int] = {}


def get_logger() -> _logging.Logger:
    """The logger behind these functions; writes to standard error if logging is not configured."""
    if not _logger.handlers and not _logging.getLogger().handlers:
        handler = _logging.StreamHandler(sys.stderr)
        handler.setFormatter(_logging.Formatter("%(levelname)s:%(name)s:%(message)s"))
        _logger.addHandler(handler)
        if _logger.level == _logging.NOTSET:
            _logger.setLevel(WARN)
    return _logger


def log(level: int, msg: Any, *args: Any) -> None:
    """Logs `msg % args` at `level`."""
    get_logger().log(level, msg, *args)


def debug(msg: Any, *args: Any) -> None:
    """Logs at DEBUG."""
    get_logger().debug(msg, *args)


def info(msg: Any, *args: Any) -> None:
    """Logs at INFO."""
    get_logger().info(msg, *args)


def warning(msg: Any, *args: Any) -> None:
    """Logs at WARN."""
    get_logger().warning(msg, *args)


warn = warning


def error(msg: Any, *args: Any) -> None:
    """Logs at ERROR."""
    get_logger().error(msg, *args)


def fatal(msg: Any, *args: Any) -> None:
    """Logs at FATAL; does not end the program."""
    get_logger().critical(msg, *args)


def TaskLevelStatusMessage(msg: Any) -> None:
    """Logs at ERROR."""
    error(msg)


def vlog(level: int, msg: Any, *args: Any) -> None:
    """Logs at DEBUG, or below it for a `level` of 2 and more."""
    get_logger().log(max(1, DEBUG + 1 - level), msg, *args)


def _count(msg: Any) -> int:
    key = str(msg)
    _counts[key] = _counts.get(key, 0) + 1
    return _counts[key] - 1


def log_every_n(level: int, msg: Any, n: int, *args: Any) -> None:
    """Logs the first and then every n-th call with this message."""
    if _count(msg) % n == 0:
        log(level, msg, *args)


def log_first_n(level: int, msg: Any, n: int, *args: Any) -> None:
    """Logs the first n calls with this message."""
    if _count(msg) < n:
        log(level, msg, *args)


def log_if(level: int, msg: Any, condition: Any, *args: Any) -> None:
    """Logs if `condition` holds."""
    if condition:
        log(level, msg, *args)


def flush() -> None:
    """Flushes the handlers."""
    for handler in get_logger().handlers:
        handler.flush()


def get_verbosity() -> int:
    """The lowest level that is shown."""
    return get_logger().getEffectiveLevel()


def set_verbosity(v: int) -> None:
    """Shows messages of level `v` and above."""
    get_logger().setLevel(v)
