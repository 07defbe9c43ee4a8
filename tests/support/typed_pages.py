"""A page of the documentation as its reader works through it: every block typed in order, in an empty folder, which is
`~/tenfold-lessons/NAME` for a page NAME.md, as docs/tutorials/index.md has it.

    ```sh                                            typed in the first terminal
    ```sh title="Terminal 2"                         typed in another one
    ```sh title="Terminal 2, keep it running"        does not end: the page's later blocks do not wait for it
    ```sh title="On alpha"                           typed on a host of that name, the first of a page at 10.78.0.1
    ```python title="hello.py"                       saved under that name
    ```text                                          lines that the commands before it write; `...` stands for anything
    ```text title="Terminal 2"                       lines that appear in that terminal meanwhile

Only ports change, so that a page disturbs no other. Used by tests/process/test_typed_pages.py, test_readme.py and
verify_docs.py.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from support.faults.lan import Lan
from support.left_over import left_over
from support.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
#: Folders whose pages have every block typed.
TYPED = ("tutorials", "how-to")
#: Seconds that one block may take, on a busy machine.
PATIENCE = 120.0
#: Commands of the pages (`python`, `tenfold`) are those of the environment that runs the tests.
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith(("TENFOLD_", "TF_CONFIG"))},
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    "PYTHONUNBUFFERED": "1",
}
_FENCE = re.compile(r"^```(?P<language>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```", re.M | re.S)
_PORT = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\]):(\d{4,5})\b|-port[= ](\d{4,5})\b")
_RUNNING = ", keep it running"
_HOST = re.compile(r"On (\w+)")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the title on its fence, its text, and the line at which it begins."""

    language: str
    title: str
    text: str
    line: int


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page's Markdown, in order. Raises ValueError for a fence that has another form."""
    found = [
        Block(each["language"], each["title"] or "", each["text"], page.count("\n", 0, each.start()) + 1)
        for each in _FENCE.finditer(page)
    ]
    if odd := re.findall(r"^ *```.*$", _FENCE.sub("", page), re.MULTILINE):
        raise ValueError(f"{odd[0]!r} begins no block that can be typed; a fence is a language and perhaps a title")
    return found


def hosts_of(page: str) -> list[str]:
    """The hosts on which a page's blocks are typed, in order; none if all are typed here."""
    named = [found[1] for block in blocks(page) if (found := _HOST.match(block.title))]
    return list(dict.fromkeys(named))


def typed_pages() -> list[Path]:
    """The pages of tutorials and how-to that have a block."""
    pages = [page for folder in TYPED for page in sorted((DOCS / folder).rglob("*.md"))]
    return [page for page in pages if "\n```" in page.read_text(encoding="utf-8")]


def ports_of(text: str) -> dict[str, str]:
    """A free port for each port of this machine that the text names."""
    named = sorted({port for found in _PORT.findall(text) for port in found if port})
    return dict(zip(named, map(str, free_ports(len(named))), strict=True))


def with_ports(text: str, ports: Mapping[str, str]) -> str:
    """The text with other ports."""
    if not ports:
        return text
    return re.sub(rf"\b(?:{'|'.join(ports)})\b", lambda match: ports[match[0]], text)


def run(arguments: list[str], text: str = "", cwd: Path = ROOT, timeout: float = 90) -> str:
    """What a command writes to standard output. It has to succeed."""
    done = subprocess.run(
        arguments, input=text, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, timeout=timeout
    )
    assert done.returncode == 0, f"{shlex.join(arguments)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


class Terminal:
    """A shell in which one block after another is typed; what it writes can be waited for.

    A command that fails ends the shell. Waiting is bounded; `end` stops what runs and waits for its output's end.
    """

    def __init__(self, folder: Path = ROOT, environment: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            ["bash", "-eu"],
            cwd=folder,
            env={**ENVIRONMENT, **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.lines: list[str] = []
        self.ended = False
        self.changed = threading.Condition()
        self.typed = 0
        self.reader = threading.Thread(target=self._read, name="terminal")
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as stdout:
            for line in stdout:
                with self.changed:
                    self.lines.append(line)
                    self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def type(self, script: str) -> str:
        """Types a script, and returns at once with the line that the shell writes after it."""
        assert self.process.stdin is not None
        self.typed += 1
        done = f"block {self.typed} is done"
        # the commands' own input is empty: the shell's is what is typed next
        self.process.stdin.write(f"{{\n{script}\n}} </dev/null\necho '{done}'\n")
        self.process.stdin.flush()
        return done

    def wait_for(self, pattern: str, count: int = 1, timeout: float | None = None, begin: int = 0) -> None:
        """Until `count` lines from number `begin` on match. AssertionError, with the lines, if they do not come."""

        def seen() -> bool:
            return sum(bool(re.search(pattern, line)) for line in self.lines[begin:]) >= count

        with self.changed:
            self.changed.wait_for(lambda: seen() or self.ended, PATIENCE if timeout is None else timeout)
            assert seen(), f"{pattern!r} was not written {count} times:\n{''.join(self.lines[begin:])}"

    def end(self, number: int) -> None:
        """Sends a signal to all that runs here, and waits for it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        with suppress(ProcessLookupError):  # the shell and all that it started have ended by themselves
            os.killpg(self.process.pid, number)
        self.process.wait(30)
        self.reader.join(30)
        assert not self.reader.is_alive(), f"a process still holds its output open:\n{''.join(self.lines)}"


@contextmanager
def terminal(script: str, number: int = signal.SIGTERM) -> Iterator[Terminal]:
    """A terminal in which a script runs; the signal ends it."""
    started = Terminal()
    started.type(script)
    try:
        yield started
    finally:
        started.end(number)


def _line_pattern(line: str) -> str:
    """What a line of expected output matches: itself, within a line, with `...` for anything; blanks may differ."""
    words = r"\s+".join(re.escape(word) for word in line.split())
    return words.replace(r"\.\.\.", ".*")


def type_page(page: Path, folder: Path) -> None:
    """Types the page's blocks in that empty folder, in order; everything that it started is stopped.

    Raises AssertionError, with the line of the block and what its terminal shows, where a command fails or does not
    write what the page says; ValueError for a block that can neither be typed, saved nor compared.
    """
    text = page.read_text(encoding="utf-8")
    ports = ports_of(text)
    terminals: dict[str, Terminal] = {}
    last = ""
    marks: dict[str, int] = {}  # lines that a terminal had when something was last typed, in whichever
    home = folder / "home"
    environment = {
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / ".local/share"),
        "XDG_STATE_HOME": str(home / ".local/state"),
    }
    (work := home / "tenfold-lessons" / page.stem).mkdir(parents=True)
    # the reader's environment, which each new terminal activates; here its commands are on PATH anyway
    (activate := home / "tenfold-env/bin/activate").parent.mkdir(parents=True)
    activate.touch()
    names = hosts_of(text)
    with ExitStack() as stack:
        lan = stack.enter_context(Lan(*names)) if names else None
        for block in blocks(text):
            body = with_ports(block.text, ports)
            try:
                if block.language == "sh":
                    last = block.title.removesuffix(_RUNNING) or "Terminal 1"
                    if last not in terminals:
                        place = _HOST.match(last)
                        start = partial(Terminal, work, environment)
                        terminals[last] = lan.inside(place[1], start) if lan and place else start()
                        stack.callback(terminals[last].end, signal.SIGTERM)
                    marks = {name: len(each.lines) for name, each in terminals.items()}
                    done = terminals[last].type(body)
                    if not block.title.endswith(_RUNNING):
                        terminals[last].wait_for(done, begin=marks[last])
                elif block.language == "text" and terminals:
                    name = block.title or last
                    for line in filter(None, body.splitlines()):
                        terminals[name].wait_for(_line_pattern(line), timeout=PATIENCE / 2, begin=marks[name])
                elif block.title:
                    (work / block.title).parent.mkdir(parents=True, exist_ok=True)
                    (work / block.title).write_text(body, encoding="utf-8")
                else:
                    raise ValueError("this block has no title, so its reader cannot save it, and no shell")
            except (AssertionError, ValueError) as error:
                error.add_note(f"{page.relative_to(ROOT)}, line {block.line}")
                raise
    assert left_over(folder) == [], f"{page.relative_to(ROOT)} leaves processes"
