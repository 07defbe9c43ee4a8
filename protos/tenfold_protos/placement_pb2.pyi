from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetPlacementRequest(_message.Message):
    __slots__ = ("session_handle",)
    SESSION_HANDLE_FIELD_NUMBER: _ClassVar[int]
    session_handle: str
    def __init__(self, session_handle: _Optional[str] = ...) -> None: ...

class NodePlacement(_message.Message):
    __slots__ = ("name", "op", "requested", "assigned", "reason")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OP_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_FIELD_NUMBER: _ClassVar[int]
    ASSIGNED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    name: str
    op: int
    requested: int
    assigned: int
    reason: int
    def __init__(self, name: _Optional[str] = ..., op: _Optional[int] = ..., requested: _Optional[int] = ..., assigned: _Optional[int] = ..., reason: _Optional[int] = ...) -> None: ...

class TaskPlacement(_message.Message):
    __slots__ = ("task", "nodes", "variables", "variable_bytes")
    TASK_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    VARIABLES_FIELD_NUMBER: _ClassVar[int]
    VARIABLE_BYTES_FIELD_NUMBER: _ClassVar[int]
    task: str
    nodes: int
    variables: int
    variable_bytes: int
    def __init__(self, task: _Optional[str] = ..., nodes: _Optional[int] = ..., variables: _Optional[int] = ..., variable_bytes: _Optional[int] = ...) -> None: ...

class GetPlacementResponse(_message.Message):
    __slots__ = ("text", "node", "task", "graph_version")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    GRAPH_VERSION_FIELD_NUMBER: _ClassVar[int]
    text: _containers.RepeatedScalarFieldContainer[str]
    node: _containers.RepeatedCompositeFieldContainer[NodePlacement]
    task: _containers.RepeatedCompositeFieldContainer[TaskPlacement]
    graph_version: int
    def __init__(self, text: _Optional[_Iterable[str]] = ..., node: _Optional[_Iterable[_Union[NodePlacement, _Mapping]]] = ..., task: _Optional[_Iterable[_Union[TaskPlacement, _Mapping]]] = ..., graph_version: _Optional[int] = ...) -> None: ...
