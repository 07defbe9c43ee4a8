"""One end of a link as a process of its own, for the tests of this folder.

`python link_main.py serve` listens: each line of its input asks for a way in, and it answers with the OpenLinkResponse
in base64. `python link_main.py dial ANSWER` connects, asks the listener to call it back, and waits. Both serve
support.links.Service and print "entered" when a WAIT call has come in, "held" for every HOLD, "closed REASON" at the
end of a link.
"""

from __future__ import annotations

import asyncio
import base64
import sys
from typing import TYPE_CHECKING, Any

from support.links import ADDRESS, CLIENT, ECHO, HOLD, SERVER, Service
from tenfold_link.aio.dial import connect
from tenfold_link.aio.listener import LinkListener
from tenfold_link.aio.methods import LinkMethod, Methods
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS
from tenfold_link.wire import handshake
from tenfold_protos import link_pb2

if TYPE_CHECKING:
    from tenfold_link.aio.link import Link


def say(*words: object) -> None:
    print(*words, flush=True)


def on_link(service: Service) -> Any:
    def methods(link: Link) -> Methods:
        def hold(link: Link, header: bytes, buffers: list[Any]) -> None:
            service.hold(link, header, buffers)
            say("held", len(service.held))

        link.on_close(lambda reason: say("closed", reason.message))
        return {**service.methods(link), HOLD: LinkMethod("Hold", hold)}

    return methods


async def main(role: str, answer: str = "") -> None:
    service = Service()
    service.on_wait = lambda: say("entered")
    loop = asyncio.get_running_loop()
    if role == "dial":
        offered = link_pb2.OpenLinkResponse.FromString(base64.b64decode(answer))
        link = await connect(offered, ADDRESS, on_link=on_link(service))
        await link.call(ECHO)
        say("connected", link.path)
        await loop.run_in_executor(None, sys.stdin.readline)
        await link.close()
        return
    async with LinkListener(SERVER, on_link(service)) as listener:
        say("listening")
        while await loop.run_in_executor(None, sys.stdin.readline):
            offer = listener.open_link(handshake.ask(DEFAULT_LINK_SETTINGS, CLIENT))
            say(base64.b64encode(offer.SerializeToString()).decode())


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
