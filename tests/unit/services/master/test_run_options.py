"""What a client's RunOptions may ask for: master/run_options.py."""

from __future__ import annotations

import pytest

from tenfold_core import errors
from tenfold_protos import config_pb2
from tenfold_services.master.run_options import check_options


def test_a_watch_that_sends_what_it_sees_nowhere_is_no_debugger() -> None:
    options, config = config_pb2.RunOptions(), config_pb2.ConfigProto()
    watch = options.debug_options.debug_tensor_watch_opts.add(node_name="x", debug_ops=["DebugIdentity"])

    check_options(options, config)

    watch.debug_urls.append("grpc://localhost:6064")
    with pytest.raises(errors.UnimplementedError, match="debugger is not served"):
        check_options(options, config)
