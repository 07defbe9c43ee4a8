"""`tenfold model`: what it prints of a SavedModel, of a folder that has none, and of models that are served."""

from __future__ import annotations

from typing import TYPE_CHECKING

from click.testing import CliRunner

from tenfold.cli.main import cli
from tenfold.cli.served_models import lines_of
from tenfold.control.model_answers import Model
from tenfold_core import saved_model
from tenfold_protos import saved_model_pb2, types_pb2

if TYPE_CHECKING:
    from pathlib import Path


def test_a_model_is_shown(tmp_path: Path) -> None:
    model = saved_model_pb2.SavedModel()
    graph = model.meta_graphs.add()
    graph.meta_info_def.tags.append("serve")
    graph.meta_info_def.tensorflow_git_version = "tenfold"
    graph.graph_def.node.add(name="x", op="Placeholder")
    signature = graph.signature_def["serving_default"]
    signature.method_name = "tensorflow/serving/predict"
    signature.inputs["x"].name, signature.inputs["x"].dtype = "x:0", types_pb2.DT_FLOAT
    signature.inputs["x"].tensor_shape.dim.add(size=-1)
    signature.inputs["x"].tensor_shape.dim.add(size=3)
    signature.outputs["s"].coo_sparse.values_tensor_name = "v:0"
    signature.outputs["s"].dtype = types_pb2.DT_STRING
    signature.outputs["s"].tensor_shape.unknown_rank = True
    key = saved_model.INIT_OP_SIGNATURE_KEY
    graph.signature_def[key].outputs[key].name = "init"
    saved_model.write(str(tmp_path), model)

    done = CliRunner().invoke(cli, ["model", "show", str(tmp_path)])

    assert done.exit_code == 0, done.output
    assert done.output.splitlines() == [
        "graph serve",
        "  1 nodes, 0 functions; written by tenfold",
        "  signature __saved_model_init_op",
        "    output __saved_model_init_op: operation init",
        "  signature serving_default (tensorflow/serving/predict)",
        "    input x: float32 [-1, 3], x:0",
        "    output s: string of any shape, sparse, v:0",
        "  init op init",
    ]


def test_a_folder_without_a_model_says_so(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["model", "show", str(tmp_path)])

    assert done.exit_code == 1
    assert "SavedModel file does not exist" in done.output


def test_a_damaged_model_says_so(tmp_path: Path) -> None:
    model = saved_model_pb2.SavedModel()
    graph = model.meta_graphs.add()
    graph.collection_def[saved_model.ASSETS_KEY].any_list.value.add(value=b"\x0a\xff")
    saved_model.write(str(tmp_path / "assets"), model)
    (tmp_path / "folder" / "saved_model.pb").mkdir(parents=True)

    for name, says in (("assets", "Cannot parse the collection saved_model_assets"), ("folder", "Is a directory")):
        done = CliRunner().invoke(cli, ["model", "show", str(tmp_path / name)])

        assert done.exit_code == 1
        assert says in done.output


def test_served_models_are_told_in_lines() -> None:
    model = {"name": "ctr", "path": "ctr", "cluster": "default", "tags": ["serve"], "state": "unloaded"}
    following = {
        **{"folder": "/t/ctr", "checkpoint": "model.ckpt-4000", "increment": None, "global_step": None},
        **{"saved_at": 990.0, "behind_seconds": 0.0, "rows": 0, "increments": 0, "trouble": "", "trouble_since": None},
    }
    ready = {**model, "state": "ready", "version": "3", "master": "/job:worker/replica:0/task:1", "follows": "ctr"}
    later = {"increment": "inc-4100", "global_step": 4100, "rows": 1_204_811, "behind_seconds": 12.25}
    broken = {"trouble": "The increment /t/i-4200 is missing", "trouble_since": 940.0}

    def told(members: dict[str, object]) -> list[str]:
        return list(lines_of(Model.from_json(members), 1000.0))

    assert told(model) == ["ctr: unloaded"]
    assert told({**model, "follows": "ctr"}) == ["ctr: unloaded", "  follows ctr"]
    first = "ctr: ready, version 3 on /job:worker/replica:0/task:1"
    assert told({**ready, "trouble": "version 4: no signature", "following": following}) == [
        first,
        "  not loaded: version 4: no signature",
        "  follows /t/ctr",
        "  serves model.ckpt-4000, 0 rows, saved 10.0 s ago",
    ]
    assert told({**ready, "following": {**following, **later, **broken}}) == [
        first,
        "  follows /t/ctr",
        "  serves inc-4100 of model.ckpt-4000, global step 4,100, 1,204,811 rows, saved 10.0 s ago",
        "  12.2 s behind",
        "  for 60 s nothing newer could be read: The increment /t/i-4200 is missing",
    ]
