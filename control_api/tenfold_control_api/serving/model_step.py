"""A step of a model: an Open Inference request by the names of a signature, as a step of the model's session.

Called by service.py; steps.py has the wire's forms, JSON and binary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_control_api.problems import ApiError
from tenfold_control_api.steps import Answer, InferenceStep, answer
from tenfold_protos import config_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tenfold.session.master_interface import MasterInterface
    from tenfold_control_api.serving.saved import Endpoint, Signature

DEFAULT_SIGNATURE = "serving_default"
#: Members that KServe's clients send, of what the path names.
_NAMES = frozenset({"model_name", "model_version"})
#: Where a request names its signature.
_SIGNATURE = ("parameters", "signature")


def signature_of(signatures: Mapping[str, Signature], name: str | None, model: str) -> Signature:
    """The one of that name; without one `serving_default`, or the only one. Raises `no-such-signature`."""
    if name is None and DEFAULT_SIGNATURE not in signatures and len(signatures) == 1:
        return next(iter(signatures.values()))
    wanted = name or DEFAULT_SIGNATURE
    if wanted not in signatures:
        raise ApiError(
            "no-such-signature",
            f"model {model!r} has no signature {wanted!r}; it has {', '.join(signatures) or 'none'}. Name one in "
            'parameters, as {"signature": "…"}.',
            at=_SIGNATURE,
        )
    return signatures[wanted]


def parse(
    body: bytes, header_length: str | None, model: str, version: str | None
) -> tuple[InferenceStep, str | None, str | None]:
    """(request, name of the signature, version that it asks for), of a request to a path that names `model`, and
    perhaps a version. Raises ApiError saying which member is wrong."""
    step = InferenceStep.parse(body, header_length, _NAMES)
    for member, named in (("model_name", model), ("model_version", version)):
        told = step.more.get(member)
        if told is not None and (not isinstance(told, str) or named not in (None, told)):
            text = f"{member!r} is {told!r}; the path names {named!r}." if named else f"{member!r} must be a text."
            raise ApiError("invalid-step", text, at=(member,))
    if step.targets or step.options.ByteSize():
        text = "a model takes no 'targets' and no 'options': those are a session's."
        raise ApiError("invalid-step", text, at=("targets" if step.targets else "options",))
    signature = step.parameters.get("signature")
    if signature is not None and not isinstance(signature, str):
        text = f"the parameter 'signature' is {signature!r}; it must be a text."
        raise ApiError("invalid-step", text, at=_SIGNATURE)
    return step, signature, step.more.get("model_version", version)


def run(
    step: InferenceStep,
    signature: Signature,
    model: str,
    version: str,
    told: Mapping[str, Any],
    master: MasterInterface,
    handle: str,
    left: float,
    acting: Callable[[], None],
) -> Answer:
    """Decodes, runs, encodes. Blocks. `told` are parameters of the answer. Raises ApiError for tensors that are not the
    signature's, OpError for the step's own error."""
    feeds = {}
    for i, (name, array) in enumerate(step.feeds().items()):
        endpoint = _endpoint(signature.inputs, name, "input", signature, i)
        if array.dtype != endpoint.dtype:
            raise ApiError(
                "invalid-tensor",
                f"input {name!r} of signature {signature.name!r} has the datatype {endpoint.datatype}, not the one "
                "that was sent.",
                at=("inputs", i, "datatype"),
            )
        feeds[endpoint.tensor] = array
    asked = list(step.outputs) or [(name, step.all_binary) for name in signature.outputs]
    fetches = {
        name: _endpoint(signature.outputs, name, "output", signature, i).tensor for i, (name, _) in enumerate(asked)
    }
    tensors = list(dict.fromkeys(fetches.values()))
    acting()
    values, _ = master.run_step(handle, feeds, tensors, [], config_pb2.RunOptions(), left)
    by_tensor = dict(zip(tensors, values, strict=True))
    head: dict[str, Any] = {"model_name": model, "model_version": version}
    head |= ({} if step.id is None else {"id": step.id}) | ({"parameters": told} if told else {})
    return answer(((name, by_tensor[fetches[name]], binary) for name, binary in asked), head)


def _endpoint(endpoints: Mapping[str, Endpoint], name: str, what: str, signature: Signature, index: int) -> Endpoint:
    """What the signature has under the name that the request gives its `index`-th input or output."""
    if name not in endpoints:
        listed = ", ".join(f"{each} ({end.datatype} {_shown(end.shape)})" for each, end in endpoints.items())
        raise ApiError(
            "invalid-tensor",
            f"signature {signature.name!r} has no {what} {name!r}; it has {listed or 'none'}.",
            at=(f"{what}s", index),
        )
    return endpoints[name]


def _shown(shape: tuple[int, ...] | None) -> str:
    return "of any shape" if shape is None else str(list(shape))
