"""The file `checkpoint` of a folder, a protocol buffer as text: what a Saver and a MonitoredTrainingSession look at."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from fuzz import scratch
from fuzz.harness import refusals
from tenfold.train import checkpoint_management

if TYPE_CHECKING:
    from collections.abc import Iterator


def one_input(data: bytes) -> None:
    logging.getLogger("tenfold").setLevel(logging.CRITICAL)  # each refusal is told
    scratch.put("checkpoint", data)
    folder = str(scratch.folder())
    with refusals(ValueError):
        checkpoint_management.get_checkpoint_state(folder)
    with refusals(ValueError):
        checkpoint_management.latest_checkpoint(folder)


def seeds() -> Iterator[bytes]:
    yield b'model_checkpoint_path: "model.ckpt-20"\nall_model_checkpoint_paths: "model.ckpt-10"\n'
    yield b'model_checkpoint_path: "/a/b*[c]"\nall_model_checkpoint_timestamps: 1.5e9\nlast_preserved_timestamp: nan\n'
    yield b'model_checkpoint_path: "\\303\\251" # a comment\nunknown { a: 1 b: [1, 2] }\n'
    yield b"{" * 200
