"""Runs one test file of TensorFlow on Tenfold's client, in this interpreter: `python in_tenfold.py PLAN`.

The counterpart of in_tensorflow.py, whose record of outcomes it shares; api_shim.py answers the file's imports.
"""

from __future__ import annotations

import faulthandler
import json
import sys
import warnings
from pathlib import Path


class _NoWire:
    """Nothing counts steps here."""

    calls = 0


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    faulthandler.enable()
    sys.path.insert(0, str(Path(__file__).parent))
    import api_files_data
    import api_numpy
    import api_shim
    import in_tensorflow

    import tenfold as tf
    from tenfold.test import case

    # Test files of that age call assertEquals and friends.
    warnings.simplefilter("ignore", DeprecationWarning)
    api_numpy.give_old_names()
    folder = str(Path(plan["file"]).parent)
    sys.path.append(folder)
    api_shim.install(folder)
    # a file may ask for it as it is imported
    case._root = plan["scratch"]

    if Path(plan["file"]).name in api_files_data.WITH_RESOURCE_VARIABLES:
        tf.enable_resource_variables()

    def prepare(_: Path) -> None:
        case._root = plan["scratch"]

    in_tensorflow.run(plan, _NoWire(), prepare, api_numpy.old_names(Path(plan["file"])))


if __name__ == "__main__":
    main()
