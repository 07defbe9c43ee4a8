"""Server-sent events from lines, as the HTML standard has them."""

from __future__ import annotations

from tenfold.control.event_stream import EventParser, StreamEvent


def parsed(lines: list[str]) -> list[StreamEvent]:
    parser = EventParser()
    return [event for line in lines if (event := parser.read(line)) is not None]


def test_events_with_names_ids_and_several_lines() -> None:
    lines = ["event: task", "id: 3", "data: one", "data:two", "", ": a comment", "", "data: three", ""]

    assert parsed(lines) == [StreamEvent("task", "one\ntwo", "3"), StreamEvent("message", "three", None)]


def test_an_id_alone_is_a_place() -> None:
    assert parsed(["id: 7", ""]) == [StreamEvent("message", "", "7")]


def test_an_event_that_the_stream_broke_off_in_is_left_out() -> None:
    assert parsed(["data: whole", "", "id: 2", "data: half"]) == [StreamEvent("message", "whole", None)]
