"""The folder of models: which there are, which versions, and the file that keeps what was registered.

A model is a folder in it, with a SavedModel or with numbered folders that have one each; what PUT says of it (another
folder, a cluster, tags) is kept in models.json there, so that services which share the folder serve the same models.
Blocking; service.py calls it in threads.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from pydantic import ValidationError

from tenfold_control_api.problems import ApiError
from tenfold_control_api.serving.shapes import ModelRegistration
from tenfold_core import errors, saved_model
from tenfold_core.checkpoint.files import AtomicFile
from tenfold_core.file_names import file_path, is_url, is_within, join

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_REGISTRATIONS = "models.json"
#: The version of a model whose folder has no numbered ones.
UNNUMBERED = "1"


class ModelsFolder:
    """The models under `root`, and the trainings under `trainings` that they may follow (default: `root`)."""

    def __init__(self, root: str, trainings: str | None = None) -> None:
        self._root, self._trainings = Path(root), trainings or root

    def names(self) -> list[str]:
        """The models that are registered, and the folders that hold one."""
        found = set(self._registered())
        if self._root.is_dir():
            for entry in self._root.iterdir():
                if NAME.fullmatch(entry.name) and entry.is_dir() and self._versions(entry):
                    found.add(entry.name)
        return sorted(found)

    def following(self) -> list[str]:
        """The registered models that follow a training. Raises `invalid-model` where the registrations are unread."""
        return [name for name, each in self._registered().items() if each.follows is not None]

    def registration(self, name: str) -> ModelRegistration:
        """What is known of a model. Raises `no-such-model`."""
        known = self._registered().get(name)
        if known is not None:
            return known
        if NAME.fullmatch(name) and self._versions(self._root / name):
            return ModelRegistration()
        raise ApiError(
            "no-such-model",
            f"there is no model {name!r}: none was registered under this name (PUT /v1/models/{name}), and the folder "
            "of models has no SavedModel of this name.",
        )

    def register(self, name: str, registration: ModelRegistration) -> None:
        """Keeps a registration. Raises `invalid-model` unless its folder is in the folder of models and has a model."""
        self.newest(name, registration)
        self._write({**self._registered(), name: registration})

    def forget(self, name: str) -> None:
        """Forgets a registration, if there is one. The model's files stay."""
        known = self._registered()
        if known.pop(name, None) is not None:
            self._write(known)

    def newest(self, name: str, registration: ModelRegistration) -> tuple[str, str]:
        """(version, folder) to serve. Raises `invalid-model`."""
        path = self._root / (registration.path or name)
        root = os.path.realpath(self._root)
        if os.path.commonpath([root, os.path.realpath(path)]) != root:
            raise ApiError(
                "invalid-model",
                f"{registration.path!r} leads out of the folder of models; give a path within it.",
                at=("path",),
            )
        versions = self._versions(path)
        if not versions:
            raise ApiError(
                "invalid-model",
                f"{registration.path or name!r} has no saved_model.pb, and no folder with a number for its name that "
                "has one.",
                at=("path",),
            )
        version = max(versions, key=lambda each: (int(each), each))
        return version, versions[version]

    def training(self, registration: ModelRegistration) -> str | None:
        """The folder of checkpoints that a model follows; None for one that follows none. Raises `invalid-model`."""
        if registration.follows is None:
            return None
        root = file_path(self._trainings)
        folder = join(root, registration.follows)
        if is_url(root):
            inside = is_within(folder, root) and ".." not in folder.split("/")
        else:
            root, folder = os.path.realpath(root), os.path.abspath(folder)
            inside = not is_url(folder) and os.path.commonpath([root, os.path.realpath(folder)]) == root
        if not inside:
            raise ApiError(
                "invalid-model",
                f"{registration.follows!r} leads out of the folder of trainings; give a path within it.",
                at=("follows",),
            )
        if not is_url(folder) and not os.path.isdir(folder):
            raise ApiError(
                "invalid-model",
                f"there is no folder {registration.follows!r} in the folder of trainings: name the folder that the "
                "training has as its checkpoint_dir.",
                at=("follows",),
            )
        return folder

    def _versions(self, path: Path) -> dict[str, str]:
        """Version → its folder."""
        if saved_model.is_saved_model(path):
            return {UNNUMBERED: str(path)}
        if not path.is_dir():
            return {}
        return {
            entry.name: str(entry)
            for entry in path.iterdir()
            if entry.name.isascii() and entry.name.isdecimal() and saved_model.is_saved_model(entry)
        }

    def _registered(self) -> dict[str, ModelRegistration]:
        try:
            rows = json.loads((self._root / _REGISTRATIONS).read_text(encoding="utf-8"))
            return {name: ModelRegistration.model_validate(row) for name, row in rows.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError, ValidationError) as error:
            raise ApiError(
                "invalid-model", f"{_REGISTRATIONS} in the folder of models cannot be read: {error}"
            ) from None

    def _write(self, registered: dict[str, ModelRegistration]) -> None:
        rows = {name: row.model_dump(exclude_defaults=True) for name, row in sorted(registered.items())}
        try:
            with AtomicFile(str(self._root / _REGISTRATIONS)) as file:
                file.write(json.dumps(rows, indent=1).encode())
        except errors.OpError as error:
            raise ApiError("disk-unavailable", f"the registration cannot be kept: {error.message}.") from error
