from tenfold_protos import why_pb2 as _why_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TaskAddress(_message.Message):
    __slots__ = ("task", "address")
    TASK_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    task: str
    address: str
    def __init__(self, task: _Optional[str] = ..., address: _Optional[str] = ...) -> None: ...

class ExamineRequest(_message.Message):
    __slots__ = ("peer", "seconds", "cluster", "links", "waits_of_session", "why")
    PEER_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    WAITS_OF_SESSION_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    peer: _containers.RepeatedCompositeFieldContainer[TaskAddress]
    seconds: float
    cluster: bool
    links: bool
    waits_of_session: str
    why: bool
    def __init__(self, peer: _Optional[_Iterable[_Union[TaskAddress, _Mapping]]] = ..., seconds: _Optional[float] = ..., cluster: _Optional[bool] = ..., links: _Optional[bool] = ..., waits_of_session: _Optional[str] = ..., why: _Optional[bool] = ...) -> None: ...

class PeerFinding(_message.Message):
    __slots__ = ("task", "address", "error", "seconds", "link", "link_error", "link_version", "release")
    TASK_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    LINK_FIELD_NUMBER: _ClassVar[int]
    LINK_ERROR_FIELD_NUMBER: _ClassVar[int]
    LINK_VERSION_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    task: str
    address: str
    error: str
    seconds: float
    link: str
    link_error: str
    link_version: int
    release: str
    def __init__(self, task: _Optional[str] = ..., address: _Optional[str] = ..., error: _Optional[str] = ..., seconds: _Optional[float] = ..., link: _Optional[str] = ..., link_error: _Optional[str] = ..., link_version: _Optional[int] = ..., release: _Optional[str] = ...) -> None: ...

class ExamineResponse(_message.Message):
    __slots__ = ("peer", "now", "version", "host", "wait", "why")
    class VersionEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PEER_FIELD_NUMBER: _ClassVar[int]
    NOW_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    peer: _containers.RepeatedCompositeFieldContainer[PeerFinding]
    now: float
    version: _containers.ScalarMap[str, str]
    host: str
    wait: _containers.RepeatedScalarFieldContainer[str]
    why: _why_pb2.TaskAnswer
    def __init__(self, peer: _Optional[_Iterable[_Union[PeerFinding, _Mapping]]] = ..., now: _Optional[float] = ..., version: _Optional[_Mapping[str, str]] = ..., host: _Optional[str] = ..., wait: _Optional[_Iterable[str]] = ..., why: _Optional[_Union[_why_pb2.TaskAnswer, _Mapping]] = ...) -> None: ...
