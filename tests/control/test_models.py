"""Models over REST: registered, asked, loaded again, replaced by a newer version, unloaded; on scripted masters.

Then one on a real task, through the SDK.
"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold.control import ControlClient, TaskRegistration
from tenfold_control_api.app import create_app
from tenfold_control_api.masters import link_masters
from tenfold_control_api.service_settings import Settings
from tenfold_core import errors, saved_model
from tenfold_core.access.credentials import AccessSettings
from tenfold_protos import saved_model_pb2, types_pb2

from .conftest import PATIENCE, Gate, Masters, declare, double, register, running_app

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    import httpx

    from .conftest import Service


def write_model(folder: Path, *, tags: tuple[str, ...] = ("serve",), restored: bool = True) -> None:
    """A SavedModel whose graph has y (FP32) of x (FP32) and of a text; a second signature gives another name."""
    model = saved_model_pb2.SavedModel(saved_model_schema_version=1)
    graph = model.meta_graphs.add()
    graph.meta_info_def.tags.extend(tags)
    graph.graph_def.node.add(name="x", op="Placeholder", device="/job:trainer/task:7")
    if restored:
        graph.saver_def.filename_tensor_name = "save/Const:0"
        graph.saver_def.restore_op_name = "save/restore_all"
        (folder / "variables").mkdir(parents=True)
        (folder / "variables" / "variables.index").touch()
    graph.collection_def[saved_model.MAIN_OP_KEY].node_list.value.append("init")
    asset = graph.asset_file_def.add(filename="words")
    asset.tensor_info.name = "path:0"
    for name, output in (("serving_default", "y"), ("second", "z")):
        signature = graph.signature_def[name]
        for key, tensor, dtype in (("x", "x:0", types_pb2.DT_FLOAT), ("word", "word:0", types_pb2.DT_STRING)):
            signature.inputs[key].name, signature.inputs[key].dtype = tensor, dtype
            signature.inputs[key].tensor_shape.dim.add(size=-1)
        signature.outputs[output].name, signature.outputs[output].dtype = "result:0", types_pb2.DT_FLOAT
        signature.outputs[output].tensor_shape.unknown_rank = True
    saved_model.write(str(folder), model)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    return folder


@pytest.fixture
async def api(sqlite: str, masters: Masters, root: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A service with a folder of models and a task that runs them."""
    async with running_app(create_app(Settings(database=sqlite, models_folder=str(root)), masters)) as client:
        await declare(client, worker=2)
        await register(client, "worker", 0)
        yield client


X = {"name": "x", "datatype": "FP32", "shape": [2], "data": [1.0, 2.0]}


async def infer(api: httpx.AsyncClient, model: str, **more: Any) -> httpx.Response:
    return await api.post(f"/v2/models/{model}/infer", json={"inputs": [X], **more})


async def test_a_folder_is_a_model_that_is_loaded_when_it_is_asked(
    api: httpx.AsyncClient, masters: Masters, root: Path
) -> None:
    write_model(root / "m")
    assert (await api.get("/v1/models")).json()["models"][0]["state"] == "unloaded"

    answer = await infer(api, "m", id="7")

    assert answer.status_code == 200, answer.text
    assert answer.json() == {
        "model_name": "m",
        "model_version": "1",
        "id": "7",
        "outputs": [{"name": "y", "datatype": "FP32", "shape": [2], "data": [2.0, 4.0]}],
    }
    master = masters.by_target["grpc://127.0.0.1:2222"]
    assert master.steps == [
        (("save/Const:0",), (), ("save/restore_all",)),
        (("path:0",), (), ("init",)),
        (("x:0",), ("result:0",), ()),
    ]
    assert master.configs[0].isolate_session_state
    (graph,) = master.sessions.values()
    assert not graph.node[0].device
    write_model(root / "later")
    for wanted, names in (
        ({"state": "ready"}, ["m"]),
        ({"cluster": "default"}, ["later", "m"]),
        ({"cluster": "q"}, []),
    ):
        listed = (await api.get("/v1/models", params=wanted)).json()["models"]
        assert [each["name"] for each in listed] == names
    view = (await api.get("/v1/models/m")).json()
    assert (view["state"], view["version"], view["master"]) == ("ready", "1", "/job:worker/replica:0/task:0")
    metadata = (await api.get("/v2/models/m", params={"signature": "second"})).json()
    assert metadata["outputs"] == [{"name": "z", "datatype": "FP32", "shape": [-1]}]
    assert {tensor["name"]: tensor["datatype"] for tensor in metadata["inputs"]} == {"x": "FP32", "word": "BYTES"}
    assert metadata["parameters"] == {"signature": "second", "signatures": ["second", "serving_default"]}


async def test_the_protocols_own_paths(api: httpx.AsyncClient, root: Path) -> None:
    write_model(root / "m")

    assert (await api.get("/v2")).json()["name"] == "tenfold"
    assert (await api.get("/v2/health/live")).json() == {"live": True}
    assert (await api.get("/v2/health/ready")).json() == {"ready": True}
    assert (await api.get("/v2/models/m/ready")).json() == {"name": "m", "ready": True}


async def test_a_version_is_asked_for_by_its_path(api: httpx.AsyncClient, root: Path) -> None:
    write_model(root / "m" / "7")

    metadata = (await api.get("/v2/models/m")).json()
    for path in ("", "/ready"):
        there = await api.get(f"/v2/models/m/versions/7{path}")
        assert (there.status_code, there.json()["name"]) == (200, "m"), there.text
        absent = await api.get(f"/v2/models/m/versions/6{path}")
        assert (absent.status_code, absent.json()["type"]) == (404, "urn:tenfold:problem:no-such-version")
    answer = await api.post("/v2/models/m/versions/7/infer", json={"inputs": [X]})
    other = await api.post("/v2/models/m/versions/6/infer", json={"inputs": [X]})

    assert metadata["versions"] == ["7"]
    assert (answer.status_code, answer.json()["model_version"]) == (200, "7")
    assert other.status_code == 404
    assert "served in version 7" in other.json()["error"]


async def test_a_client_of_the_protocol_that_names_no_content_type(api: httpx.AsyncClient, root: Path) -> None:
    """As tritonclient.http sends its requests, and reads errors from the member `error`."""
    write_model(root / "m")
    head = json.dumps(
        {
            "inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}}],
            "parameters": {"binary_data_output": True},
        }
    ).encode()
    text = json.dumps({"inputs": [X]}).encode()

    binary = await api.post(
        "/v2/models/m/infer",
        content=head + np.array([1.5, 2], np.float32).tobytes(),
        headers={"Inference-Header-Content-Length": str(len(head))},
    )
    plain = await api.post("/v2/models/m/infer", content=text)
    typed = await api.post("/v2/models/m/infer", content=text, headers={"Content-Type": "text/plain"})
    absent = await api.get("/v2/models/q")

    length = int(binary.headers["Inference-Header-Content-Length"])
    assert np.frombuffer(binary.content[length:], np.float32).tolist() == [3.0, 4.0]
    assert plain.json()["outputs"][0]["data"] == [2.0, 4.0]
    assert typed.status_code == 415
    assert absent.json()["error"] == absent.json()["detail"]
    assert "error" not in (await api.get("/v1/models/q")).json()


async def test_signatures_outputs_and_the_binary_form(api: httpx.AsyncClient, root: Path) -> None:
    write_model(root / "m")
    head = json.dumps(
        {
            "inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}}],
            "outputs": [{"name": "z", "parameters": {"binary_data": True}}],
            "parameters": {"signature": "second"},
        }
    ).encode()

    answer = await api.post(
        "/v2/models/m/infer",
        content=head + np.array([1.5, 2], np.float32).tobytes(),
        headers={"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(len(head))},
    )

    assert answer.status_code == 200, answer.text
    length = int(answer.headers["Inference-Header-Content-Length"])
    assert np.frombuffer(answer.content[length:], np.float32).tolist() == [3.0, 4.0]


@pytest.mark.parametrize(
    ("body", "kind", "says"),
    [
        ({"inputs": [{**X, "name": "q"}]}, "invalid-tensor#/inputs/0", "has no input 'q'; it has word"),
        ({"inputs": [{**X, "datatype": "FP64"}]}, "invalid-tensor#/inputs/0/datatype", "datatype FP32"),
        ({"outputs": ["y", "q"]}, "invalid-tensor#/outputs/1", "no output 'q'"),
        ({"parameters": {"signature": "q"}}, "no-such-signature#/parameters/signature", "it has second, serving"),
        ({"parameters": {"signature": 3}}, "invalid-step#/parameters/signature", "must be a text"),
        ({"targets": ["t"]}, "invalid-step#/targets", "takes no 'targets'"),
        ({"model_name": "q"}, "invalid-step#/model_name", "'model_name' is 'q'; the path names 'm'"),
        ({"model_version": 3}, "invalid-step#/model_version", "must be a text"),
        ({"model_version": "3"}, "no-such-version", "served in version 1"),
        (
            {"outputs": [{"name": "y", "parameters": {"shared_memory_region": "r"}}]},
            "invalid-step#/outputs/0/parameters/shared_memory_region",
            "is not offered",
        ),
    ],
)
async def test_what_does_not_fit_the_signature_says_so(
    api: httpx.AsyncClient, root: Path, body: dict[str, Any], kind: str, says: str
) -> None:
    write_model(root / "m")

    problem = await api.post("/v2/models/m/infer", json=body)

    pointers = "".join(each["pointer"] for each in problem.json().get("errors", []))
    assert problem.headers["content-type"] == "application/json"
    assert problem.json()["error"] == problem.json()["detail"]
    assert problem.json()["type"] + pointers == f"urn:tenfold:problem:{kind}", problem.text
    assert says in problem.json()["detail"]


async def test_models_that_are_damaged_say_so(api: httpx.AsyncClient, root: Path) -> None:
    """… and the service does not fail: assets that are none, a type that there is not, a folder for the file."""
    for name in ("assets", "type"):
        write_model(root / name)
        model = saved_model.read(root / name)
        (graph,) = model.meta_graphs
        if name == "assets":
            del graph.asset_file_def[:]
            graph.collection_def[saved_model.ASSETS_KEY].any_list.value.add(value=b"\x0a\xff")
            graph.collection_def[saved_model.LEGACY_INIT_OP_KEY].node_list.value.append("init")
        else:
            data = graph.signature_def["serving_default"]
            next(iter(data.inputs.values())).dtype = 37  # type: ignore[assignment]
        saved_model.write(str(root / name), model)
    (root / "folder" / "saved_model.pb").mkdir(parents=True)

    for name, says in (("assets", "saved_model_assets"), ("type", "37"), ("folder", "Is a directory")):
        problem = (await infer(api, name)).json()

        assert problem["type"] == "urn:tenfold:problem:invalid-model", problem
        assert says in problem["detail"], problem


async def test_models_that_are_not_there_or_cannot_be_served(api: httpx.AsyncClient, root: Path) -> None:
    (root / "broken").mkdir()
    (root / "broken" / "saved_model.pb").write_bytes(b"no message")
    write_model(root / "tagged", tags=("serve", "gpu"))

    async def kind(answer: httpx.Response) -> str:
        return str(answer.json()["type"]).rpartition(":")[2]

    assert await kind(await infer(api, "absent")) == "no-such-model"
    assert await kind(await infer(api, "broken")) == "invalid-model"
    assert await kind(await infer(api, "tagged")) == "invalid-model"
    assert await kind(await api.put("/v1/models/x", json={"path": "../.."})) == "invalid-model"
    assert await kind(await api.put("/v1/models/x", json={"path": "nothing"})) == "invalid-model"
    assert await kind(await api.delete("/v1/models/absent")) == "no-such-model"
    assert (await api.put("/v1/models/x", json={"path": "tagged", "tags": ["gpu", "serve"]})).status_code == 200
    assert (await infer(api, "x")).status_code == 200


async def test_a_registration_outlives_the_service_and_delete_forgets_it(
    sqlite: str, masters: Masters, root: Path
) -> None:
    write_model(root / "files" / "3")
    settings = Settings(database=sqlite, models_folder=str(root))
    async with running_app(create_app(settings, masters)) as api:
        await declare(api, worker=1)
        await register(api, "worker", 0)
        view = (await api.put("/v1/models/m", json={"path": "files"})).json()
        assert (view["version"], view["state"]) == ("3", "ready")
    master = masters.by_target["grpc://127.0.0.1:2222"]
    assert master.sessions == {}, "its session ends with the service"

    async with running_app(create_app(settings, masters)) as api:
        await register(api, "worker", 0)
        assert (await infer(api, "m")).json()["model_version"] == "3"
        assert (await api.delete("/v1/models/m")).json()["state"] == "unloaded"
        assert (await infer(api, "m")).status_code == 404
    assert master.sessions == {}


async def test_a_newer_version_takes_over_and_a_bad_one_does_not(sqlite: str, masters: Masters, root: Path) -> None:
    write_model(root / "m" / "1")
    now = [100.0]
    settings = Settings(database=sqlite, models_folder=str(root))
    async with running_app(create_app(settings, masters, clock=lambda: now[0])) as api:
        await declare(api, worker=1)
        await register(api, "worker", 0)
        assert (await infer(api, "m")).json()["model_version"] == "1"
        write_model(root / "m" / "10")
        assert (await infer(api, "m")).json()["model_version"] == "1", "it is not looked for with every request"
        now[0] += 3
        assert (await infer(api, "m")).json()["model_version"] == "10"
        (root / "m" / "11").mkdir()
        (root / "m" / "11" / "saved_model.pb").write_bytes(b"no message")
        now[0] += 3
        assert (await infer(api, "m")).json()["model_version"] == "10"
        assert "version 11" in (await api.get("/v1/models/m")).json()["trouble"]
        assert len(masters.by_target["grpc://127.0.0.1:2222"].sessions) == 1


async def test_others_go_on_while_a_newer_version_is_loaded(sqlite: str, masters: Masters, root: Path) -> None:
    import asyncio

    write_model(root / "m" / "1")
    now = [100.0]
    settings = Settings(database=sqlite, models_folder=str(root))
    async with running_app(create_app(settings, masters, clock=lambda: now[0])) as api:
        await declare(api, worker=1)
        await register(api, "worker", 0)
        assert (await infer(api, "m")).json()["model_version"] == "1"
        master, gate = masters.by_target["grpc://127.0.0.1:2222"], Gate()
        master.step = lambda feeds, fetches, targets: (gate if targets else double)(feeds, fetches, targets)
        write_model(root / "m" / "2")
        now[0] += 3
        finds_it = asyncio.create_task(infer(api, "m"))
        await gate.wait_entered()
        now[0] += 3

        others = await asyncio.wait_for(infer(api, "m"), PATIENCE)

        assert others.json()["model_version"] == "1"
        gate.leave.set()
        assert (await finds_it).json()["model_version"] == "2"


async def test_a_lost_task_is_replaced(api: httpx.AsyncClient, masters: Masters, root: Path) -> None:
    write_model(root / "m")
    assert (await infer(api, "m")).status_code == 200
    masters.by_target["grpc://127.0.0.1:2222"].sessions.clear()  # restarted, unknown to the service
    assert (await infer(api, "m")).status_code == 200
    await register(api, "worker", 1, "127.0.0.1:2223", "b")
    await api.delete("/v1/clusters/default/tasks/worker/0")

    assert (await infer(api, "m")).status_code == 200

    assert (await api.get("/v1/models/m")).json()["master"] == "/job:worker/replica:0/task:1"


async def test_a_request_ends_on_the_model_that_it_began_on(
    api: httpx.AsyncClient, masters: Masters, root: Path
) -> None:
    import asyncio

    write_model(root / "m")
    assert (await infer(api, "m")).status_code == 200
    master = masters.by_target["grpc://127.0.0.1:2222"]
    master.step = gate = Gate()

    running = asyncio.create_task(infer(api, "m"))
    await gate.wait_entered()
    await api.delete("/v1/models/m")
    assert len(master.sessions) == 1
    gate.leave.set()

    assert (await running).status_code == 200


async def test_without_a_folder_there_are_no_models(sqlite: str, masters: Masters) -> None:
    async with running_app(create_app(Settings(database=sqlite), masters)) as api:
        assert (await api.get("/v1/models")).json()["code"] == "FAILED_PRECONDITION"
        assert "--models" in (await infer(api, "m")).json()["detail"]


def add_node(root: Path, name: str, op: str) -> None:
    """A copy of model m whose graph has one more node, which no signature needs."""
    folder = root / name / "1"
    shutil.copytree(root / "m" / "1", folder)
    model = saved_model.read(folder)
    model.meta_graphs[0].graph_def.node.add(name="odd", op=op, input=["x"])
    saved_model.write(str(folder), model)


def test_a_model_on_a_real_task(start_service: Callable[..., Service], root: Path) -> None:
    """Written by the client, restored on a task, asked by the SDK, of a name that a program's variable has, too."""
    import tenfold as tf
    from tenfold_services.background import BackgroundServer
    from tenfold_services.server import TaskServer

    words = root.parent / "words.txt"
    words.write_text("zero\none\n")
    with tf.Graph().as_default(), tf.Session() as session:
        x, word = tf.placeholder(tf.float32, [None, 2], name="x"), tf.placeholder(tf.string, [None])
        weight = tf.get_variable("weight", initializer=[[1.0], [2.0]], use_resource=True)
        ids = tf.contrib.lookup.index_table_from_file(str(words)).lookup(word)
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(
            session,
            str(root / "m" / "1"),
            {"x": x, "word": word},
            {"y": tf.matmul(x, weight), "id": ids},
            legacy_init_op=tf.tables_initializer(),
        )
    words.unlink()
    service = start_service(master_factory=link_masters(AccessSettings()), models_folder=str(root))
    server = BackgroundServer(TaskServer({}, "worker", 0, bind="127.0.0.1:0"))
    server.start()
    address = f"127.0.0.1:{server.port}"
    try:
        with ControlClient(service.url) as control:
            control.declare_cluster("default", {"worker": 1})

            def follow(spec: object) -> None:
                server.update_cluster({"worker": {0: address}})

            with TaskRegistration(control, "default", "worker", 0, address, on_spec=follow):
                inputs = {"x": np.array([[1, 2]], np.float32), "word": ["one"]}
                found = control.infer("m", inputs)

                assert (found["y"].tolist(), found["id"].tolist()) == ([[5.0]], [1])
                assert control.infer("m", inputs, ["id"])["id"].tolist() == [1]
                assert {tensor.name for tensor in control.model_metadata("m").inputs} == {"x", "word"}
                assert control.register_model("again", path="m").master == "/job:worker/replica:0/task:0"
                assert [model.name for model in control.models()] == ["again", "m"]
                assert control.unload_model("again").state == "unloaded"
                assert control.model("m").signatures == ("serving_default",)
                with pytest.raises(errors.InvalidArgumentError, match="has no input 'z'"):
                    control.infer("m", {"z": [1]})
                add_node(root, "odd", "EncodeProto")
                add_node(root, "wrong", "NoSuchOperation")
                # An operation that no signature needs is none's business; one that nobody has is the model's fault.
                assert control.infer("odd", inputs)["y"].tolist() == [[5.0]]
                assert {tensor.name for tensor in control.model_metadata("odd").outputs} == {"y", "id"}
                with pytest.raises(errors.FailedPreconditionError, match=r"model 'wrong' .*'NoSuchOperation'"):
                    control.model_metadata("wrong")
    finally:
        server.stop(1.0)
