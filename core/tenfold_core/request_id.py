"""Numbers of requests: the same number again is the same request again, and is not served twice.

Given by those that ask (tenfold/session/grpc_master.py, tenfold_services/rpc/grpc_worker.py), remembered by those that
serve (tenfold_services/master/request_ids.py and rpc/worker_service.py). In TensorFlow: request_id.cc.
"""

from __future__ import annotations

import os


def new_request_id() -> int:
    """A random number that fits int64, other than 0, which stands for none."""
    return int.from_bytes(os.urandom(8), "little") >> 1 or 1
