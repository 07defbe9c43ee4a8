"""Models as the control service tells of them. Of answers.py's kind; made by model_calls.py."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from tenfold.control.answers import Answer, answer


@answer
class Model(Answer):
    """A model that the service serves."""

    name: str
    path: str
    cluster: str
    tags: tuple[str, ...]
    #: "ready", or "unloaded": then the next request for it loads it.
    state: str
    version: str | None = None
    #: The task that runs it, and the session there.
    master: str | None = None
    session: str | None = None
    signatures: tuple[str, ...] = ()
    #: Why a newer version was not loaded.
    trouble: str = ""


@answer
class TensorMetadata(Answer):
    """A tensor of a signature; -1 stands for a size that may vary."""

    name: str
    datatype: str
    shape: tuple[int, ...]


@answer
class ModelMetadata(Answer):
    """What a model takes and gives."""

    name: str
    versions: tuple[str, ...]
    inputs: tuple[TensorMetadata, ...]
    outputs: tuple[TensorMetadata, ...]
    platform: str = "tensorflow_savedmodel"
    #: `signature`, and `signatures` that there are.
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
