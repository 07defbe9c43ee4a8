from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LinkPush(_message.Message):
    __slots__ = ("task", "key")
    TASK_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    task: str
    key: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, task: _Optional[str] = ..., key: _Optional[_Iterable[str]] = ...) -> None: ...

class LinkRunPlan(_message.Message):
    __slots__ = ("session_handle", "graph_handle", "feed_key", "fetch_key", "answer_key", "push", "expected_key", "call_key")
    SESSION_HANDLE_FIELD_NUMBER: _ClassVar[int]
    GRAPH_HANDLE_FIELD_NUMBER: _ClassVar[int]
    FEED_KEY_FIELD_NUMBER: _ClassVar[int]
    FETCH_KEY_FIELD_NUMBER: _ClassVar[int]
    ANSWER_KEY_FIELD_NUMBER: _ClassVar[int]
    PUSH_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_KEY_FIELD_NUMBER: _ClassVar[int]
    CALL_KEY_FIELD_NUMBER: _ClassVar[int]
    session_handle: str
    graph_handle: str
    feed_key: _containers.RepeatedScalarFieldContainer[str]
    fetch_key: _containers.RepeatedScalarFieldContainer[str]
    answer_key: _containers.RepeatedScalarFieldContainer[str]
    push: _containers.RepeatedCompositeFieldContainer[LinkPush]
    expected_key: _containers.RepeatedScalarFieldContainer[str]
    call_key: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, session_handle: _Optional[str] = ..., graph_handle: _Optional[str] = ..., feed_key: _Optional[_Iterable[str]] = ..., fetch_key: _Optional[_Iterable[str]] = ..., answer_key: _Optional[_Iterable[str]] = ..., push: _Optional[_Iterable[_Union[LinkPush, _Mapping]]] = ..., expected_key: _Optional[_Iterable[str]] = ..., call_key: _Optional[_Iterable[str]] = ...) -> None: ...

class LinkArrangeRequest(_message.Message):
    __slots__ = ("task",)
    TASK_FIELD_NUMBER: _ClassVar[int]
    task: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, task: _Optional[_Iterable[str]] = ...) -> None: ...

class LinkArrangeResponse(_message.Message):
    __slots__ = ("task",)
    TASK_FIELD_NUMBER: _ClassVar[int]
    task: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, task: _Optional[_Iterable[str]] = ...) -> None: ...

class LinkProducer(_message.Message):
    __slots__ = ("task", "incarnation")
    TASK_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    task: str
    incarnation: int
    def __init__(self, task: _Optional[str] = ..., incarnation: _Optional[int] = ...) -> None: ...
