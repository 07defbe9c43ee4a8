"""Queues, stacks and TensorArrays through a session. Their machines' own tests are tests/unit/kernels/resources."""

from __future__ import annotations

import tenfold as tf

raw = tf.raw_ops


def test_a_queue_gives_back_in_order() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        queue = raw.FIFOQueueV2(component_types=[tf.int32], shapes=[[]])
        put = raw.QueueEnqueueManyV2(handle=queue, components=[tf.constant([1, 2, 3])])
        taken = raw.QueueDequeueV2(handle=queue, component_types=[tf.int32])

        session.run(put)

        assert [session.run(taken)[0] for _ in range(2)] == [1, 2]
        assert session.run(raw.QueueSizeV2(handle=queue)) == 1


def test_a_stack_gives_back_the_last() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        stack = raw.StackV2(max_size=-1, elem_type=tf.float32)
        first = raw.StackPushV2(handle=stack, elem=1.0)
        with tf.control_dependencies([first]):
            second = raw.StackPushV2(handle=stack, elem=2.0)
        with tf.control_dependencies([second]):
            top = raw.StackPopV2(handle=stack, elem_type=tf.float32)

        assert session.run(top) == 2


def test_an_array_gives_what_was_written() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        array, flow = raw.TensorArrayV3(size=2, dtype=tf.float32)
        for index, value in ((1, 5.0), (0, 4.0)):
            flow = raw.TensorArrayWriteV3(handle=array, index=index, value=value, flow_in=flow)
        both = raw.TensorArrayGatherV3(handle=array, indices=[0, 1], flow_in=flow, dtype=tf.float32)

        assert session.run(both).tolist() == [4, 5]
