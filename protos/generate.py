#!/usr/bin/env python3
"""Generates the Python code of the wire: every tenfold_protos/*.proto becomes a *_pb2.py and a *_pb2.pyi beside it.

Run by `make protos`, and by tests/unit/house/test_protos_fresh.py into a temporary folder. The generated code is
checked in, so that installing Tenfold needs no compiler; .gitattributes marks it as generated. Needs the `dev` extra.
"""

from __future__ import annotations

import argparse
import sys
from importlib import metadata, resources
from pathlib import Path

#: The folder that import paths inside the .proto files start from.
ROOT = Path(__file__).resolve().parent
#: The version of grpcio-tools that made the checked-in code: another one may well write other bytes.
TOOLS_VERSION = (ROOT / "tools-version.txt").read_text().strip()


def sources() -> list[Path]:
    """Every .proto file, in a fixed order."""
    return sorted((ROOT / "tenfold_protos").glob("*.proto"))


def generate(out: Path) -> None:
    """Writes the generated code under `out`, in the folder tenfold_protos. Raises RuntimeError if protoc refuses."""
    from grpc_tools import protoc

    (out / "tenfold_protos").mkdir(parents=True, exist_ok=True)
    well_known = resources.files("grpc_tools") / "_proto"
    arguments = ["protoc", f"-I{ROOT}", f"-I{well_known}", f"--python_out={out}", f"--pyi_out={out}"]
    code = protoc.main([*arguments, *(str(path.relative_to(ROOT)) for path in sources())])
    if code != 0:
        raise RuntimeError(f"protoc ended with {code}: see its messages above")


def main() -> int:
    """Generates in place, or elsewhere with --out; records the version of the tools when in place."""
    parser = argparse.ArgumentParser(description="Generate tenfold_protos/*_pb2.py and *_pb2.pyi.")
    parser.add_argument("--out", type=Path, default=ROOT, help="folder that gets tenfold_protos/ (default: in place)")
    out = parser.parse_args().out.resolve()
    generate(out)
    if out == ROOT:
        (ROOT / "tools-version.txt").write_text(metadata.version("grpcio-tools") + "\n")
    print(f"{len(sources())} files generated in {out / 'tenfold_protos'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
