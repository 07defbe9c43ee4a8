"""`tf.resource_loader`: files that lie beside the program's own modules. As TF 1.15's platform/resource_loader.py."""

from __future__ import annotations

import inspect
import os

__all__ = [
    "get_data_files_path",
    "get_path_to_datafile",
    "get_root_dir_with_all_resources",
    "load_resource",
    "readahead_file_path",
]


def _folder(depth: int) -> str:
    return os.path.dirname(os.path.abspath(inspect.getfile(inspect.stack()[depth + 1].frame)))


def load_resource(path: str) -> bytes:
    """The content of a file, whose path starts at the folder that holds the calling module. Raises OSError."""
    with open(os.path.join(_folder(1), path), "rb") as file:
        return file.read()


def get_data_files_path() -> str:
    """The folder of the calling module."""
    return _folder(1)


def get_root_dir_with_all_resources() -> str:
    """The folder of the calling module; there is none of a build system."""
    return _folder(1)


def get_path_to_datafile(path: str) -> str:
    """The path of a file, given from the folder of the calling module; whether it is there is not looked at."""
    return os.path.join(_folder(1), path)


def readahead_file_path(path: str, readahead: str = "128M") -> str:
    """`path`: the system reads ahead as it sees fit."""
    return path
