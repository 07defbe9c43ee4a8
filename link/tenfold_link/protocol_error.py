"""Raised when the peer breaks the link's protocol, in its frames (wire/) or in its shared memory (memory/)."""

from __future__ import annotations


class ProtocolError(Exception):
    """The peer sent what no peer of ours sends. The link cannot go on."""
