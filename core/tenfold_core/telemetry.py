"""OpenTelemetry traces: whether this process writes them, its spans, and how a trace goes on in another process.

Off unless the environment asks for it (`start`), and then the only module that knows OpenTelemetry, which is loaded
here and nowhere else. Masters, workers, links, gRPC and REST test `tracer` where something begins that is a span; what
they run then is the same in either case. docs/opentelemetry.md; why so: docs/decisions/0165-a-trace-is-a-hook.md.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import threading
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from tenfold_core import errors
from tenfold_core.build_info import build_info

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from opentelemetry.trace import Span, Tracer

    T = TypeVar("T")
    Kind = Literal["internal", "server", "client"]
    Attribute = str | int | float | bool

_log = logging.getLogger(__name__)

#: "auto": on where OpenTelemetry's own variables say where traces go; "on", "off": whatever they say.
SWITCH = "TENFOLD_OTEL"
#: Of OpenTelemetry: each of them says that traces are wanted, and where.
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
#: Characters of a W3C traceparent.
TRACEPARENT_LENGTH = 55
#: Its name in headers and metadata.
TRACEPARENT = "traceparent"
_MISSING = (
    "traces are asked for ({asked}), and OpenTelemetry is not installed: pip install 'tenfold[otel]', or {switch}=off"
)
_NAME = "tenfold"

Switch = Literal["auto", "on", "off"]
SWITCHES: tuple[Switch, ...] = ("auto", "on", "off")

#: What makes spans; None while nobody listens. Those who take part look at it themselves, `telemetry.tracer is None`:
#: that is all that a step costs then.
tracer: Tracer | None = None
#: What the command line says, before the environment.
_chosen: Switch | None = None
_decided = False
_lock = threading.Lock()


def is_on() -> bool:
    """Whether spans of this process go anywhere."""
    return tracer is not None


def choose(switch: Switch) -> None:
    """What `start` goes by, in the place of TENFOLD_OTEL in the environment."""
    global _chosen
    _chosen = switch


def wanted(environment: Mapping[str, str] = os.environ) -> Switch:
    """What the environment says: "on" where Tenfold's switch asks for traces, "auto" where OpenTelemetry's variables
    do. Raises InvalidArgumentError for a switch that has none of its values."""
    switch = _chosen or (environment.get(SWITCH, "") or "auto").lower()
    if switch not in SWITCHES:
        raise errors.invalid_argument(f"{SWITCH} is {switch!r}; it may be auto, on or off.")
    if switch != "auto":
        return "on" if switch == "on" else "off"
    off = environment.get("OTEL_SDK_DISABLED", "").lower() == "true"
    nowhere = environment.get("OTEL_TRACES_EXPORTER", "otlp").lower() == "none"
    asked = any(environment.get(name) for name in _ENDPOINTS)
    return "auto" if asked and not off and not nowhere else "off"


def start(service: str, attributes: Mapping[str, str] | None = None) -> bool:
    """Decides once in the process whether it writes traces, as the environment says; whether it does.

    `service` is its name where OTEL_SERVICE_NAME gives none, `attributes` go with all that it writes. A program that
    has set a tracer provider of OpenTelemetry's SDK keeps it. Raises FailedPreconditionError where TENFOLD_OTEL=on asks
    for traces and OpenTelemetry is not installed; where only OpenTelemetry's own variables do, which may be meant for
    other programs, the log says it.
    """
    global _decided
    if _decided:
        return is_on()
    with _lock:
        if not _decided:
            how = wanted()
            if how != "off":
                try:
                    _use(_provider(service, attributes or {}))
                except ImportError as error:
                    asked = f"{SWITCH}=on" if how == "on" else next(name for name in _ENDPOINTS if os.environ.get(name))
                    text = f"{_MISSING.format(asked=asked, switch=SWITCH)} ({error})."
                    if how == "on":
                        raise errors.failed_precondition(text) from None
                    _log.warning("No traces are written: %s", text)
            _decided = True
    return is_on()


@contextlib.contextmanager
def using(provider: Any) -> Iterator[None]:
    """Spans go to `provider` within the block, whatever the environment says. For tests and for programs that set
    everything up themselves."""
    global tracer, _decided
    before = tracer, _decided
    _use(provider)
    _decided = True
    try:
        yield
    finally:
        tracer, _decided = before


# -- spans -----------------------------------------------------------------------------------------------------------


class _NoSpan:
    """A block that is no span. Its methods are called in steps."""

    __slots__ = ()

    def __enter__(self) -> _NoSpan:
        return self

    def __exit__(self, kind: object, error: object, trace: object, /) -> None:
        pass

    def set_attribute(self, name: str, value: Attribute) -> None:
        """Drops it."""


#: What stands for `span` while nobody listens: `with telemetry.NO_SPAN if telemetry.tracer is None else …`.
NO_SPAN: contextlib.AbstractContextManager[Any] = _NoSpan()

#: Names of fetches that a span has at most, and characters of what may be long.
_FETCHES, CHARACTERS = 10, 200


@contextlib.contextmanager
def span(name: str, kind: Kind = "internal", **attributes: Attribute) -> Iterator[Span]:
    """A span over the block, below the present one. An error of the block is its status. Only while `is_on()`."""
    with _made().start_as_current_span(
        name, kind=_kind(kind), attributes=_named(attributes), record_exception=False
    ) as opened:
        yield opened


def attempt(name: str, work: Callable[[], T | None], kind: Kind = "internal", **attributes: Attribute) -> T | None:
    """What `work()` gives, and a span over it as `span`; None and no span where it gives None, which says that it did
    not run. Only while `is_on()`."""
    from opentelemetry.trace import use_span

    opened = _made().start_span(name, kind=_kind(kind), attributes=_named(attributes))
    try:
        with use_span(opened, record_exception=False, set_status_on_exception=False):
            result = work()
    except BaseException as error:
        end(opened, error)
        raise
    if result is not None:
        end(opened, None)
    return result


def begin(name: str, **attributes: Attribute) -> Span:
    """A span that `end` ends, maybe on another thread. It is not the present one. Only while `is_on()`."""
    return _made().start_span(name, attributes=_named(attributes))


def end(opened: Span, error: BaseException | None) -> None:
    """Ends what `begin` gave, with the error that it ended by."""
    if error is not None:
        from opentelemetry.trace import Status, StatusCode

        opened.set_status(Status(StatusCode.ERROR, f"{type(error).__name__}: {error}"[:1000]))
    opened.end()


def wanted_names(fetches: Sequence[str], targets: Sequence[str]) -> str:
    """What a step is asked for, as a span shows it."""
    return ",".join([*fetches, *targets][:_FETCHES])[:CHARACTERS]


def bound(work: Callable[[], T]) -> Callable[[], T]:
    """`work` for another thread, where it belongs to the present span. The same function while traces are off."""
    if tracer is None:
        return work
    import contextvars

    here = contextvars.copy_context()
    return lambda: here.run(work)


# -- from process to process -----------------------------------------------------------------------------------------


def headers() -> tuple[tuple[str, str], ...]:
    """What another process has to be told in metadata or headers, so that its spans are below the present one."""
    if tracer is None:
        return ()
    from opentelemetry.propagate import inject

    carrier: dict[str, str] = {}
    inject(carrier)
    return tuple(carrier.items())


def traceparent() -> str:
    """The same as one text of TRACEPARENT_LENGTH characters, W3C's; empty without a span."""
    return next((value for name, value in headers() if name == TRACEPARENT), "")


@contextlib.contextmanager
def below(carrier: Mapping[str, str]) -> Iterator[None]:
    """Spans of the block are below the one that `carrier`, headers or metadata, tells of. Only while `is_on()`."""
    from opentelemetry.context import attach, detach
    from opentelemetry.propagate import extract

    token = attach(extract(carrier))
    try:
        yield
    finally:
        detach(token)


def carrier_of(metadata: Iterable[tuple[str, str | bytes]] | None) -> dict[str, str]:
    """What `below` takes, of a call's metadata; empty where these tell of no trace."""
    found = {name: value for name, value in metadata or () if isinstance(value, str)}
    return found if TRACEPARENT in found else {}


def run_below(carrier: Mapping[str, str], call: Callable[..., T], *arguments: Any) -> T:
    """What `call(*arguments)` gives, run as `below`. A coroutine that it gives runs so, too, in any task."""
    with below(carrier):
        result = call(*arguments)
    # it has not begun yet, and may run as a task of its own
    return _awaited_below(carrier, result) if isinstance(result, Coroutine) else result  # type: ignore[return-value]


async def _awaited_below(carrier: Mapping[str, str], work: Coroutine[Any, Any, T]) -> T:
    with below(carrier):
        return await work


# -- setting up ------------------------------------------------------------------------------------------------------


def _use(provider: Any) -> None:
    global tracer
    tracer = provider.get_tracer(_NAME, build_info()["version"])


def _provider(service: str, attributes: Mapping[str, str]) -> Any:
    """The program's own, or one that sends to where the environment says. Raises ImportError."""
    from opentelemetry import trace
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    present = trace.get_tracer_provider()
    if isinstance(present, TracerProvider):
        return present
    # what OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say counts before ours
    told = Resource(dict(attributes)).merge(Resource.create())
    if str(told.attributes.get(SERVICE_NAME, "unknown_service")).startswith("unknown_service"):
        told = told.merge(Resource({SERVICE_NAME: service}))
    provider = TracerProvider(resource=told)
    provider.add_span_processor(BatchSpanProcessor(_exporter()))
    return provider


def _exporter() -> Any:
    protocol = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    if protocol == "grpc":
        # of a package of its own, which brings a protobuf of its choice
        return importlib.import_module("opentelemetry.exporter.otlp.proto.grpc.trace_exporter").OTLPSpanExporter()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter()


def _made() -> Tracer:
    assert tracer is not None
    return tracer


def _kind(kind: Kind) -> Any:
    from opentelemetry.trace import SpanKind

    return SpanKind[kind.upper()]


def _named(attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    """Ours begin with "tenfold."; those of OpenTelemetry's conventions come with "__" for their dots."""
    return {name.replace("__", ".") if "__" in name else f"{_NAME}.{name}": value for name, value in attributes.items()}
