"""A gRPC server over plaintext HTTP/2 on an asyncio loop, for unary calls: what TensorFlow's clients and servers speak.

    hpack frame_types         the bytes of RFC 7541 and RFC 9113
    reader outbound           the receiving and the sending half of a connection
    peer_limits               what one peer may use up
    connection                one connection as a state machine without I/O
    handler metadata message  gRPC on top: what a handler is, headers, messages,
    calls open_calls          and calls
    connection_socket server  sockets and the loop; http2_settings has every limit

Why it exists beside grpc.aio: docs/decisions/0022-http2-without-grpc-core.md.
"""
