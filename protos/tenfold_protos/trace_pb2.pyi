from tenfold_protos import step_stats_pb2 as _step_stats_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TracedStep(_message.Message):
    __slots__ = ("begin_nanos", "end_nanos", "fetch", "step_stats", "error")
    BEGIN_NANOS_FIELD_NUMBER: _ClassVar[int]
    END_NANOS_FIELD_NUMBER: _ClassVar[int]
    FETCH_FIELD_NUMBER: _ClassVar[int]
    STEP_STATS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    begin_nanos: int
    end_nanos: int
    fetch: _containers.RepeatedScalarFieldContainer[str]
    step_stats: _step_stats_pb2.StepStats
    error: str
    def __init__(self, begin_nanos: _Optional[int] = ..., end_nanos: _Optional[int] = ..., fetch: _Optional[_Iterable[str]] = ..., step_stats: _Optional[_Union[_step_stats_pb2.StepStats, _Mapping]] = ..., error: _Optional[str] = ...) -> None: ...

class ProgramTrace(_message.Message):
    __slots__ = ("step", "note")
    STEP_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    step: _containers.RepeatedCompositeFieldContainer[TracedStep]
    note: str
    def __init__(self, step: _Optional[_Iterable[_Union[TracedStep, _Mapping]]] = ..., note: _Optional[str] = ...) -> None: ...
