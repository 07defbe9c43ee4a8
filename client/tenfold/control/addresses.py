"""Where control services that share a database are, and which of them is asked. Used by exchange.py.

One serves as well as another, so a client stays with the one that answered last, and goes on to the next one when it
cannot be reached.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Services that a client remembers.
_MOST = 32


class Addresses:
    """The services of `text`, `http://a:8080,http://b:8080`. Any thread may use it: at worst one is asked twice."""

    def __init__(self, text: str) -> None:
        """Raises InvalidArgumentError for a text that names none, or something else."""
        self.urls = [part.strip().rstrip("/") for part in text.split(",") if part.strip()]
        for url in self.urls:
            if urlsplit(url).scheme not in ("http", "https"):
                raise errors.InvalidArgumentError(
                    None, None, f"{url!r} is not a URL of a control service; it begins with http:// or https://."
                )
        if not self.urls:
            raise errors.InvalidArgumentError(None, None, "the URL of the control service is empty.")
        self._at = 0

    @property
    def current(self) -> str:
        """The one to ask."""
        return self.urls[self._at]

    def leave(self, url: str) -> None:
        """It did not answer: the next one is asked from now on, unless that is so already."""
        if self.current == url:
            self._at = (self._at + 1) % len(self.urls)

    def learn(self, urls: Iterable[str]) -> None:
        """These serve as well; they are asked after those that are known."""
        self.urls += [url for url in urls if url not in self.urls][: _MOST - len(self.urls)]

    def __str__(self) -> str:
        return " and ".join(self.urls)
