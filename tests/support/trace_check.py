"""What is true of every trace file, whoever looks at it: Perfetto and chrome://tracing drop what breaks these rules."""

from __future__ import annotations

from typing import Any


def check_trace(found: dict[str, Any]) -> None:
    """Processes and tracks have names, slices of a track do not overlap but nest, each arrow has both ends within
    slices and does not go back in time. Raises AssertionError."""
    events = found["traceEvents"]
    assert {event["ph"] for event in events} <= {"M", "X", "s", "f"}
    named = {event["pid"] for event in events if event["name"] == "process_name"}
    tracks = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    slices: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for event in events:
        if event["ph"] == "X":
            assert event["ts"] >= 0, event
            assert event["dur"] > 0, event
            slices.setdefault((event["pid"], event["tid"]), []).append(event)
    assert slices.keys() == tracks
    assert {pid for pid, _ in tracks} <= named == {task["pid"] for task in found["metadata"]["tasks"]}
    for of_track in slices.values():
        _check_nesting(of_track)
    starts = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    assert starts.keys() == ends.keys()
    assert len(starts) == sum(event["ph"] == "s" for event in events), "an arrow's number comes twice"
    for number, start in starts.items():
        end = ends[number]
        assert start["ts"] <= end["ts"], (start, end)
        assert start["name"] == end["name"]
        assert end["bp"] == "e"
        for at in (start, end):
            around = [each for each in slices[at["pid"], at["tid"]] if _holds(each, at["ts"])]
            assert around, f"no slice around {at}"


def _holds(found: dict[str, Any], at: float) -> bool:
    # times are microseconds with three digits; a sum of two has an error far below that
    return bool(found["ts"] - 1e-4 <= at <= found["ts"] + found["dur"] + 1e-4)


def _check_nesting(slices: list[dict[str, Any]]) -> None:
    open_until: list[float] = []
    for each in sorted(slices, key=lambda event: (event["ts"], -event["dur"])):
        end = each["ts"] + each["dur"]
        while open_until and open_until[-1] <= each["ts"] + 1e-4:
            open_until.pop()
        assert not open_until or end <= open_until[-1] + 1e-4, each
        open_until.append(end)
