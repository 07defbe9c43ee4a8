"""A program that stands still on purpose, in the way that its first argument names; test_why.py runs it as a cluster.

`ready()` tells the test that a task is about to do so. Each way is a function of the task's job, index and server; a
parameter server only serves, unless its function says otherwise.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

import tenfold as tf
from tenfold.ops.accumulators import Barrier

if TYPE_CHECKING:
    from collections.abc import Callable

PS, W0, W1 = "/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"
WAYS: dict[str, Callable[[Any, int], None]] = {}


def way(function: Callable[[Any, int], None]) -> Callable[[Any, int], None]:
    """Called by each worker with its server and its index."""
    WAYS[function.__name__] = function
    return function


def ready() -> None:
    socket.create_connection(("127.0.0.1", int(sys.argv[2]))).sendall(b"!")


def for_ever() -> None:
    threading.Event().wait()


def in_the_way() -> None:
    """The code of the program that keeps others waiting."""
    ready()
    threading.Event().wait()


def slow_function() -> Any:
    ready()
    threading.Event().wait()
    return np.float32(1)


def queue(name: str, capacity: int = 2, place: str = PS) -> Any:
    with tf.device(place):
        return tf.FIFOQueue(capacity, tf.float32, [[]], name=name, shared_name=name)


@way
def empty_queue(server: Any, index: int) -> None:
    """Nobody has an operation that fills it."""
    got = queue("work").dequeue(name="get")
    with tf.Session(server.target) as session:
        ready()
        if index:
            for_ever()
        session.run(got)


@way
def idle_producer(server: Any, index: int) -> None:
    work = queue("work")
    put, got = work.enqueue(1.0), work.dequeue(name="get")
    with tf.Session(server.target) as session:
        if index:
            session.run(put)
            in_the_way()
        ready()
        while True:
            session.run(got)


@way
def full_queue(server: Any, index: int) -> None:
    """Nobody takes anything out."""
    put = queue("work").enqueue(1.0, name="put")
    with tf.Session(server.target) as session:
        ready()
        while not index:
            session.run(put)
        for_ever()


@way
def idle_consumer(server: Any, index: int) -> None:
    work = queue("work")
    put, got = work.enqueue(1.0, name="put"), work.dequeue()
    with tf.Session(server.target) as session:
        if index:
            session.run(got)
            in_the_way()
        ready()
        while True:
            session.run(put)


def accumulate(server: Any, index: int, late: Callable[[], None]) -> None:
    """Worker 0 waits for two gradients, of which worker 1 does not bring its own."""
    with tf.device(PS):
        kept = tf.ConditionalAccumulator(tf.float32, [], shared_name="grads")
        give, take = kept.apply_grad(1.0, local_step=100), kept.take_grad(2, name="take")
    with tf.Session(server.target) as session:
        if index:
            session.run(give)
            late()
        ready()
        session.run(take)


@way
def missing_gradient(server: Any, index: int) -> None:
    accumulate(server, index, in_the_way)


@way
def stopped_worker(server: Any, index: int) -> None:
    accumulate(server, index, in_the_way)


@way
def killed_worker(server: Any, index: int) -> None:
    def die() -> None:
        ready()
        os.abort()

    accumulate(server, index, die)


@way
def token_short(server: Any, index: int) -> None:
    """Synchronous training: the chief gives a token too few."""
    with tf.device(PS):
        tokens = tf.FIFOQueue(3, tf.int64, [[]], name="sync_token_q", shared_name="sync_token_q")
        put, got = tokens.enqueue(tf.constant(1, tf.int64)), tokens.dequeue(name="token")
    with tf.Session(server.target) as session:
        if not index:
            session.run(put)
            in_the_way()
        session.run(got)
        ready()
        session.run(got)


@way
def stopped_ps(server: Any, index: int) -> None:
    work = queue("work")
    got = work.dequeue(name="get")
    with tf.Session(server.target) as session:
        ready()
        session.run(got)


@way
def one_function(server: Any, index: int) -> None:
    slow = tf.py_func(slow_function, [], tf.float32, name="slow")
    with tf.Session(server.target) as session:
        if index:
            ready()
            for_ever()
        session.run(slow)


@way
def slow_reader(server: Any, index: int) -> None:
    """A queue runner whose function reads something that does not come."""
    work = queue("examples", place=f"/job:worker/task:{index}")
    with tf.device(f"/job:worker/task:{index}"):
        put = work.enqueue(tf.py_func(slow_function, [], tf.float32, name="read_file"))
        got = work.dequeue(name="next_example")
    with tf.Session(server.target) as session:
        if index:
            ready()
            for_ever()
        threading.Thread(target=session.run, args=(put,), daemon=True).start()
        ready()
        session.run(got)


@way
def two_functions(server: Any, index: int) -> None:
    """Each holds the lock that the other wants."""
    one, other = threading.Lock(), threading.Lock()
    meet = threading.Barrier(2)

    def first() -> Any:
        with one:
            meet.wait()
            ready()
            with other:
                return np.float32(1)

    def second() -> Any:
        with other:
            meet.wait()
            with one:
                return np.float32(1)

    with tf.device(f"/job:worker/task:{index}"):
        steps = [tf.py_func(each, [], tf.float32, name=each.__name__) for each in (first, second)]
    with tf.Session(server.target) as session:
        if index:
            ready()
            for_ever()
        threading.Thread(target=session.run, args=(steps[1],), daemon=True).start()
        session.run(steps[0])


@way
def held_lock(server: Any, index: int) -> None:
    """A step of one thread holds the lock of a critical section while its function does not end."""
    with tf.device(f"/job:worker/task:{index}"):
        section = tf.CriticalSection(name="section", shared_name="section")
        holds = section.execute(lambda: tf.py_func(slow_function, [], tf.float32, name="holder"))
        wants = section.execute(lambda: tf.constant(1.0), name="wants")
    with tf.Session(server.target) as session:
        if index:
            ready()
            for_ever()
        threading.Thread(target=session.run, args=(holds,), daemon=True).start()
        while True:
            session.run(wants)


@way
def lost_chief(server: Any, index: int) -> None:
    if not index:
        ready()
        os.abort()
    monitored(server, index)


@way
def slow_chief(server: Any, index: int) -> None:
    if not index:
        in_the_way()
    monitored(server, index)


def monitored(server: Any, index: int) -> None:
    with tf.device(tf.train.replica_device_setter(worker_device=f"/job:worker/task:{index}", ps_tasks=1)):
        tf.get_variable("w", [], initializer=tf.zeros_initializer())
        tf.train.get_or_create_global_step()
    ready()
    with tf.train.MonitoredTrainingSession(server.target, is_chief=index == 0):
        pass


@way
def barrier(server: Any, index: int) -> None:
    """Of one key a component never comes."""
    with tf.device(PS):
        kept = Barrier((tf.float32, tf.float32), shapes=((), ()), shared_name="meeting", name="meeting")
        first = kept.insert_many(0, ["a"], [1.0])
        take = kept.take_many(1, name="take")
    with tf.Session(server.target) as session:
        if index:
            session.run(first)
            in_the_way()
        ready()
        session.run(take)


@way
def staging(server: Any, index: int) -> None:
    with tf.device(W0):
        area = tf.contrib.staging.StagingArea([tf.float32], shapes=[[]], shared_name="stage")
        got = area.get()
    with tf.Session(server.target) as session:
        ready()
        if index:
            for_ever()
        session.run(got)


@way
def no_server(server: Any, index: int) -> None:
    """Worker 0 waits for its session: worker 1 has no server yet (see main)."""
    with tf.device(W1):
        one = tf.constant(1.0) + 1.0
    ready()
    with tf.Session(server.target) as session:
        session.run(one)


@way
def generator(server: Any, index: int) -> None:
    def examples() -> Any:
        yield np.float32(1)
        yield slow_function()

    with tf.device(f"/job:worker/task:{index}"):
        data = tf.data.Dataset.from_generator(examples, tf.float32, [])
        following = tf.data.make_one_shot_iterator(data).get_next()
    with tf.Session(server.target) as session:
        if index:
            ready()
            for_ever()
        while True:
            session.run(following)


@way
def part_elsewhere(server: Any, index: int) -> None:
    """A step of worker 0 has a part at worker 1, which waits in a queue that worker 1 should fill."""
    work = queue("inner", place=W1)
    with tf.device(W1):
        put, got = work.enqueue(1.0), work.dequeue(name="inner_get") * 2.0
    with tf.device(W0):
        tripled = got * 3.0
    with tf.Session(server.target) as session:
        if index:
            session.run(put)
            in_the_way()
        ready()
        while True:
            session.run(tripled)


@way
def loop(server: Any, index: int) -> None:
    """A dequeue in a loop, the second time."""
    work = queue("turns")
    put = work.enqueue(1.0)
    with tf.device(PS):
        total = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x + work.dequeue(name="turn")), (0, 0.0))[1]
    with tf.Session(server.target) as session:
        if index:
            session.run(put)
            in_the_way()
        ready()
        session.run(total)


@way
def own_code(server: Any, index: int) -> None:
    """No step at all: worker 0 is in its own code, worker 1 in a `join`."""
    if not index:
        in_the_way()
    ready()
    server.join()


@way
def shuffle(server: Any, index: int) -> None:
    """As many elements as have to stay in."""
    with tf.device(PS):
        work = tf.RandomShuffleQueue(10, 2, tf.float32, [[]], name="shuffled", shared_name="shuffled")
        put, got = work.enqueue(1.0), work.dequeue(name="get")
    with tf.Session(server.target) as session:
        if index:
            session.run(put)
            session.run(put)
            in_the_way()
        ready()
        session.run(got)


@way
def large_batch(server: Any, index: int) -> None:
    """Three elements of five."""
    work = queue("batches", 10)
    put, got = work.enqueue(1.0), work.dequeue_many(5, name="get")
    with tf.Session(server.target) as session:
        if index:
            for _ in range(3):
                session.run(put)
            in_the_way()
        ready()
        session.run(got)


@way
def file_names(server: Any, index: int) -> None:
    """A reader waits for the name of a file."""
    with tf.device(f"/job:worker/task:{index}"):
        names = tf.FIFOQueue(3, tf.string, [[]], name="files", shared_name="files")
        _, record = tf.TextLineReader(name="reader").read(names, name="read")
    with tf.Session(server.target) as session:
        ready()
        if index:
            for_ever()
        session.run(record)


@way
def crossed_locks(server: Any, index: int) -> None:
    """Two steps take two locks in different orders: each holds what the other wants."""
    meet = threading.Barrier(2)

    def meeting() -> Any:
        meet.wait()
        return np.float32(1)

    with tf.device(f"/job:worker/task:{index}"):
        first, second = (tf.CriticalSection(name=name, shared_name=name) for name in ("first", "second"))

        def nested(inner: Any) -> Any:
            with tf.control_dependencies([tf.py_func(meeting, [], tf.float32)]):
                return inner.execute(lambda: tf.constant(1.0))

        steps = [first.execute(lambda: nested(second)), second.execute(lambda: nested(first))]
    with tf.Session(server.target) as session:
        ready()
        if index:
            for_ever()
        threading.Thread(target=session.run, args=(steps[1],), daemon=True).start()
        session.run(steps[0])


@way
def stopped_producer(server: Any, index: int) -> None:
    idle_producer(server, index)


@way
def stopped_chief(server: Any, index: int) -> None:
    slow_chief(server, index)


@way
def full_staging(server: Any, index: int) -> None:
    with tf.device(W0):
        area = tf.contrib.staging.StagingArea([tf.float32], shapes=[[]], shared_name="stage", capacity=1)
        put = area.put([1.0])
    with tf.Session(server.target) as session:
        ready()
        while not index:
            session.run(put)
        for_ever()


@way
def sparse_gradient(server: Any, index: int) -> None:
    with tf.device(PS):
        kept = tf.SparseConditionalAccumulator(tf.float32, [4], shared_name="rows")
        give = kept.apply_grad(np.array([1]), np.array([1.0], np.float32), local_step=100)
        take = kept.take_grad(2, name="take")
    with tf.Session(server.target) as session:
        if index:
            session.run(give)
            in_the_way()
        ready()
        session.run(take)


@way
def slow_map(server: Any, index: int) -> None:
    """A function of a dataset's map, called by the graph of the map."""
    with tf.device(f"/job:worker/task:{index}"):
        data = tf.data.Dataset.range(3).map(lambda x: tf.py_func(slow_function, [], tf.float32))
        following = tf.data.make_one_shot_iterator(data).get_next()
    with tf.Session(server.target) as session:
        if index:
            ready()
            for_ever()
        session.run(following)


def main() -> None:
    config = json.loads(os.environ["TF_CONFIG"])
    job, index, name = config["task"]["type"], config["task"]["index"], sys.argv[1]
    if name == "no_server" and (job, index) == ("worker", 1):
        in_the_way()
    server = tf.train.Server(config["cluster"], job_name=job, task_index=index)
    if job == "ps":
        server.join()
    WAYS[name](server, index)


if __name__ == "__main__":
    main()
