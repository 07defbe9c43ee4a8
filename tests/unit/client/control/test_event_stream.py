"""Server-sent events from lines, as the HTML standard has them."""

from __future__ import annotations

from tenfold.control.event_stream import Event, parse_events


def test_events_with_names_ids_and_several_lines() -> None:
    lines = ["event: task", "id: 3", "data: one", "data:two", "", ": a comment", "", "data: three", ""]

    assert list(parse_events(lines)) == [Event("task", "one\ntwo", "3"), Event("message", "three", None)]


def test_an_id_alone_is_a_place() -> None:
    assert list(parse_events(["id: 7", ""])) == [Event("message", "", "7")]


def test_an_event_that_the_stream_broke_off_in_is_left_out() -> None:
    assert list(parse_events(["data: whole", "", "id: 2", "data: half"])) == [Event("message", "whole", None)]
