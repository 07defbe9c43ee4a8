"""Where the documentation says what to do about an error: a page with an anchor for each kind of failure.

Problems of the REST interface, errors of a step and the commands' own lines name it; tests/unit/house/test_symptoms.py
compares the anchors with the page.
"""

from __future__ import annotations

from typing import Final

from tenfold_core import errors

PAGE: Final = "docs/how-to/by-symptom.md"
#: Anchors of what is no kind of problem of the REST interface.
HANGS: Final = "it-hangs"
UNREACHABLE: Final = "control-service-unreachable"


def runtime_kind(code: str) -> str:
    """The kind of problem that a master's answer with that canonical code is: "runtime-not-found"."""
    return f"runtime-{code.lower().replace('_', '-')}"


def link(anchor: str) -> str:
    """The place on the page."""
    return f"{PAGE}#{anchor}"


def with_note(error: errors.OpError) -> errors.OpError:
    """The same error; its traceback ends with the place. Once is enough."""
    note = f"What to do: {link(runtime_kind(errors.code_name(error.code)))}"
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)
    return error
