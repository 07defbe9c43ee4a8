"""Models: which the service serves, registering them, asking one. Of both clients; calls.py says how.

Tensors travel in the Open Inference Protocol's binary form, as steps of remote_session.py do.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tenfold.control.calls import call
from tenfold.control.model_answers import Model, ModelMetadata
from tenfold.control.remote_session import BINARY, HEADER_LENGTH, array_of, own
from tenfold.control.request import Request, each, one, path_of
from tenfold_core import open_inference

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import httpx
    import numpy as np


class ModelCalls:
    """The part of the clients that has to do with models."""

    @call
    def models(self, *, cluster: str | None = None, state: str | None = None) -> Request[list[Model]]:
        """Every model; those of one cluster, or that are `ready` or `unloaded`. Raises FailedPreconditionError if the
        service serves none."""
        return Request("GET", path_of("models"), each(Model, "models"), params={"cluster": cluster, "state": state})

    @call
    def model(self, name: str) -> Request[Model]:
        """The model as it is now. Raises NotFoundError."""
        return Request("GET", path_of("models", name), one(Model))

    @call
    def register_model(
        self,
        name: str,
        *,
        path: str | None = None,
        cluster: str = "default",
        job: str | None = None,
        index: int | None = None,
        tags: Sequence[str] = ("serve",),
        follows: str | None = None,
        timeout: float = 120.0,
    ) -> Request[Model]:
        """Registers a model in the service's models folder, and loads it; repeating the call reloads it.

        `path` is within that folder (default: the name), `job` and `index` name the task that runs it. With `follows`,
        a training's folder of checkpoints within the service's folder of trainings, the model has the values that the
        training has saved, and takes in its increments as they appear. Blocks until the model is loaded. Raises
        FailedPreconditionError for a folder without a model or without a checkpoint, UnavailableError without a task.
        """
        asked = {"path": path, "cluster": cluster, "job": job, "index": index, "tags": list(tags), "follows": follows}
        return Request(
            "PUT",
            path_of("models", name),
            one(Model),
            json={key: value for key, value in asked.items() if value is not None},
            timeout=timeout,
        )

    @call
    def unload_model(self, name: str) -> Request[Model]:
        """Forgets the registration, and closes the session once its requests have ended. Raises NotFoundError."""
        return Request("DELETE", path_of("models", name), one(Model))

    @call
    def model_metadata(self, name: str, signature: str | None = None) -> Request[ModelMetadata]:
        """The tensors of a signature. Loads the model. Raises NotFoundError, InvalidArgumentError for the signature."""
        return Request("GET", _path(name), one(ModelMetadata), params={"signature": signature}, wait=60.0)

    @call
    def infer(
        self,
        model: str,
        inputs: Mapping[str, Any],
        outputs: Sequence[str] | None = None,
        *,
        signature: str | None = None,
        timeout: float = 600.0,
    ) -> Request[dict[str, np.ndarray[Any, Any]]]:
        """Asks a model: name of an output → array, of `outputs` or of all.

        `inputs` are by the names of the signature (default: "serving_default"); an array has to have the type that the
        model takes, a string is BYTES. Loads the model if it is not loaded. Raises NotFoundError without the model,
        InvalidArgumentError for what is not the signature's, and the error of the step.
        """
        heads, parts = open_inference.write_tensors(
            (name, array_of(None, value), True) for name, value in inputs.items()
        )
        parameters: dict[str, Any] = {"binary_data_output": True}
        if signature is not None:
            parameters["signature"] = signature
        request = {"inputs": heads, "parameters": parameters}
        if outputs is not None:
            request["outputs"] = [{"name": name} for name in outputs]
        text = json.dumps(request, separators=(",", ":")).encode()

        def read(response: httpx.Response) -> dict[str, Any]:
            answer, binary = open_inference.split_body(response.content, response.headers.get(HEADER_LENGTH))
            values = open_inference.read_tensors(answer["outputs"], binary, "outputs")
            return {name: own(value) for name, value in values.items()}

        return Request(
            "POST",
            f"{_path(model)}/infer",
            read,
            content=b"".join([text, *parts]),
            headers={"Content-Type": BINARY, HEADER_LENGTH: str(len(text))},
            wait=timeout,
            repeatable=True,
        )


def _path(model: str) -> str:
    return f"/v2/models/{quote(model, safe='')}"
