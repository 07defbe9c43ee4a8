"""What a cluster is: a ClusterSpec, and a server for each of its tasks. Here all of them are in this one process.

    python examples/cluster.py

Jobs have names, their tasks have numbers, and every task has an address. Each server needs the whole description and
its own place in it; a session may be opened on any of them and uses all of them.
"""

import socket

import tenfold as tf


def free_addresses(count: int) -> list[str]:
    """Addresses of loopback with free ports."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    addresses = [f"localhost:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    return addresses


def main() -> None:
    addresses = free_addresses(3)
    cluster = tf.train.ClusterSpec({"ps": addresses[:1], "worker": addresses[1:]})
    for job in cluster.jobs:
        for index in cluster.task_indices(job):
            print(f"/job:{job}/task:{index}")

    servers = [
        tf.train.Server(cluster, job_name=job, task_index=index)
        for job in cluster.jobs
        for index in cluster.task_indices(job)
    ]
    with tf.Session(servers[-1].target) as sess:
        print([device.name for device in sess.list_devices()])
    for server in servers:
        server.stop()


if __name__ == "__main__":
    main()
