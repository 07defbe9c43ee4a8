"""The launchers that there are: ours, and those of installed packages with an entry point `tenfold.launchers`."""

from __future__ import annotations

import importlib
from importlib import metadata
from typing import TYPE_CHECKING, cast

from tenfold.launchers.interface import LaunchRefusedError

if TYPE_CHECKING:
    from tenfold.launchers.interface import Launcher

#: The group of entry points: `name = "package.module:Class"`; the class is called without arguments.
GROUP = "tenfold.launchers"
#: Ours: name → where its class is. An engine's own packages are imported when a run is opened, and not before.
_OWN = {
    "local": "tenfold.launchers.local:LocalLauncher",
    "ssh": "tenfold.launchers.ssh:SshLauncher",
    "slurm": "tenfold.launchers.slurm:SlurmLauncher",
    "ray": "tenfold.launchers.ray:RayLauncher",
    "kubernetes": "tenfold.launchers.kubernetes:KubernetesLauncher",
}


def names() -> list[str]:
    """All names, ours first; an entry point of one of our names is not looked at."""
    return [*_OWN, *sorted({each.name for each in metadata.entry_points(group=GROUP)} - set(_OWN))]


def launcher(name: str) -> Launcher:
    """The launcher of that name. Raises LaunchRefusedError for an unknown name or a package that fails to load."""
    place = _OWN.get(name)
    try:
        if place is not None:
            module, _, attribute = place.partition(":")
            made = getattr(importlib.import_module(module), attribute)
        else:
            found = tuple(metadata.entry_points(group=GROUP, name=name))
            if not found:
                raise LaunchRefusedError(f"there is no launcher {name!r}; there are {', '.join(names())}")
            made = found[0].load()
    except (ImportError, AttributeError) as error:
        raise LaunchRefusedError(f"the launcher {name!r} cannot be loaded: {error}") from error
    return cast("Launcher", made())
