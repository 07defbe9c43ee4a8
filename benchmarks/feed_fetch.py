"""9. Feeding and fetching large tensors, in process and from a client process; read-only and unaligned arrays too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import harness
import numpy as np
from harness import ALONE, PS_WORKER, REMOTE, Case, Context, Measure, Subject

if TYPE_CHECKING:
    from collections.abc import Callable


def make_array(megabytes: int, kind: str) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """float32 [n]: writable and aligned, read-only, or one byte beside any alignment."""
    count = megabytes * 1_000_000 // 4
    raw = bytearray(4 * count + 64)
    array = np.frombuffer(raw, np.float32, count, offset=1) if kind == "unaligned" else np.zeros(count, np.float32)
    array[:] = np.arange(count) % 1000
    if kind == "read-only":
        array.flags.writeable = False
    return array


def feed(megabytes: int, kind: str = "plain", device: str = "/job:worker/task:0") -> Callable[[Context], Measure]:
    """Feed the array, fetch four of its elements: the transfer is the whole work."""

    def build(ctx: Context) -> Measure:
        tf = ctx.tf
        array = make_array(megabytes, kind)
        graph = tf.Graph()
        with ctx.building(graph), tf.device(None if ctx.side.direct else device):
            x = tf.placeholder(tf.float32, [len(array)], name="x")
            last = tf.slice(x, [len(array) - 4], [4])
            total = tf.reduce_sum(tf.reshape(x, [1000, -1]), 1)
        sess = ctx.session(graph)
        feeds = {x: array}
        return Measure(
            step=lambda: sess.run(last, feeds),
            result=lambda: {"last": sess.run(last, feeds), "total": sess.run(total, feeds)},
        )

    return build


def fetch(
    megabytes: int,
    device: str = "/job:worker/task:0",
    use: Callable[[np.ndarray[tuple[int, ...], np.dtype[np.float32]]], object] = lambda fetched: fetched,
) -> Callable[[Context], Measure]:
    """Fetch a variable and `use` it; one row of it is written between the steps, untimed."""
    count = megabytes * 1_000_000 // 4

    def build(ctx: Context) -> Measure:
        tf = ctx.tf
        graph = tf.Graph()
        with ctx.building(graph), tf.device(None if ctx.side.direct else device):
            v = tf.Variable(tf.fill([count // 1000, 1000], 0.5), name="v")
            touch = tf.scatter_add(v, [0], np.ones([1, 1000], np.float32)).op
            init = tf.global_variables_initializer()
        sess = ctx.session(graph)
        sess.run(init)

        def result() -> dict[str, object]:
            first = sess.run(v)
            sess.run(touch)
            # A fetched array belongs to the caller: a later write to the variable must not change it.
            return {"first": first[:2, :4], "second": sess.run(v)[:2, :4], "sum": first.sum(1)}

        return Measure(step=lambda: use(sess.run(v)), result=result, between=lambda: sess.run(touch))

    return build


def read(fetched: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> object:
    """Reads every element, so that an array returned by reference is read as well."""
    return fetched.sum()


def write(fetched: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> object:
    """Writes to every element, so that an array returned by reference is copied."""
    fetched += 1
    return fetched


GRPC = ("tensorflow", "tensorflow tuned")
HERE = ("tenfold", "tensorflow", "tensorflow tuned", "tensorflow direct")
THERE = ("tenfold", "tenfold tcp", "tenfold grpc", "tensorflow", "tensorflow tuned")


def local(name: str, build: Callable[[Context], Measure], megabytes: int, demand: float | None = 40) -> Case:
    demands = {"tenfold": demand} if demand else {}
    return Case(name, ALONE, build, demands, against=GRPC, sides=HERE, work=megabytes * 1e6, unit="B")


def remote(
    name: str, build: Callable[[Context], Measure], megabytes: int, demand: float | None = 4, paths: bool = False
) -> Case:
    demands = {"tenfold": demand} if demand else {}
    sides = THERE if paths else ("tenfold", "tensorflow", "tensorflow tuned")
    return Case(name, REMOTE, build, demands, sides=sides, work=megabytes * 1e6, unit="B")


def across(name: str, build: Callable[[Context], Measure], megabytes: int) -> Case:
    """The client hosts the worker's server, and the ps is another process."""
    sides = ("tenfold", "tensorflow", "tensorflow tuned")
    return Case(name, PS_WORKER, build, {"tenfold": 4}, sides=sides, work=megabytes * 1e6, unit="B")


PS = "/job:ps/task:0"

SUBJECT = Subject(
    number="9",
    module="feed_fetch",
    title="feed and fetch",
    sides=(
        harness.TENFOLD,
        harness.TENFOLD_TCP,
        harness.TENFOLD_GRPC,
        harness.TENSORFLOW,
        harness.TENSORFLOW_TUNED,
        harness.TENSORFLOW_DIRECT,
    ),
    cases=(
        local("feed 16 MB in process", feed(16), 16, None),
        local("feed 64 MB in process", feed(64), 64),
        local("feed 64 MB read-only in process", feed(64, "read-only"), 64, None),
        local("feed 64 MB unaligned in process", feed(64, "unaligned"), 64, None),
        local("fetch 64 MB in process", fetch(64), 64),
        local("fetch 64 MB in process and read it", fetch(64, use=read), 64, None),
        local("fetch 64 MB in process and write to it", fetch(64, use=write), 64, None),
        remote("feed 16 MB remote", feed(16), 16),
        remote("feed 64 MB remote", feed(64), 64, paths=True),
        remote("feed 64 MB read-only remote", feed(64, "read-only"), 64, None),
        remote("feed 64 MB unaligned remote", feed(64, "unaligned"), 64, None),
        remote("fetch 64 MB remote", fetch(64), 64, paths=True),
        remote("fetch 64 MB remote and read it", fetch(64, use=read), 64),
        remote("fetch 64 MB remote and write to it", fetch(64, use=write), 64, None),
        across("feed 16 MB to a ps", feed(16, device=PS), 16),
        across("fetch 64 MB from a ps", fetch(64, device=PS), 64),
    ),
)

if __name__ == "__main__":
    harness.main(SUBJECT)
