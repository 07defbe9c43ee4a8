from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StepWait(_message.Message):
    __slots__ = ("kind", "node", "op", "resource", "have", "need", "sender", "tensor", "seconds", "step", "holder", "session", "master")
    KIND_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    OP_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    HAVE_FIELD_NUMBER: _ClassVar[int]
    NEED_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    TENSOR_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    MASTER_FIELD_NUMBER: _ClassVar[int]
    kind: str
    node: str
    op: str
    resource: str
    have: int
    need: int
    sender: str
    tensor: str
    seconds: float
    step: int
    holder: int
    session: str
    master: str
    def __init__(self, kind: _Optional[str] = ..., node: _Optional[str] = ..., op: _Optional[str] = ..., resource: _Optional[str] = ..., have: _Optional[int] = ..., need: _Optional[int] = ..., sender: _Optional[str] = ..., tensor: _Optional[str] = ..., seconds: _Optional[float] = ..., step: _Optional[int] = ..., holder: _Optional[int] = ..., session: _Optional[str] = ..., master: _Optional[str] = ...) -> None: ...

class RunningStep(_message.Message):
    __slots__ = ("step", "session", "master", "seconds", "computes")
    STEP_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    MASTER_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    COMPUTES_FIELD_NUMBER: _ClassVar[int]
    step: int
    session: str
    master: str
    seconds: float
    computes: bool
    def __init__(self, step: _Optional[int] = ..., session: _Optional[str] = ..., master: _Optional[str] = ..., seconds: _Optional[float] = ..., computes: _Optional[bool] = ...) -> None: ...

class ResourceUse(_message.Message):
    __slots__ = ("resource", "node", "op", "gives", "session", "master", "step")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    OP_FIELD_NUMBER: _ClassVar[int]
    GIVES_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    MASTER_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    resource: str
    node: str
    op: str
    gives: bool
    session: str
    master: str
    step: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, resource: _Optional[str] = ..., node: _Optional[str] = ..., op: _Optional[str] = ..., gives: _Optional[bool] = ..., session: _Optional[str] = ..., master: _Optional[str] = ..., step: _Optional[_Iterable[int]] = ...) -> None: ...

class OpenSession(_message.Message):
    __slots__ = ("handle", "owner", "own")
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    OWN_FIELD_NUMBER: _ClassVar[int]
    handle: str
    owner: str
    own: bool
    def __init__(self, handle: _Optional[str] = ..., owner: _Optional[str] = ..., own: _Optional[bool] = ...) -> None: ...

class StackFrame(_message.Message):
    __slots__ = ("file", "line", "function", "library")
    FILE_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    LIBRARY_FIELD_NUMBER: _ClassVar[int]
    file: str
    line: int
    function: str
    library: bool
    def __init__(self, file: _Optional[str] = ..., line: _Optional[int] = ..., function: _Optional[str] = ..., library: _Optional[bool] = ...) -> None: ...

class ThreadStack(_message.Message):
    __slots__ = ("name", "main", "doing", "node", "op", "frame")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MAIN_FIELD_NUMBER: _ClassVar[int]
    DOING_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    OP_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    main: bool
    doing: str
    node: str
    op: str
    frame: _containers.RepeatedCompositeFieldContainer[StackFrame]
    def __init__(self, name: _Optional[str] = ..., main: _Optional[bool] = ..., doing: _Optional[str] = ..., node: _Optional[str] = ..., op: _Optional[str] = ..., frame: _Optional[_Iterable[_Union[StackFrame, _Mapping]]] = ...) -> None: ...

class ClientStep(_message.Message):
    __slots__ = ("name", "seconds")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    name: _containers.RepeatedScalarFieldContainer[str]
    seconds: float
    def __init__(self, name: _Optional[_Iterable[str]] = ..., seconds: _Optional[float] = ...) -> None: ...

class TaskAnswer(_message.Message):
    __slots__ = ("task", "host", "pid", "wait", "running", "use", "session", "thread", "client_step", "cut")
    TASK_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    USE_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    THREAD_FIELD_NUMBER: _ClassVar[int]
    CLIENT_STEP_FIELD_NUMBER: _ClassVar[int]
    CUT_FIELD_NUMBER: _ClassVar[int]
    task: str
    host: str
    pid: int
    wait: _containers.RepeatedCompositeFieldContainer[StepWait]
    running: _containers.RepeatedCompositeFieldContainer[RunningStep]
    use: _containers.RepeatedCompositeFieldContainer[ResourceUse]
    session: _containers.RepeatedCompositeFieldContainer[OpenSession]
    thread: _containers.RepeatedCompositeFieldContainer[ThreadStack]
    client_step: _containers.RepeatedCompositeFieldContainer[ClientStep]
    cut: bool
    def __init__(self, task: _Optional[str] = ..., host: _Optional[str] = ..., pid: _Optional[int] = ..., wait: _Optional[_Iterable[_Union[StepWait, _Mapping]]] = ..., running: _Optional[_Iterable[_Union[RunningStep, _Mapping]]] = ..., use: _Optional[_Iterable[_Union[ResourceUse, _Mapping]]] = ..., session: _Optional[_Iterable[_Union[OpenSession, _Mapping]]] = ..., thread: _Optional[_Iterable[_Union[ThreadStack, _Mapping]]] = ..., client_step: _Optional[_Iterable[_Union[ClientStep, _Mapping]]] = ..., cut: _Optional[bool] = ...) -> None: ...
