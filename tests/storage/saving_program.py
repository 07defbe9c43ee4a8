"""Saves a checkpoint, and then another, in which it kills itself: `saving_program.py FOLDER AT`.

The AT-th change that the second makes to the folder, a directory or an S3 bucket, is not made: just before it this
process gets SIGKILL. Where there are fewer, it ends with exit code 0. The first has ones, the second twos.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import numpy as np

import tenfold as tf
from tenfold_core.file_names import is_url

#: Calls of S3 that change something.
CHANGES = {
    *("put_object", "create_multipart_upload", "upload_part", "complete_multipart_upload", "abort_multipart_upload"),
    *("delete_object", "delete_objects", "copy_object", "upload_part_copy"),
}
#: Events of the interpreter at which the local file system changes: the names are sys.audit's.
EVENTS = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"}

folder, at = sys.argv[1], int(sys.argv[2])
#: Changes until the last; none is counted before the second checkpoint.
left: list[int] = []


def change() -> None:
    if left:
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)


def count_calls_of_s3() -> None:
    import s3fs

    from tenfold_core import url_streams

    url_streams.PART = 5 << 20  # the least that S3 takes
    plain = s3fs.S3FileSystem._call_s3

    async def counted(self: Any, method: str, *arguments: Any, **more: Any) -> Any:
        if method in CHANGES:
            change()
        return await plain(self, method, *arguments, **more)

    s3fs.S3FileSystem._call_s3 = counted
    s3fs.S3FileSystem.call_s3 = s3fs.core.sync_wrapper(counted)


def count_events(event: str, arguments: tuple[Any, ...]) -> None:
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
    # kernels open files relative to a folder that is open: then the name is all there is
    ours = any(mark in str(each) for each in arguments for mark in (folder, "model.ckpt"))
    if (writes or event in EVENTS) and ours:
        change()


if is_url(folder):
    count_calls_of_s3()
else:
    sys.addaudithook(count_events)
# large enough for an upload in parts
first = tf.get_variable("first", initializer=np.ones(2_000_000, np.float32))
second = tf.get_variable("second", initializer=np.ones(3, np.int32))
saver = tf.train.Saver(max_to_keep=1)
double = tf.group(first.assign_add(tf.ones_like(first)), second.assign_add([1, 1, 1]))
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    saver.save(sess, f"{folder}/model.ckpt", global_step=1)
    sess.run(double)
    left.append(at)
    saver.save(sess, f"{folder}/model.ckpt", global_step=2)
