"""The bounds of a tunnel: one frozen dataclass, read from the environment once, by `tenfold tunnel`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tenfold_core.env_settings import FromEnvironment


@dataclass(frozen=True, slots=True)
class TunnelSettings(FromEnvironment):
    """Sizes are bytes, times are seconds."""

    prefix: ClassVar[str] = "TENFOLD_TUNNEL_"

    #: At the same time. A TensorFlow process opens one or two to each task that it knows.
    connections: int = 64
    #: What is under way in one direction of a connection.
    buffer_bytes: int = 256 << 10
    #: For the connection to the other end, and for the handshake of TLS with it.
    connect_seconds: float = 10.0
    #: A connection ends when an end takes less than a buffer in so long, or when one end has finished and the other is
    #: silent for so long. One that is open at both ends may be silent for ever: the system asks whether its peers live.
    stall_seconds: float = 300.0
    #: The system asks for a sign of life on connections where nothing happens, every so often; three times in vain.
    keepalive_seconds: int = 60
