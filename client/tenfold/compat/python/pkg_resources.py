"""What programs ask of setuptools' `pkg_resources`, which went with setuptools 82: the versions of distributions.

Imported as `pkg_resources` where there is none; see tenfold/compat/distributions.py.
"""

from __future__ import annotations

import importlib.metadata
from typing import NamedTuple

__all__ = ["Distribution", "DistributionNotFound", "ResolutionError", "get_distribution"]


class ResolutionError(Exception):
    """The base class of what is not found."""


class DistributionNotFound(ResolutionError):
    """There is no distribution of that name."""


class Distribution(NamedTuple):
    """A distribution that is installed."""

    project_name: str
    version: str

    @property
    def key(self) -> str:
        """The name in lower case."""
        return self.project_name.lower()


def get_distribution(dist: str | Distribution) -> Distribution:
    """The distribution of that name, in upper or lower case. Raises DistributionNotFound."""
    if isinstance(dist, Distribution):
        return dist
    try:
        found = importlib.metadata.distribution(dist)
    except importlib.metadata.PackageNotFoundError:
        raise DistributionNotFound(
            f"The {dist!r} distribution was not found and is required by the application"
        ) from None
    return Distribution(found.metadata["Name"], found.version)
