"""The calls of `/v1/runs` that compare runs: what each is called, and what was recorded of it.

Of both clients; calls.py says how they become methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.control.calls import call
from tenfold.control.request import Request, one, path_of, text
from tenfold.control.run_answers import Comparison, Run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class ExperimentCalls:
    """The part of the clients that is about what runs are called, and how they compare."""

    @call
    def edit_run(
        self,
        run: str,
        *,
        display_name: str | None = None,
        tags: Sequence[str] | None = None,
        add_tags: Sequence[str] = (),
        remove_tags: Sequence[str] = (),
        notes: str | None = None,
        parameters: Mapping[str, bool | int | float | str | None] | None = None,
    ) -> Request[Run]:
        """Changes what a run is called, whether it has ended or not, and returns it. `tags` replaces all tags; a
        parameter that is None is removed if it was given before. What is left out stays. Raises NotFoundError, and
        PermissionDeniedError for another submitter's run."""
        body = {
            "display_name": display_name,
            "tags": None if tags is None else list(tags),
            "add_tags": list(add_tags),
            "remove_tags": list(remove_tags),
            "notes": notes,
            "parameters": None if parameters is None else dict(parameters),
        }
        return Request("PATCH", path_of("runs", run), one(Run), json=body)

    @call
    def run_diff(self, run: str) -> Request[str]:
        """How the files of the run's working directory differed from their commit, as Git prints it; empty where they
        did not, or where nothing is known. `run.source.diff_truncated` says whether its end is missing."""
        return Request("GET", path_of("runs", run, "diff"), text)

    @call
    def compare_runs(self, runs: Sequence[str], *, scalars: Sequence[str] = ()) -> Request[Comparison]:
        """Up to 20 runs side by side: parameters and other facts, first those in which they differ, and the curves of
        all scalars, or of those that are named. Raises NotFoundError for a run that there is not."""
        params = {"run": list(runs), "scalar": list(scalars) or None}
        return Request("GET", "/v1/runs:compare", one(Comparison), params=params)
