"""The smallest distributed program: one server, one session, one constant.

python examples/hello.py
"""

import tenfold as tf

server = tf.train.Server.create_local_server()
hello = tf.constant("Hello, distributed TensorFlow!")

with tf.Session(server.target) as sess:
    print(sess.run(hello))
