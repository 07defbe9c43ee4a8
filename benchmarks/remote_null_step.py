"""2. The null step from a client process to a server process: the price of one round trip of a session."""

from __future__ import annotations

import harness
from harness import REMOTE, Case, Subject
from null_step import constant, feed_and_fetch

SUBJECT = Subject(
    number="2",
    module="remote_null_step",
    title="null step from a client process to a server process",
    sides=(harness.TENFOLD, harness.TENFOLD_TCP, harness.TENFOLD_GRPC, harness.TENSORFLOW, harness.TENSORFLOW_TUNED),
    cases=(
        Case("constant, remote", REMOTE, constant, {"tenfold": 5}, limits_us={"tenfold": 50}),
        Case("feed and fetch of a scalar, remote", REMOTE, feed_and_fetch, {"tenfold": 5}),
    ),
)

if __name__ == "__main__":
    harness.main(SUBJECT)
