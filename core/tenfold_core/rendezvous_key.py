"""Rendezvous keys: what names a tensor on its way from one device to another, as TensorFlow writes it.

Made of the attributes of a Send or a Recv by the compiler and the master; read by the rendezvous of a task and by what
pushes tensors to it. Follows TensorFlow's framework/rendezvous.cc.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tenfold_core import errors


@dataclass(frozen=True, slots=True)
class ParsedKey:
    """The five parts of a rendezvous key."""

    send_device: str
    send_incarnation: int  #: unsigned 64 bit
    recv_device: str
    tensor_name: str
    frame_iter: str  #: "0:0" outside loops

    @property
    def send_task(self) -> str:
        """ "/job:ps/replica:0/task:0" """
        return task_of_device(self.send_device)


def task_of_device(device: str) -> str:
    """The task part of a full device name: everything before "/device:"."""
    return device.partition("/device:")[0]


def make_key(
    send_device: str, send_incarnation: int, recv_device: str, tensor_name: str, frame_iter: str = "0:0"
) -> str:
    """A rendezvous key as TensorFlow writes it. `send_incarnation` may be signed, as attrs carry it."""
    return f"{send_device};{send_incarnation & 0xFFFFFFFFFFFFFFFF:016x};{recv_device};{tensor_name};{frame_iter}"


#: What is remembered of longer keys would be too much: peers choose them.
_LONG_KEY = 2048


def parse_key(key: str) -> ParsedKey:
    """Raises InvalidArgumentError naming the key when it is not one."""
    return _parse_known(key) if len(key) <= _LONG_KEY else _parse(key)


def _parse(key: str) -> ParsedKey:
    parts = key.split(";")
    if len(parts) != 5 or not parts[0] or not parts[2]:
        raise errors.invalid_argument(
            f"Invalid rendezvous key: {key!r}. A key is "
            "'send_device;incarnation (16 hex digits);recv_device;tensor_name;frame:iteration'."
        )
    try:
        incarnation = int(parts[1], 16)
    except ValueError:
        raise errors.invalid_argument(
            f"Invalid rendezvous key: {key!r}. {parts[1]!r} is not an incarnation of 16 hex digits."
        ) from None
    return ParsedKey(parts[0], incarnation, parts[2], parts[3], parts[4])


_parse_known = lru_cache(maxsize=16_384)(_parse)
