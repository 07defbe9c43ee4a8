"""Which folders `tenfold tensorboard` hands on, and what it says when it has none."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from tenfold.cli.tensorboard import folders_here, logdir_arguments

if TYPE_CHECKING:
    from pathlib import Path


def test_a_folder_inside_another_is_shown_once(tmp_path: Path) -> None:
    inner, other = tmp_path / "train" / "eval", tmp_path / "other"
    for folder in (inner, other):
        folder.mkdir(parents=True)

    found = folders_here(
        "mnist", {"worker-0": ("here", [str(inner), str(tmp_path / "train")]), "worker-1": ("here", [str(other)])}
    )
    again = folders_here("mnist", {"worker-0": ("here", [str(tmp_path / "train"), str(inner)])})

    assert found == {"worker-0-1": str(tmp_path / "train"), "worker-1": str(other)}
    assert again == {"worker-0": str(tmp_path / "train")}


def test_a_run_without_event_files() -> None:
    with pytest.raises(LookupError, match=r"run mnist has told of no event files\. Programs write them"):
        folders_here("mnist", {})


def test_event_files_on_another_machine(tmp_path: Path) -> None:
    there, none = tmp_path / "mnist", tmp_path / "none"
    told = {"worker-0": ("gpu-7", [str(there)]), "worker-1": (None, [str(none)])}

    with pytest.raises(LookupError) as caught:
        folders_here("mnist", told)

    assert f"not on this machine ({socket.gethostname()})" in str(caught.value)
    assert f"{there} on gpu-7, {none} on an unknown host" in str(caught.value)


def test_one_folder_is_named_plainly_and_several_by_their_tasks() -> None:
    assert logdir_arguments({"worker-0": "/a,b"}) == ["--logdir", "/a,b"]
    assert logdir_arguments({"worker-0": "/a", "worker-1": "/b"}) == ["--logdir_spec", "worker-0:/a,worker-1:/b"]
    with pytest.raises(LookupError, match=r"no folder with a colon or a comma among others: /b:c"):
        logdir_arguments({"worker-0": "/a", "worker-1": "/b:c"})
