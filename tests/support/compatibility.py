"""`make compatibility`: writes docs/compatibility.md: which names of TensorFlow 1.15 are here, and why others are not.

public_names.txt has TensorFlow's names, tenfold/left_out.py the reasons, docs/missing_ops.md those of raw operations,
inert_arguments.py the arguments that do nothing. tests/unit/house/test_compatibility.py compares what is kept with what
this writes, and fails for a name that is neither here nor left out for a reason.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tenfold
from support.inert_arguments import INERT
from tenfold import contrib, left_out

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "compatibility.md"
_NAMES = Path(__file__).with_name("public_names.txt")
_HEAD = """\
# Compatibility with TensorFlow 1.15's Python API

Every public name of TensorFlow 1.15, by namespace: whether Tenfold has it, and if not, why. A name counts as here if a
program finds it under `import tenfold as tf`; that it does what TensorFlow's does is shown by TensorFlow's own tests
([conformance](conformance.md)). A name that is left out raises an AttributeError, which in most namespaces gives the
reason below. `tf.contrib`, which TensorFlow did not count as its API, has [a section of its own](#tfcontrib).
`make compatibility` writes this page.
"""


def names_of_tensorflow() -> dict[str, list[str]]:
    """Namespace (`tf`, `tf.train`, …) → the names that TensorFlow 1.15 has there, in order."""
    lines = re.sub(r"\n +", " ", _NAMES.read_text(encoding="utf-8")).splitlines()
    rows = (line.partition(": ") for line in lines if not line.startswith("#"))
    return {namespace: names.split() for namespace, _, names in rows}


def absent_names(names: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Namespace → those of the names that a program does not find in Tenfold; namespaces that lack none included."""
    return {namespace: [name for name in listed if not _has(namespace, name)] for namespace, listed in names.items()}


def _has(namespace: str, name: str) -> bool:
    found: Any = tenfold
    for part in namespace.split(".")[1:]:
        found = getattr(found, part, None)
    # `dir` first: it loads nothing
    return found is not None and (name in dir(found) or hasattr(found, name))


def groups_of_operations() -> dict[str, tuple[str, str]]:
    """Operation that is not defined here → title and anchor of the group of docs/missing_ops.md that says why."""
    text = (ROOT / "docs" / "missing_ops.md").read_text(encoding="utf-8").partition("\n## Not defined here\n")[2]
    found: dict[str, tuple[str, str]] = {}
    for group in text.partition("\n## ")[0].split("\n### ")[1:]:
        heading = group.partition("\n")[0]
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        listed = [line for line in group.splitlines() if re.fullmatch(r"(`\w+`,? ?)+", line)]
        title = re.sub(r" \(\d+\)$", "", heading)
        found |= dict.fromkeys(re.findall(r"`(\w+)`", " ".join(listed)), (title, anchor))
    return found


def reasons(absent: Mapping[str, Iterable[str]]) -> dict[tuple[str, str], list[str]]:
    """(Namespace, why in Markdown) → the names for which it holds. Raises LookupError for names without a reason."""
    operations = groups_of_operations()
    found: dict[tuple[str, str], list[str]] = {}
    without: list[str] = []
    for namespace, names in absent.items():
        for name in names:
            path = f"{namespace}.{name}".partition(".")[2]
            if namespace == "tf.raw_ops" and name in operations:
                title, anchor = operations[name]
                why = f"[{title}](missing_ops.md#{anchor})"
            else:
                why = left_out.why(path)
            if why:
                found.setdefault((namespace, why), []).append(name)
            else:
                without.append(f"tf.{path}")
    if without:
        raise LookupError(f"neither here nor left out for a reason (tenfold/left_out.py): {', '.join(without)}")
    return found


def _percent(here: int, of: int) -> str:
    """Rounded down, so that 100 % means all."""
    return f"{1000 * here // of / 10:.1f} %"


def _counts(names: Mapping[str, list[str]], absent: Mapping[str, list[str]]) -> list[str]:
    def row(title: str, chosen: list[str]) -> str:
        total = sum(len(names[each]) for each in chosen)
        here = total - sum(len(absent[each]) for each in chosen)
        return f"| {title} | {total} | {here} | {total - here} | {_percent(here, total)} |"

    apart = [each for each in names if each == "tf.raw_ops" or each.startswith(("tf.keras", "tf.lite", "tf.tpu"))]
    return [
        "| namespace | names | here | left out | share |",
        "|---|---|---|---|---|",
        row("**all**", [*names]),
        row("**without `keras`, `lite`, `tpu` and raw operations**", [each for each in names if each not in apart]),
        *(row(f"`{each}`", [each]) for each in names),
    ]


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _left_out_rows(names: Mapping[str, list[str]], absent: Mapping[str, list[str]]) -> list[str]:
    rows = []
    for (namespace, why), listed in reasons(absent).items():
        if namespace == "tf.raw_ops":
            shown = f"{len(listed)} operations" if len(listed) > 1 else _code(listed)
        elif listed == names[namespace]:
            shown = f"all: {_code(listed)}"
        else:
            shown = _code(listed)
        rows.append(f"| `{namespace}` | {shown} | {why} |")
    return ["| namespace | names | why, and what to use |", "|---|---|---|", *rows]


def _contrib_rows() -> list[str]:
    return [
        f"Here are, each with the names that programs use: {_code(dir(contrib))}.",
        "",
        "| left out | why, and what to use |",
        "|---|---|",
        *(f"| `tf.contrib.{name}` | {why} |" for name, why in sorted(contrib._LEFT_OUT.items())),
    ]


def page() -> str:
    """What docs/compatibility.md holds."""
    names = names_of_tensorflow()
    absent = absent_names(names)
    here = {
        namespace: [name for name in listed if name not in absent[namespace]]
        for namespace, listed in names.items()
        if namespace != "tf.raw_ops"
    }
    sections = {
        "How much is here": _counts(names, absent),
        "What is left out, and why": _left_out_rows(names, absent),
        "Arguments that are accepted and do nothing": [
            "| function | arguments | why |",
            "|---|---|---|",
            *(f"| `{function}` | {_code(arguments.split())} | {why} |" for function, (arguments, why) in INERT.items()),
        ],
        "tf.contrib": _contrib_rows(),
        "Names that are here": [
            *(f"**{namespace}**: {_code(listed)}\n" for namespace, listed in here.items() if listed),
            "**tf.raw_ops**: all of TensorFlow 1.15 that [missing operations](missing_ops.md) does not list.",
        ],
    }
    parts = [f"## {title}\n\n" + "\n".join(lines).rstrip() for title, lines in sections.items()]
    return "\n\n".join([_HEAD.rstrip(), *parts]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
