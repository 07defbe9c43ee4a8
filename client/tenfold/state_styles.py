"""How the state of a task, a run, or a task of a run is coloured: in a terminal (rich's names), in a notebook (CSS)."""

from __future__ import annotations

STYLES = {
    **{"ready": "green", "finished": "blue", "missing": "yellow", "stopped": "yellow", "lost": "bold red"},
    **{"PENDING": "yellow", "RUNNING": "cyan", "SUCCEEDED": "green", "FAILED": "bold red", "STOPPED": "yellow"},
    **{"waiting": "yellow", "running": "cyan", "succeeded": "green", "failed": "bold red"},
}
#: The same colours on white and on black paper.
CSS_COLOURS = {"green": "#2a8a3e", "yellow": "#a87900", "cyan": "#1787a8", "blue": "#3f6fd1", "bold red": "#d1383d"}


def css_colour(state: str) -> str:
    """Unknown states, of a newer service, look like text."""
    return CSS_COLOURS.get(STYLES.get(state, ""), "inherit")
