"""A task as a process of its own, for the tests of this folder: `python task_main.py JOB INDEX PORT`.

Prints its port, then takes a cluster as JSON per line of its input and answers "ok"; ends at the end of its input.
"""

from __future__ import annotations

import asyncio
import json
import sys

from tenfold_services.server import TaskServer


async def main(job: str, index: int, port: int) -> None:
    loop = asyncio.get_running_loop()
    async with TaskServer(None, job, index, bind=f"127.0.0.1:{port}") as server:
        print(server.port, flush=True)
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            spec = {job: {int(i): a for i, a in tasks.items()} for job, tasks in json.loads(line).items()}
            server.update_cluster(spec)
            print("ok", flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
