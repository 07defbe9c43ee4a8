"""Where does each operation run? Scopes of devices, how they nest, and what happens to a device that is not there.

    python examples/devices.py

A device may be named in part: "/job:ps/task:1", "/cpu:0", "/job:worker". The master chooses the rest. It refuses a
device that does not exist with a list of those that do, unless soft placement is allowed.
"""

import tenfold as tf


def main() -> None:
    with tf.device("/job:local"):
        weights = tf.Variable([[1.0, 2.0]], name="weights")
        with tf.device("/cpu:0"):
            # Scopes add up: /job:local/device:CPU:0
            product = tf.matmul(weights, [[3.0], [4.0]], name="product")
    for op in (weights.op, product.op):
        print(f"{op.name} asks for {op.device}")

    server = tf.train.Server.create_local_server()
    with tf.Session(server.target) as sess:
        sess.run(weights.initializer)
        print("product", sess.run(product).item())
        with tf.device("/gpu:0"):
            on_gpu = tf.add(product, 1.0, name="on_gpu")
        try:
            print("on_gpu", sess.run(on_gpu).item())
        except tf.errors.InvalidArgumentError as error:
            print("refused:", error.message.splitlines()[0])

    with tf.Session(server.target, config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        print("softly", sess.run(on_gpu).item())


if __name__ == "__main__":
    main()
