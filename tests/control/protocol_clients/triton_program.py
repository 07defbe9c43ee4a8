"""What tritonclient.http makes of a server and its model `m`: `triton_program.py HOST:PORT` prints one JSON object.

Runs in the environment that `make clients-env` builds; test_protocol_clients.py starts it and has the expectations.
"""

import json
import sys

import numpy as np
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

VALUES = {
    "flag": np.array([True, False]),
    "half": np.array([0.5, -2], np.float16),
    "real": np.array([1.5, np.inf], np.float64),
    "byte": np.array([0, 255], np.uint8),
    "long": np.array([-(2**62), 3], np.int64),
    "text": np.array(["zéro".encode(), b"\xff\x00"], np.object_),
}


def tensor(name, value, binary=True):
    found = triton.InferInput(name, list(value.shape), np_to_triton_dtype(value.dtype))
    found.set_data_from_numpy(value, binary_data=binary)
    return found


def refused(call):
    """(status, message) of what the server refuses."""
    try:
        return ["", f"was not refused: {call()!r}"]
    except InferenceServerException as error:
        return [error.status(), error.message()]


def main(url):
    client = triton.InferenceServerClient(url)
    x = np.array([[1, 2]], np.float32)
    said = {
        "live": client.is_server_live(),
        "ready": client.is_server_ready(),
        "model ready": client.is_model_ready("m"),
        "version ready": client.is_model_ready("m", "1"),
        "other version ready": client.is_model_ready("m", "9"),
        "other model ready": client.is_model_ready("none"),
        "server": client.get_server_metadata(),
        "model": client.get_model_metadata("m"),
        "version": client.get_model_metadata("m", "1"),
    }

    for binary in (True, False):
        inputs = [tensor("x", x, binary)]
        outputs = [triton.InferRequestedOutput("y", binary_data=binary)]
        answer = client.infer("m", inputs, "1", outputs, request_id="seven")
        said[f"y, binary {binary}"] = answer.as_numpy("y").tolist()
        said[f"answer, binary {binary}"] = answer.get_response()
    said["all outputs"] = client.infer("m", [tensor("x", x)]).as_numpy("y").tolist()
    waiting = client.async_infer("m", [tensor("x", x)])
    said["later"] = waiting.get_result().as_numpy("y").tolist()

    echoed = {}
    for binary in (True, False):
        # numbers that are no numbers, and bytes that are no text, have no JSON that this client reads
        values = {n: v for n, v in VALUES.items() if binary or n in ("flag", "byte", "long")}
        inputs = [tensor(name, value, binary) for name, value in values.items()]
        outputs = [triton.InferRequestedOutput(f"{name}_again", binary_data=binary) for name in values]
        if not binary:
            inputs += [tensor(name, value) for name, value in VALUES.items() if name not in values]
        answer = client.infer("m", inputs, outputs=outputs, parameters={"signature": "echo"})
        for name, value in values.items():
            again = answer.as_numpy(f"{name}_again")
            same = again.dtype == value.dtype and again.tolist() == value.tolist()
            echoed[f"{name}, binary {binary}"] = same or f"{again!r} of {value!r}"
    said["echoed"] = echoed

    wrong_type = tensor("x", x.astype(np.float64))
    wrong_shape = tensor("x", np.ones([1, 3], np.float32))
    classes = [triton.InferRequestedOutput("y", class_count=2)]
    said["errors"] = {
        "no such model": refused(lambda: client.infer("none", [tensor("x", x)])),
        "no such version": refused(lambda: client.infer("m", [tensor("x", x)], "9")),
        "metadata of no model": refused(lambda: client.get_model_metadata("none")),
        "another input": refused(lambda: client.infer("m", [tensor("q", x)])),
        "another type": refused(lambda: client.infer("m", [wrong_type])),
        "another shape": refused(lambda: client.infer("m", [wrong_shape])),
        "no input": refused(lambda: client.infer("m", [])),
        "no such output": refused(
            lambda: client.infer("m", [tensor("x", x)], outputs=[triton.InferRequestedOutput("q")])
        ),
        "classes": refused(lambda: client.infer("m", [tensor("x", x)], outputs=classes)),
        "compressed": refused(lambda: client.infer("m", [tensor("x", x)], request_compression_algorithm="gzip")),
        "not offered": refused(lambda: client.get_model_config("m")),
    }
    client.close()
    print(json.dumps(said))


if __name__ == "__main__":
    main(sys.argv[1])
