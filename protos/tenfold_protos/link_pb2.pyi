from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class OpenLinkRequest(_message.Message):
    __slots__ = ("version", "task", "pid", "host_identity", "shared_memory", "tcp_only", "tls", "oldest_version", "can", "release")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    HOST_IDENTITY_FIELD_NUMBER: _ClassVar[int]
    SHARED_MEMORY_FIELD_NUMBER: _ClassVar[int]
    TCP_ONLY_FIELD_NUMBER: _ClassVar[int]
    TLS_FIELD_NUMBER: _ClassVar[int]
    OLDEST_VERSION_FIELD_NUMBER: _ClassVar[int]
    CAN_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    version: int
    task: str
    pid: int
    host_identity: str
    shared_memory: bool
    tcp_only: bool
    tls: bool
    oldest_version: int
    can: _containers.RepeatedScalarFieldContainer[str]
    release: str
    def __init__(self, version: _Optional[int] = ..., task: _Optional[str] = ..., pid: _Optional[int] = ..., host_identity: _Optional[str] = ..., shared_memory: _Optional[bool] = ..., tcp_only: _Optional[bool] = ..., tls: _Optional[bool] = ..., oldest_version: _Optional[int] = ..., can: _Optional[_Iterable[str]] = ..., release: _Optional[str] = ...) -> None: ...

class OpenLinkResponse(_message.Message):
    __slots__ = ("version", "task", "unix_name", "unix_uid", "tcp_port", "token", "shared_memory", "tls", "can", "release")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    UNIX_NAME_FIELD_NUMBER: _ClassVar[int]
    UNIX_UID_FIELD_NUMBER: _ClassVar[int]
    TCP_PORT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    SHARED_MEMORY_FIELD_NUMBER: _ClassVar[int]
    TLS_FIELD_NUMBER: _ClassVar[int]
    CAN_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    version: int
    task: str
    unix_name: bytes
    unix_uid: int
    tcp_port: int
    token: bytes
    shared_memory: bool
    tls: bool
    can: _containers.RepeatedScalarFieldContainer[str]
    release: str
    def __init__(self, version: _Optional[int] = ..., task: _Optional[str] = ..., unix_name: _Optional[bytes] = ..., unix_uid: _Optional[int] = ..., tcp_port: _Optional[int] = ..., token: _Optional[bytes] = ..., shared_memory: _Optional[bool] = ..., tls: _Optional[bool] = ..., can: _Optional[_Iterable[str]] = ..., release: _Optional[str] = ...) -> None: ...

class LinkHello(_message.Message):
    __slots__ = ("version", "token", "arena_bytes", "always_reads", "can", "streams", "joins")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    ARENA_BYTES_FIELD_NUMBER: _ClassVar[int]
    ALWAYS_READS_FIELD_NUMBER: _ClassVar[int]
    CAN_FIELD_NUMBER: _ClassVar[int]
    STREAMS_FIELD_NUMBER: _ClassVar[int]
    JOINS_FIELD_NUMBER: _ClassVar[int]
    version: int
    token: bytes
    arena_bytes: int
    always_reads: bool
    can: _containers.RepeatedScalarFieldContainer[str]
    streams: int
    joins: bytes
    def __init__(self, version: _Optional[int] = ..., token: _Optional[bytes] = ..., arena_bytes: _Optional[int] = ..., always_reads: _Optional[bool] = ..., can: _Optional[_Iterable[str]] = ..., streams: _Optional[int] = ..., joins: _Optional[bytes] = ...) -> None: ...

class LinkWelcome(_message.Message):
    __slots__ = ("version", "task", "arena_bytes", "can", "streams", "streams_key")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ARENA_BYTES_FIELD_NUMBER: _ClassVar[int]
    CAN_FIELD_NUMBER: _ClassVar[int]
    STREAMS_FIELD_NUMBER: _ClassVar[int]
    STREAMS_KEY_FIELD_NUMBER: _ClassVar[int]
    version: int
    task: str
    arena_bytes: int
    can: _containers.RepeatedScalarFieldContainer[str]
    streams: int
    streams_key: bytes
    def __init__(self, version: _Optional[int] = ..., task: _Optional[str] = ..., arena_bytes: _Optional[int] = ..., can: _Optional[_Iterable[str]] = ..., streams: _Optional[int] = ..., streams_key: _Optional[bytes] = ...) -> None: ...
