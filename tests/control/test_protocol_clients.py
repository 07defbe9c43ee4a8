"""`/v2` as others' clients speak it: tritonclient and KServe's SDK ask a model of a real task, and read refusals.

They run as programs in an environment of their own, so that they have the libraries that they want: `make clients-env`.
"""

from __future__ import annotations

import json
import os
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from tenfold.control import ControlClient, TaskRegistration
from tenfold_control_api.masters import link_masters
from tenfold_core.access.credentials import AccessSettings
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .conftest import Service

ROOT = Path(__file__).resolve().parents[2]
PYTHON = Path(os.environ.get("TENFOLD_CLIENTS_PYTHON", ROOT / ".venv-clients" / "bin" / "python"))
PROGRAMS = Path(__file__).parent / "protocol_clients"

#: What each client asks wrongly → (status, part or beginning of the message that it reads).
TRITON_ERRORS = {
    "no such model": ("404", "there is no model 'none'"),
    "no such version": ("404", "model 'm' is served in version 1"),
    "metadata of no model": ("404", "there is no model 'none'"),
    "another input": ("400", "has no input 'q'; it has x (FP32 [-1, 2])"),
    "another type": ("400", "input 'x' of signature 'serving_default' has the datatype FP32"),
    "another shape": ("400", "Matrix size-incompatible: In[0]: [1,3], In[1]: [2,1]"),
    "no input": ("400", "You must feed a value for placeholder tensor 'x'"),
    "no such output": ("400", "has no output 'q'; it has y (FP32 [-1, 1])"),
    "classes": ("400", "the parameter 'classification' of an output is not offered"),
    "compressed": ("415", "Content-Encoding 'gzip' is not accepted here"),
    "not offered": ("404", "there is nothing at /v2/models/m/config"),
}
KSERVE_ERRORS = {
    "no such model": (404, "there is no model 'none'"),
    "another input": (400, "signature 'serving_default' has no input 'q'"),
    "another type": (400, "input 'x' of signature 'serving_default' has the datatype FP32"),
    "another shape": (400, "From /job:worker/replica:0/task:0:\nMatrix size-incompatible"),
}

needs_clients = pytest.mark.skipif(
    not PYTHON.exists(), reason="tritonclient and kserve are not installed: `make clients-env` does it"
)


def write_model(folder: Path) -> None:
    """Three signatures: y = x·[[1], [2]] + 1; `echo` gives each of six types back; `words` takes and gives texts."""
    kinds = {
        "flag": tf.bool, "half": tf.float16, "real": tf.float64, "byte": tf.uint8, "long": tf.int64, "text": tf.string,
    }  # fmt: skip
    sign = tf.saved_model.signature_def_utils.predict_signature_def
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        weight = tf.get_variable("weight", initializer=[[1.0], [2.0]], use_resource=True)
        given = {name: tf.placeholder(kind, [None], name=name) for name, kind in kinds.items()}
        again = {f"{name}_again": tf.identity(each) for name, each in given.items()}
        word = tf.placeholder(tf.string, [None, 2], name="word")
        session.run(tf.global_variables_initializer())
        builder = tf.saved_model.builder.SavedModelBuilder(str(folder))
        builder.add_meta_graph_and_variables(
            session,
            ["serve"],
            {
                "serving_default": sign({"x": x}, {"y": tf.matmul(x, weight) + 1.0}),
                "echo": sign(given, again),
                "words": sign({"word": word}, {"same": tf.identity(word)}),
            },
        )
        builder.save()


@pytest.fixture
def serving(start_service: Callable[..., Service], tmp_path: Path) -> Iterator[str]:
    """host:port of a service whose model `m` runs on a real task."""
    write_model(tmp_path / "models" / "m" / "1")
    service = start_service(master_factory=link_masters(AccessSettings()), models_folder=str(tmp_path / "models"))
    server = BackgroundServer(TaskServer({}, "worker", 0, bind="127.0.0.1:0"))
    server.start()
    address = f"127.0.0.1:{server.port}"
    try:
        with ControlClient(service.url) as control:
            control.declare_cluster("default", {"worker": 1})

            def follow(spec: object) -> None:
                server.update_cluster({"worker": {0: address}})

            with TaskRegistration(control, "default", "worker", 0, address, on_spec=follow):
                yield service.url.removeprefix("http://")
    finally:
        server.stop()


def said_by(program: str, argument: str) -> dict[str, Any]:
    """What the client found."""
    done = subprocess.run(
        [PYTHON, PROGRAMS / program, argument], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@needs_clients
def test_tritonclient(serving: str) -> None:
    said = said_by("triton_program.py", serving)

    probes = ("live", "ready", "model ready", "version ready", "other version ready", "other model ready")
    assert [said[probe] for probe in probes] == [True, True, True, True, False, False]
    assert said["server"] == {
        "name": "tenfold", "version": version("tenfold"), "extensions": ["binary_tensor_data"]
    }  # fmt: skip
    assert said["model"] == said["version"]
    assert (said["model"]["name"], said["model"]["versions"]) == ("m", ["1"])
    assert said["model"]["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 2]}]
    assert said["model"]["outputs"] == [{"name": "y", "datatype": "FP32", "shape": [-1, 1]}]
    head = {"name": "y", "datatype": "FP32", "shape": [1, 1]}
    named = {"model_name": "m", "model_version": "1", "id": "seven"}
    assert said["answer, binary True"] == {"outputs": [{**head, "parameters": {"binary_data_size": 4}}], **named}
    assert said["answer, binary False"] == {"outputs": [{**head, "data": [6.0]}], **named}
    for value in ("y, binary True", "y, binary False", "all outputs", "later"):
        assert said[value] == [[6.0]], value
    assert len(said["echoed"]) == 9
    assert {case: same for case, same in said["echoed"].items() if same is not True} == {}
    for case, (status, text) in TRITON_ERRORS.items():
        told = said["errors"].pop(case)
        assert (told[0], text in told[1]) == (status, True), (case, told)
    assert said["errors"] == {}


@needs_clients
def test_kserve(serving: str) -> None:
    said = said_by("kserve_program.py", f"http://{serving}")

    assert [said[probe] for probe in ("live", "ready", "model ready", "other model ready")] == [True, True, True, False]
    for form in ("binary True", "binary False"):
        assert said[form] == ["seven", "m", "y", "FP32", [1, 1], [[6.0]]]
        assert said[f"words, {form}"] == [["one", "zéro"]]
    assert said["as an object"] == [6.0]
    for case, (status, text) in KSERVE_ERRORS.items():
        told = said["errors"].pop(case)
        assert (told[0], told[1].startswith(text)) == (status, True), (case, told)
    assert said["errors"] == {}
