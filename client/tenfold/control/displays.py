"""Where `watch` shows a run: a line that moves in a terminal, an output that changes in a notebook, else lines of text.

`display_here` chooses. A display is a context manager; `show(run)` puts the newest in the place of what was there.
"""

from __future__ import annotations

import importlib
import sys
import time
from typing import TYPE_CHECKING, Any, Protocol, Self

from tenfold.control.run_text import headline, run_html, what_it_does
from tenfold.state_styles import STYLES

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

    from rich.console import Console, RenderableType
    from rich.progress import ProgressColumn, Task

    from tenfold.control.run_answers import Run

#: Between two lines of a run that goes on, where lines stay.
_EVERY_S = 10.0
#: Columns of a terminal with room for a bar.
_WIDE = 100


class RunDisplay(Protocol):
    """Somewhere to show a run."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: object) -> None: ...
    def show(self, run: Run) -> None:
        """Never blocks for long."""


def display_here(steps: int | None = None) -> RunDisplay:
    """The display for where this program runs. `steps`: how many the training takes, if that is known."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is not None:
        return NotebookDisplay(steps)
    return TerminalDisplay(steps) if sys.stdout.isatty() else LineDisplay()


class LineDisplay:
    """A line when the state changes, and now and then while it does not."""

    def __init__(self, file: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._file = file
        self._clock = clock
        self._state = ""
        self._line = ""
        self._due = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        pass

    def show(self, run: Run) -> None:
        line = headline(run)
        if line == self._line or (run.state == self._state and self._clock() < self._due):
            return
        self._state, self._line, self._due = run.state, line, self._clock() + _EVERY_S
        print(line, file=self._file or sys.stdout, flush=True)


class TerminalDisplay:
    """One line that moves: state, time, step, steps/s, loss, and a bar where it is known how many steps the run takes,
    by `steps` or by the run itself; in a narrow terminal a percentage, which leaves room for the loss. What is printed
    meanwhile stands above it."""

    def __init__(self, steps: int | None = None, console: Console | None = None) -> None:
        from rich.console import Console
        from rich.progress import Progress, TextColumn, TimeElapsedColumn
        from rich.table import Column

        console = console or Console()
        # the others keep their width: only what the run does is cut
        told = Column(no_wrap=True, overflow="ellipsis", ratio=1)
        columns = (
            TextColumn("{task.fields[state]}"),
            _moves(wide=console.width >= _WIDE),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False, table_column=told),
        )
        self._live = Progress(*columns, console=console, refresh_per_second=4, expand=True)
        #: How many steps the run takes.
        self._steps = steps
        self._task = self._live.add_task("", total=steps, state="", known=steps is not None)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._live.stop()

    def show(self, run: Run) -> None:
        step = None if run.progress is None else run.progress.global_step
        changes: dict[str, Any] = {} if step is None else {"completed": step}
        known = self._steps or (None if run.progress is None else run.progress.last_step)
        if known:
            changes |= {"total": known, "known": True}
        if run.final:
            # a bar that goes on moving says that something goes on
            changes |= {"total": known or 1, "completed": (known or 1) if run.succeeded else step or 0}
            self._live.stop_task(self._task)
        state = f"{run.name} [{STYLES.get(run.state, 'default')}]{run.state}[/]"
        told = what_it_does(run, percent=False)
        self._live.update(self._task, description=told, state=state, refresh=True, **changes)


def _moves(*, wide: bool) -> ProgressColumn:
    """A bar or a percentage once it is known how many steps a run takes, until then something that turns."""
    from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, TaskProgressColumn

    turns = SpinnerColumn(finished_text=" ")
    share: ProgressColumn = BarColumn(bar_width=20) if wide else TaskProgressColumn()

    class Moves(ProgressColumn):
        def render(self, task: Task) -> RenderableType:
            return (share if task.fields["known"] else turns).render(task)

    return Moves()


class NotebookDisplay:
    """An output of the notebook's cell that is replaced; as text where the front end shows no HTML."""

    def __init__(self, steps: int | None = None) -> None:
        self._steps = steps
        self._handle: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        pass

    def show(self, run: Run) -> None:
        shown = _Shown(run, self._steps)
        if self._handle is None:
            self._handle = importlib.import_module("IPython.display").display(shown, display_id=True)
        else:
            self._handle.update(shown)


class _Shown:
    def __init__(self, run: Run, steps: int | None) -> None:
        self._run, self._steps = run, steps

    def __repr__(self) -> str:
        return headline(self._run)

    def _repr_html_(self) -> str:
        return run_html(self._run, self._steps)
