"""Command lines taken apart: what is Python's, what is the program, what is a command of its own."""

from __future__ import annotations

import sys

import pytest

from tenfold.runs.entrypoint import Entrypoint, read_entrypoint


@pytest.mark.parametrize(
    ("entrypoint", "expected"),
    [
        ("python t.py --x", Entrypoint(("t.py", "--x"))),
        ("/usr/bin/python3 -m pkg.train", Entrypoint(("-m", "pkg.train"))),
        ("python -mpkg.train -u", Entrypoint(("-m", "pkg.train", "-u"))),
        (f"{sys.executable} -u t.py", Entrypoint(("t.py",), interpreter=("-u",))),
        ("python -W error -OO t.py -W x", Entrypoint(("t.py", "-W", "x"), interpreter=("-W", "error", "-OO"))),
        ("python -Werror -X dev -m a", Entrypoint(("-m", "a"), interpreter=("-Werror", "-X", "dev"))),
        ("python -uWerror t.py", Entrypoint(("t.py",), interpreter=("-uWerror",))),
        ("python -uX dev t.py", Entrypoint(("t.py",), interpreter=("-uX", "dev"))),
        ("python -c print()", Entrypoint(("python", "-c", "print()"), command=True)),
        ("python -O -c print()", Entrypoint(("python", "-O", "-c", "print()"), command=True)),
        ("python -S t.py", Entrypoint(("python", "-S", "t.py"), command=True)),
        ("python - t.py", Entrypoint(("python", "-", "t.py"), command=True)),
        ("python", Entrypoint(("python",), command=True)),
        ("python -m", Entrypoint(("python", "-m"), command=True)),
        ("python -W", Entrypoint(("python", "-W"), command=True)),
        ("bash train.sh", Entrypoint(("bash", "train.sh"), command=True)),
    ],
)
def test_an_entrypoint(entrypoint: str, expected: Entrypoint) -> None:
    assert read_entrypoint(entrypoint.split()) == expected


def test_it_is_shown_as_a_user_would_type_it() -> None:
    assert read_entrypoint(["python3", "-W", "error", "-mpkg"]).whole == ["python", "-W", "error", "-m", "pkg"]
    assert read_entrypoint(["sh", "t.sh"]).whole == ["sh", "t.sh"]


def test_an_empty_entrypoint() -> None:
    with pytest.raises(ValueError, match="the entrypoint is empty"):
        read_entrypoint([])
