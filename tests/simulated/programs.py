"""What a simulated client does: at random, what programs do. Each kind of step knows what it may get.

Steps that add, enqueue or accumulate carry the number of a request, which the ledger follows.
"""

from __future__ import annotations

import asyncio
import contextlib

import numpy as np

from simulated.clients import PATIENCE, Client, LostError
from simulated.ledger import digits_of
from tenfold_core import errors
from tenfold_kernels.resources.messages import decode, encode_into
from tenfold_protos import config_pb2, master_pb2


class Program(Client):
    """Works until its time is over; `main` is its process."""

    async def main(self) -> None:
        chance = self.world.chance
        self._dial()
        operations = (
            self._add, self._add, self._add_twice, self._add_twice, self._pair, self._pair, self._enqueue,
            self._enqueue, self._dequeue, self._dequeue, self._accumulate, self._accumulate, self._take, self._cancel,
            self._cancel, self._partial, self._partial_in_part, self._extend, self._callable, self._reopen,
        )  # fmt: skip
        while self.world.now < self.until:
            try:
                if not self._handle:
                    await self._open()
                operation = chance.choice(operations)
                self.world.note(f"{self.host} {operation.__name__}")
                await operation()
            except LostError as lost:
                self.world.note(f"{self.host} lost {lost}")
                await self._close()
            except errors.OpError as error:
                self._look_at(error)
                if error.code in (errors.UNAVAILABLE, errors.ABORTED, errors.FAILED_PRECONDITION):
                    await self._close()
                    await asyncio.sleep(0.02 + 0.1 * chance.random())
            await asyncio.sleep(chance.choice((0.0, 0.0, 0.001, 0.01, 0.1)))
        await self._close()
        await self._channel.close()
        self.is_done = True

    async def _extend(self) -> None:
        request = master_pb2.ExtendSessionRequest(session_handle=self._handle, current_graph_version=self._version)
        name = f"extra{self._version}"
        request.graph_def.versions.CopyFrom(self._graph.versions)
        request.graph_def.node.add(name=name, op="NoOp", device=self.world.chance.choice((self.master.name, "")))
        answer = await self._call("ExtendSession", request, master_pb2.ExtendSessionResponse, PATIENCE)
        if answer.new_graph_version != self._version + 1:
            self.world.broken(f"{self.host}: version {answer.new_graph_version} after {self._version}")
        self._version += 1
        await self._run({}, (), (name,), milliseconds=self._some_time())

    # -- steps -------------------------------------------------------------------------------------------------------

    async def _add(self) -> None:
        requests = self._ledger["counter"]
        number = requests.new()
        if number is None:
            return
        fed = np.array(4**number, np.int64)
        fetch = self.world.chance.choice(("add_counter:0", "before:0"))
        (value,) = await self._run({"x:0": fed}, (fetch,), milliseconds=self._some_time())
        requests.acknowledged.add(number)
        requests.seen(int(value) + (int(fed) if fetch == "before:0" else 0), number)

    async def _add_twice(self) -> None:
        """One request that is sent two times at once is one step."""
        requests = self._ledger["counter"]
        number = requests.new()
        if number is None:
            return
        fed, request_id = np.array(4**number, np.int64), next(self._request_ids)
        both = await asyncio.gather(
            *(self._run({"x:0": fed}, ("add_counter:0",), request_id=request_id) for _ in range(2)),
            return_exceptions=True,
        )
        answers = [int(each[0]) for each in both if isinstance(each, list)]
        if answers:
            requests.acknowledged.add(number)
        for value in answers:
            requests.seen(value, number)
        if len(set(answers)) > 1:
            self.world.broken(f"{self.host}: one request was answered with {answers}")
        failed = [each for each in both if isinstance(each, BaseException)]
        if failed:
            raise failed[0]

    async def _pair(self) -> None:
        """Two variables in one step, and their sum on another task."""
        pair = self._ledger["pair0"], self._ledger["pair1"]
        number, _ = (requests.new() for requests in pair)
        if number is None:
            return
        fed = np.array(4**number, np.int64)
        fetches = ("add_pair0:0", "add_pair1:0", "sum:0")
        first, second, total = await self._run({"x:0": fed}, fetches, milliseconds=self._some_time())
        for requests, value in zip(pair, (first, second), strict=True):
            requests.acknowledged.add(number)
            requests.seen(int(value), number)
        if int(total) >> 2 * number & 3 != 3:
            self.world.broken(f"{self.host}: request {number} is not three times in the sum {int(total):x}")

    async def _enqueue(self) -> None:
        requests = self._ledger["queue"]
        number = requests.new()
        if number is None:
            return
        await self._run({"x:0": np.array(number, np.int64)}, (), ("enqueue",), milliseconds=800)
        requests.acknowledged.add(number)

    async def _dequeue(self) -> None:
        self.lost_elements += 1
        (value,) = await self._run({}, ("dequeued:0",), milliseconds=self.world.chance.choice((50, 500)))
        self.lost_elements -= 1
        self._ledger["queue"].ended([(int(value), 1)])

    async def _accumulate(self) -> None:
        requests = self._ledger["sums"]
        if requests.sent >= 26:  # a float64 is exact no further
            return
        number = requests.new()
        assert number is not None
        await self._run({"gradient:0": np.array(4.0**number)}, (), ("apply",), milliseconds=self._some_time())
        requests.acknowledged.add(number)

    async def _take(self) -> None:
        self.lost_sums += 1
        (value,) = await self._run({}, ("taken:0",), milliseconds=self.world.chance.choice((50, 500)))
        self.lost_sums -= 1
        self._ledger["sums"].ended(digits_of(int(value)).items())

    async def _cancel(self) -> None:
        """Gives up a step that waits, or that runs."""
        chance = self.world.chance
        running = asyncio.create_task(chance.choice((self._dequeue, self._add, self._pair))(), name="to be given up")
        await asyncio.sleep(chance.choice((0.0, 0.0005, 0.002, 0.05)))
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running

    async def _partial(self, in_part: bool = False) -> None:
        """A step in two calls; `in_part`: the second one never comes."""
        request = master_pb2.PartialRunSetupRequest(
            session_handle=self._handle, feed=("first:0", "second:0"), fetch=("doubled:0", "both:0")
        )
        answer = await self._call("PartialRunSetup", request, master_pb2.PartialRunSetupResponse, PATIENCE)
        handle, chance = answer.partial_run_handle, self.world.chance
        first, second = chance.randrange(1000), chance.randrange(1000)
        values = await self._run(
            {"first:0": np.array(first, np.int64)}, ("doubled:0",), partial=handle, milliseconds=5000
        )
        if int(values[0]) != 2 * first:
            self.world.broken(f"{self.host}: twice {first} is {values[0]}")
        if in_part:
            return
        values = await self._run(
            {"second:0": np.array(second, np.int64)}, ("both:0",), partial=handle, milliseconds=5000
        )
        if int(values[0]) != 2 * first + second:
            self.world.broken(f"{self.host}: twice {first} and {second} is {values[0]}")

    async def _partial_in_part(self) -> None:
        await self._partial(in_part=True)

    async def _callable(self) -> None:
        """A callable that is made, run and let go."""
        options = config_pb2.CallableOptions(feed=("first:0",), fetch=("doubled:0",))
        made = await self._call(
            "MakeCallable",
            master_pb2.MakeCallableRequest(session_handle=self._handle, options=options),
            master_pb2.MakeCallableResponse,
            PATIENCE,
        )
        request = master_pb2.RunCallableRequest(session_handle=self._handle, handle=made.handle)
        fed = self.world.chance.randrange(1000)
        encode_into(request.feed.add(), np.array(fed, np.int64))
        answer = await self._call("RunCallable", request, master_pb2.RunCallableResponse, PATIENCE)
        if int(decode(answer.fetch[0], "callable")) != 2 * fed:
            self.world.broken(f"{self.host}: a callable made {answer.fetch[0]} of {fed}")
        if self.world.chance.random() < 0.7:
            await self._call(
                "ReleaseCallable",
                master_pb2.ReleaseCallableRequest(session_handle=self._handle, handle=made.handle),
                master_pb2.ReleaseCallableResponse,
                PATIENCE,
            )
