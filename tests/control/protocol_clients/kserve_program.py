"""What KServe's client makes of a server and its model `m`: `kserve_program.py URL` prints one JSON object.

Runs in the environment that `make clients-env` builds; test_protocol_clients.py starts it and has the expectations.
"""

import asyncio
import json
import sys

import httpx
import numpy as np
from kserve import InferenceRESTClient, InferInput, InferRequest, RESTConfig
from kserve.protocol.infer_type import RequestedOutput

TYPES = {"float32": "FP32", "float64": "FP64", "int64": "INT64", "bool": "BOOL", "object": "BYTES"}


def tensor(name, value, binary):
    found = InferInput(name, list(value.shape), TYPES[str(value.dtype)])
    found.set_data_from_numpy(value, binary_data=binary)
    return found


async def refused(call):
    """(status, message) of what the server refuses."""
    try:
        return [0, f"was not refused: {await call!r}"]
    except httpx.HTTPStatusError as error:
        return [error.response.status_code, str(error)]


async def main(url):
    x = np.array([[1, 2]], np.float32)
    words = np.array([["one", "zéro"]], np.object_)
    said = {}
    async with InferenceRESTClient(RESTConfig(protocol="v2", retries=0)) as client:

        def infer(inputs, model="m", **more):
            return client.infer(url, InferRequest(model_name=model, infer_inputs=inputs, **more), model_name=model)

        said["live"] = await client.is_server_live(url)
        said["ready"] = await client.is_server_ready(url)
        said["model ready"] = await client.is_model_ready(url, "m")
        said["other model ready"] = await client.is_model_ready(url, "none")
        for binary in (True, False):
            asked = [RequestedOutput("y", parameters={"binary_data": binary})]
            answer = await infer([tensor("x", x, binary)], request_id="seven", request_outputs=asked)
            (output,) = answer.outputs
            said[f"binary {binary}"] = [
                answer.id, answer.model_name, output.name, output.datatype, output.shape,
                output.as_numpy().tolist(),
            ]  # fmt: skip
            told = await infer([tensor("word", words, binary)], parameters={"signature": "words"})
            said[f"words, binary {binary}"] = told.outputs[0].as_numpy().tolist()
        said["as an object"] = (
            await client.infer(
                url, {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}, model_name="m"
            )
        ).outputs[0].data  # fmt: skip
        said["errors"] = {
            "no such model": await refused(infer([tensor("x", x, True)], "none")),
            "another input": await refused(infer([tensor("q", x, True)])),
            "another type": await refused(infer([tensor("x", x.astype(np.float64), False)])),
            "another shape": await refused(infer([tensor("x", np.ones([1, 3], np.float32), True)])),
        }
    print(json.dumps(said))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
