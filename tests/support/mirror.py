"""Which module a test file is about: unit tests stand where their modules stand.

    services/tenfold_services/worker/loaded_program.py  tests/unit/services/worker/test_loaded_program.py
    core/tenfold_core/checkpoint/ (a whole package)   tests/unit/core/test_checkpoint.py
    kernels/tenfold_kernels/cpu/math_reduction.py     tests/kernels/test_math_reduction.py, tests/kernels/test_math.py
    client/tenfold/gradients/math_reduction.py        tests/kernels/test_math_gradients.py

TOPICS names the few files that are about several modules of a folder. tests/unit/house/test_mirror.py keeps all this
true; tests/which.py answers "which tests cover this module" with it.
"""

from __future__ import annotations

import functools
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Folder → the import package in it.
PACKAGES = {
    "protos": "tenfold_protos",
    "core": "tenfold_core",
    "link": "tenfold_link",
    "client": "tenfold",
    "kernels": "tenfold_kernels",
    "compiler": "tenfold_compiler",
    "services": "tenfold_services",
    "control_api": "tenfold_control_api",
}
#: Tests of several modules of one folder: test file below tests/unit → patterns of the modules below the root.
TOPICS: dict[str, tuple[str, ...]] = {
    "client/gradients/test_embedding_control_flow.py": (
        "client/tenfold/gradients/embedding.py",
        "client/tenfold/gradients/loop_parts.py",
        "client/tenfold/gradients/loop_state.py",
    ),
    "client/gradients/test_rows.py": ("client/tenfold/gradients/*.py",),
    "client/graph/test_absent_ops.py": ("client/tenfold/graph/importer.py",),
    "client/graph/test_graph_versions.py": ("client/tenfold/graph/importer.py", "core/tenfold_core/graph_versions.py"),
    "client/ops/test_embedding_runs.py": (
        "client/tenfold/ops/embedding_variables.py",
        "compiler/tenfold_compiler/graph/lookups_together.py",
        "compiler/tenfold_compiler/node_kernels.py",
    ),
    "client/ops/test_made_operations.py": (
        "client/tenfold/ops/array.py",
        "client/tenfold/ops/math.py",
        "client/tenfold/ops/slicing.py",
    ),
    "client/train/test_recovery_by_increments.py": (
        "client/tenfold/train/incremental_saver.py",
        "client/tenfold/train/session_manager.py",
        "client/tenfold/train/supervisor.py",
    ),
    "client/ops/test_scatter_resource.py": (
        "client/tenfold/ops/state_ops.py",
        "client/tenfold/ops/variables.py",
        "client/tenfold/ops/array_batches.py",
    ),
    "client/ops/test_sparse_strings.py": (
        "client/tenfold/ops/sparse.py",
        "client/tenfold/train/batching.py",
        "kernels/tenfold_kernels/cpu/sparse_serialize.py",
    ),
    "core/opdefs/test_inferred_shapes.py": (
        "core/tenfold_core/opdefs/shape_fns*.py",
        "core/tenfold_core/opdefs/input_ranks.py",
        "core/tenfold_core/shape_inference.py",
    ),
    "core/opdefs/test_shapes_of_old_ops.py": ("core/tenfold_core/opdefs/shape_fns*.py",),
    "link/memory/test_arena_states.py": ("link/tenfold_link/memory/arena.py",),
    "link/memory/test_mappings_of_a_file.py": ("link/tenfold_link/memory/private_mappings.py",),
    "link/wire/test_first_frames.py": ("link/tenfold_link/wire/handshake.py",),
    "link/wire/test_frame_reader.py": ("link/tenfold_link/wire/frames.py",),
    "control_api/test_cluster_places.py": ("control_api/tenfold_control_api/cluster.py",),
    "kernels/resources/test_lookup_table_bounds.py": ("kernels/tenfold_kernels/resources/lookup_tables.py",),
    # state machines of Hypothesis, each against a model
    "control_api/test_cluster_machine.py": ("control_api/tenfold_control_api/cluster.py",),
    "control_api/test_leases_machine.py": ("control_api/tenfold_control_api/leases.py",),
    "control_api/test_session_record_machine.py": ("control_api/tenfold_control_api/session_record.py",),
    "services/master/test_caller_cluster_run.py": ("services/tenfold_services/master/caller_cluster_steps.py",),
    "services/master/test_request_ids_machine.py": ("services/tenfold_services/master/request_ids.py",),
    "services/master/test_step_state_machine.py": ("services/tenfold_services/master/step_state.py",),
    "services/worker/test_rendezvous_machine.py": ("services/tenfold_services/worker/rendezvous.py",),
    "services/worker/test_sessions_machine.py": ("services/tenfold_services/worker/sessions.py",),
    "kernels/resources/test_staging_map.py": ("kernels/tenfold_kernels/resources/staging.py",),
    "compiler/graph/test_passes_fuzz.py": (
        "compiler/tenfold_compiler/graph/[!_]*.py",  # every pass, fed with malformed graphs
    ),
    "services/http2/test_connection_fuzz.py": ("services/tenfold_services/http2/connection.py",),
    "services/http2/test_connection_rules.py": ("services/tenfold_services/http2/connection.py",),
    "services/master/test_large_graphs.py": (
        "services/tenfold_services/master/client_graph_cache.py",
        "services/tenfold_services/master/session_graph.py",
        "compiler/tenfold_compiler/part/graph_sizes.py",
        "compiler/tenfold_compiler/part/regions.py",
    ),
    "services/master/test_partial_steps.py": ("services/tenfold_services/master/partial_runs.py",),
    "services/master/test_session_life.py": ("services/tenfold_services/master/master_session.py",),
    "services/master/test_step_ends.py": (
        "services/tenfold_services/master/step_runner.py",
        "services/tenfold_services/master/step_state.py",
    ),
    "services/worker/test_inline_rule.py": (
        "services/tenfold_services/worker/loaded_program.py",
        "services/tenfold_services/worker/run_policy.py",
        "compiler/tenfold_compiler/part/graph_sizes.py",
    ),
    "services/worker/test_loops_over_tasks.py": (
        "services/tenfold_services/worker/dynamic_executor.py",
        "services/tenfold_services/worker/propagator.py",
    ),
}


@functools.cache
def modules() -> dict[str, Path]:
    """Every module by its dotted name, with its path below the root; generated code is left out."""
    found = {}
    for folder, package in PACKAGES.items():
        for path in sorted((ROOT / folder / package).rglob("*.py")):
            if not path.stem.endswith("_pb2"):
                parts = path.relative_to(ROOT / folder).with_suffix("").parts
                found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.relative_to(ROOT)
    return found


@functools.cache
def files_of_tests() -> list[Path]:
    """Every file of tests, as a path below the root."""
    return [path.relative_to(ROOT) for path in sorted((ROOT / "tests").rglob("test_*.py"))]


@functools.cache
def mirrored(test: Path) -> Path | None:
    """The module, or the `__init__.py` of the package, at the place that a unit test's place names."""
    match test.parts[1:-1]:
        case ("unit", folder, *below) if folder in PACKAGES:
            home = Path(folder, PACKAGES[folder], *below)
            stem = test.stem.removeprefix("test_")
            found = [path for path in (home / f"{stem}.py", home / stem / "__init__.py") if (ROOT / path).is_file()]
            return found[0] if found else None
    return None


@functools.cache
def topics_of(module: Path) -> list[Path]:
    """The test files that TOPICS names for a module."""
    return [Path("tests/unit", test) for test, globs in TOPICS.items() if any(module.match(glob) for glob in globs)]


@functools.cache
def family_tests(module: Path) -> list[Path]:
    """The tests of an op's family, by the beginning of the module's name: kernels, and gradients by differences."""
    suffix = {"cpu": "", "resources": "", "tenfold_kernels": "", "gradients": "_gradients"}
    if module.parent.name not in suffix or module.parts[0] not in ("kernels", "client"):
        return []
    words = module.stem.strip("_").split("_")
    stems = ["_".join(words[:size]) for size in range(len(words), 0, -1)]
    files = [Path("tests/kernels", f"test_{stem}{suffix[module.parent.name]}.py") for stem in stems]
    return [path for path in files if (ROOT / path).is_file()][:1]
