"""What a run is called and what was recorded of it, as the JSON object that its row keeps. Pure.

People give a name, tags, notes and parameters, with the submission or later; the run's program records its parameters,
versions, seed and source by itself. What people gave counts first. The text of a diff is not here: store.py keeps it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from tenfold_core.master_jobs import master_order

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The members that people give.
GIVEN = ("display_name", "tags", "notes", "parameters", "source")

Details: TypeAlias = "Mapping[str, Any]"


def taken_out(members: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Removes the details from the members of a request, and gives them and the text of the diff. Members without a
    value are no details."""
    found = {name: value for name in GIVEN if (value := members.pop(name, None))}
    return _without_diff(found)


def edited(details: Details, edit: Mapping[str, Any]) -> Details:
    """The details after an edit: a member that is None stays, `add_tags` and `remove_tags` change the tags, and a
    parameter that is None is removed."""
    changed = {**details}
    for name in ("display_name", "notes"):
        if edit.get(name) is not None:
            changed[name] = edit[name]
    tags = edit["tags"] if edit.get("tags") is not None else details.get("tags", [])
    tags = [*tags, *(edit.get("add_tags") or ())]
    changed["tags"] = [tag for tag in dict.fromkeys(tags) if tag not in (edit.get("remove_tags") or ())]
    parameters = {**details.get("parameters", {}), **(edit.get("parameters") or {})}
    changed["parameters"] = {name: value for name, value in parameters.items() if value is not None}
    changed = {name: value for name, value in changed.items() if value}
    return details if changed == details else changed


def recorded(details: Details, job: str, index: int, told: Mapping[str, Any]) -> tuple[Details, str | None]:
    """The details once the program of that task has told what it recorded, and the text of its diff. What a task that
    leads has told is not replaced by another one's."""
    before = details.get("recorded")
    rank = list(master_order(job, index))
    if before is not None and before["task"] < rank:
        return details, None
    members, diff = _without_diff({name: value for name, value in told.items() if value not in (None, {})})
    now = {**details, "recorded": {"task": rank, **members}}
    return (details if now == details else now), diff


def parameters_of(details: Details) -> dict[str, Any]:
    """Name → value: what the program recorded, and what people gave, which counts first."""
    return {**details.get("recorded", {}).get("parameters", {}), **details.get("parameters", {})}


def source_of(details: Details) -> Mapping[str, Any] | None:
    """The commit of the working directory, as it was given or else recorded; None where neither was."""
    found: Mapping[str, Any] | None = details.get("source") or details.get("recorded", {}).get("source")
    return found


def _without_diff(members: Mapping[str, Any]) -> tuple[dict[str, Any], str | None]:
    source = members.get("source")
    if source is None:
        return dict(members), None
    kept = {name: value for name, value in source.items() if name != "diff"}
    diff = source.get("diff") or ""
    return {**members, "source": {**kept, "diff_bytes": len(diff.encode())}}, diff
