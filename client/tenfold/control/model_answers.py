"""Models as the control service tells of them. Of answers.py's kind; made by model_calls.py."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from tenfold.control.answers import Answer, answer


@answer
class Following(Answer):
    """What a model serves of the training that it follows."""

    #: The training's folder of checkpoints.
    folder: str
    #: The whole checkpoint that its chain begins with, and the newest increment that is served; None: that one itself.
    checkpoint: str
    increment: str | None
    global_step: int | None
    #: When the served state was saved, in seconds since 1970.
    saved_at: float
    #: Since when there is a newer state that is not served, in seconds; 0 where the newest is.
    behind_seconds: float
    #: Of all embedding variables.
    rows: int
    #: Taken in since the model was loaded.
    increments: int
    #: Why what comes next cannot be read, and since when, in seconds since 1970.
    trouble: str
    trouble_since: float | None


@answer
class Model(Answer):
    """A model that the service serves."""

    name: str
    path: str
    cluster: str
    tags: tuple[str, ...]
    #: "ready", or "unloaded": then the next request for it loads it; one that follows a training is loaded by itself.
    state: str
    version: str | None = None
    #: The task that runs it, and the session there.
    master: str | None = None
    session: str | None = None
    signatures: tuple[str, ...] = ()
    #: Why a newer version was not loaded.
    trouble: str = ""
    #: The training's folder that it is registered to follow, and what a loaded one serves of it.
    follows: str | None = None
    following: Following | None = None


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
