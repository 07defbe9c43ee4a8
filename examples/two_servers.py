"""Two servers described by the same cluster, and a client that uses both. Run each line in a terminal of its own:

    python examples/two_servers.py ps
    python examples/two_servers.py worker
    python examples/two_servers.py client

The variable is on the ps, the product is computed on the worker, and it does not matter which of the two servers
the client asks. The addresses can be changed: PS=host:port WORKER=host:port in the environment of all three.
"""

import os
import sys

import tenfold as tf

cluster = tf.train.ClusterSpec(
    {
        "ps": [os.environ.get("PS", "localhost:2222")],
        "worker": [os.environ.get("WORKER", "localhost:2223")],
    }
)


def serve(job: str) -> None:
    """Runs one task until Ctrl-C."""
    server = tf.train.Server(cluster, job_name=job, task_index=0)
    print(f"{job} is at {server.target}", flush=True)
    server.join()


def client() -> None:
    """Builds one graph over both tasks and runs it through each of them."""
    with tf.device("/job:ps/task:0"):
        weights = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="weights")
    with tf.device("/job:worker/task:0"):
        product = tf.matmul(weights, [[1.0], [10.0]])

    for job in ("ps", "worker"):
        target = "grpc://" + cluster.task_address(job, 0)
        with tf.Session(target, config=tf.ConfigProto(operation_timeout_in_ms=20_000)) as sess:
            sess.run(tf.global_variables_initializer())
            print(f"asked through {job}:", sess.run(product).ravel().tolist())


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ("ps", "worker", "client"):
        sys.exit("usage: python examples/two_servers.py ps|worker|client")
    if sys.argv[1] == "client":
        client()
    else:
        serve(sys.argv[1])
