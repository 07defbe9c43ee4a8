"""`make dist`: builds the sdist, the wheel of it and the image, and tries each as its users will. Prints what it does.

One version, pyproject.toml's, is in the names, the metadata, the image and the newest heading of CHANGELOG.md. The
wheel is installed into an environment that has nothing else, runs `tenfold demo` there, and the licences of all that
came with it are compared with LICENCES. The image is built where a Docker daemon answers; else that is said.
"""

from __future__ import annotations

import email
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"
EXTRAS = "control,examples"
#: How licences that may come with Tenfold call themselves: permissive ones, and MPL, whose files stay apart.
LICENCES = re.compile(
    r"apache|\bmit\b|bsd|\bisc\b|python software foundation|psf|mozilla public|mpl|unlicense|zlib|hpnd|cmu",
    re.IGNORECASE,
)
#: Names licences that come with Tenfold must not have.
REFUSED = re.compile(r"(?<!l)(?<!lesser )\bgpl|\bagpl|affero|proprietary|commercial", re.IGNORECASE)
#: Prints the licence of each distribution of an environment: its expression, else its classifiers, else its text.
_ASK = """
import json
from importlib.metadata import distributions
found = {}
for each in distributions():
    head = each.metadata
    classified = [line for line in head.get_all("Classifier") or () if line.startswith("License ::")]
    found[head["Name"]] = head.get("License-Expression") or "; ".join(classified) or (head.get("License") or "")[:200]
print(json.dumps(found))
"""


class RefusedError(Exception):
    """What was built is not what may be given away."""


def project_version(root: Path = ROOT) -> str:
    """The version: pyproject.toml is the one place that says it."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def newest_in_changelog(text: str) -> str:
    """The newest version that the changelog has a heading for, as in `## [0.2.0] - 2026-11-29`."""
    found = re.search(r"^## \[(\d[^\]]*)\]", text, re.MULTILINE)
    if found is None:
        raise RefusedError("CHANGELOG.md has no heading `## [VERSION] - DATE`.")
    return found[1]


def run(*command: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None) -> str:
    """What a command prints; its last lines are the error where it fails. Blocks, ten minutes at most."""
    print("$", *command, flush=True)
    told = {**os.environ, **(env or {})}
    done = subprocess.run(command, cwd=cwd, env=told, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        last = "\n".join((done.stdout + done.stderr).splitlines()[-30:])
        raise RefusedError(f"{command[0]} ended with {done.returncode}:\n{last}")
    return done.stdout


def check_wheel(wheel: Path, version: str) -> None:
    """Raises RefusedError for a wheel that lacks something, or has what is not the project's."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        info = f"tenfold-{version}.dist-info"
        if f"{info}/METADATA" not in names:
            raise RefusedError(f"{wheel.name} has no {info}/METADATA: its version is not {version}.")
        head = email.message_from_string(archive.read(f"{info}/METADATA").decode())
    if (head["Version"], head["License-Expression"]) != (version, "Apache-2.0"):
        raise RefusedError(f"{wheel.name} says version {head['Version']}, licence {head['License-Expression']}.")
    vendor = "tenfold_control_api/dashboard/vendor/"
    needed = {f"{info}/licenses/LICENSE", "tenfold/py.typed"}
    needed |= {f"tenfold/cli/programs/{name}.py" for name in ("demo", "digits")}
    needed |= {f"{vendor}{name}.LICENSE" for name in ("htm", "preact", "uplot")}
    if missing := sorted(needed - names):
        raise RefusedError(f"{wheel.name} lacks {', '.join(missing)}.")
    tops = {name.split("/")[0] for name in names}
    if strange := sorted(top for top in tops if top != info and not re.fullmatch(r"tenfold(_[a-z_]+)?", top)):
        raise RefusedError(f"{wheel.name} puts {', '.join(strange)} into site-packages.")


def check_sdist(sdist: Path, version: str) -> None:
    """Raises RefusedError for an sdist that lacks what one builds from, or has an environment or a build in it."""
    with tarfile.open(sdist) as archive:
        names = {name.removeprefix(f"tenfold-{version}/") for name in archive.getnames()}
    needed = {"pyproject.toml", "LICENSE", "README.md", "CHANGELOG.md", "examples/digits.py", "tests/test_tiny.py"}
    if missing := sorted(needed - names):
        raise RefusedError(f"{sdist.name} lacks {', '.join(missing)}.")
    if strange := sorted(name for name in names if name.startswith((".venv", "dist/", "build/", ".git/"))):
        raise RefusedError(f"{sdist.name} has {', '.join(strange[:5])}.")


def refused_licences(found: dict[str, str]) -> dict[str, str]:
    """Those of distributions (name → what it says of its licence) that are not known to be permissive."""
    return {name: text for name, text in found.items() if REFUSED.search(text) or not LICENCES.search(text)}


def try_wheel(wheel: Path, version: str) -> None:
    """Installs it into an empty environment and runs the demo there. Raises RefusedError."""
    with tempfile.TemporaryDirectory(prefix="tenfold-dist-") as folder:
        place = Path(folder)
        run(sys.executable, "-m", "venv", place / "empty")
        python = place / "empty" / "bin" / "python"
        pip = [python, "-m", "pip", "--disable-pip-version-check"]
        run(*pip, "install", "--quiet", f"{wheel}[{EXTRAS}]", cwd=place)
        run(*pip, "check", cwd=place)
        licences = json.loads(run(python, "-c", _ASK, cwd=place))
        if refused := refused_licences(licences):
            raise RefusedError(f"these come with the wheel, and their licences are not known to fit: {refused}")
        print(f"  {len(licences)} distributions, and each licence fits")
        tenfold = place / "empty" / "bin" / "tenfold"
        if version not in run(tenfold, "--version", cwd=place):
            raise RefusedError(f"`tenfold --version` does not say {version}.")
        # what is to be found is the wheel, whatever the shell says
        printed = run(tenfold, "demo", cwd=place, env={"PYTHONPATH": ""})
        print("  " + next(line for line in printed.splitlines() if line.startswith("accuracy")))


def try_image(version: str) -> None:
    """Builds the image and asks it for its version, where a Docker daemon answers."""
    docker = shutil.which("docker")
    asked = None if docker is None else subprocess.run([docker, "info"], capture_output=True, timeout=60, check=False)
    if docker is None or asked is None or asked.returncode != 0:
        print("No image: no Docker daemon answers here")
        return
    run(docker, "build", "--tag", f"tenfold:{version}", "--build-arg", f"VERSION={version}", ".")
    if version not in run(docker, "run", "--rm", f"tenfold:{version}", "--version"):
        raise RefusedError(f"the image does not say that it is {version}.")


def main() -> int:
    version = project_version()
    try:
        told = newest_in_changelog((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
        if told != version:
            raise RefusedError(f"CHANGELOG.md's newest version is {told}; pyproject.toml's is {version}.")
        shutil.rmtree(DIST, ignore_errors=True)
        run(sys.executable, "-m", "build", "--outdir", DIST)
        wheel, sdist = DIST / f"tenfold-{version}-py3-none-any.whl", DIST / f"tenfold-{version}.tar.gz"
        run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist)
        check_wheel(wheel, version)
        check_sdist(sdist, version)
        try_wheel(wheel, version)
        try_image(version)
    except RefusedError as error:
        print(f"make dist: {error}", file=sys.stderr)
        return 1
    print(f"dist/ holds version {version}: {wheel.name}, {sdist.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
