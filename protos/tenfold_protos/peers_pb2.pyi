from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TaskLife(_message.Message):
    __slots__ = ("task", "incarnation")
    TASK_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    task: str
    incarnation: int
    def __init__(self, task: _Optional[str] = ..., incarnation: _Optional[int] = ...) -> None: ...

class ExchangeFinishedRequest(_message.Message):
    __slots__ = ("task", "caller")
    TASK_FIELD_NUMBER: _ClassVar[int]
    CALLER_FIELD_NUMBER: _ClassVar[int]
    task: _containers.RepeatedCompositeFieldContainer[TaskLife]
    caller: TaskLife
    def __init__(self, task: _Optional[_Iterable[_Union[TaskLife, _Mapping]]] = ..., caller: _Optional[_Union[TaskLife, _Mapping]] = ...) -> None: ...

class ExchangeFinishedResponse(_message.Message):
    __slots__ = ("task", "callee")
    TASK_FIELD_NUMBER: _ClassVar[int]
    CALLEE_FIELD_NUMBER: _ClassVar[int]
    task: _containers.RepeatedCompositeFieldContainer[TaskLife]
    callee: TaskLife
    def __init__(self, task: _Optional[_Iterable[_Union[TaskLife, _Mapping]]] = ..., callee: _Optional[_Union[TaskLife, _Mapping]] = ...) -> None: ...
