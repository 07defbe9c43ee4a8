"""What a library says of files that are damaged: one program for both. Run by test_damaged_files.py.

    python damaged_files.py LIBRARY FOLDER

FOLDER/whole gets the files, made by whoever comes first; each is damaged in a copy, and read. Prints, as JSON, case →
the class of the error, or what was read. Python 3.7 and TensorFlow 1.15 run it too.
"""

import importlib
import json
import os
import shutil
import sys

KINDS = ("empty", "half", "flipped", "foreign", "folder", "gone")


def damage(path, kind):
    with open(path, "rb") as file:
        data = bytearray(file.read())
    os.remove(path)
    if kind == "folder":
        os.mkdir(path)
    elif kind != "gone":
        if kind == "empty":
            data = b""
        elif kind == "half":
            data = data[: len(data) // 2]
        elif kind == "foreign":
            data = b"\x8f\xff\xff" * 40
        else:
            for at in range(len(data) // 3, len(data) // 3 + 8):
                data[at] ^= 0xA5
        with open(path, "wb") as file:
            file.write(bytes(data))


def variables(tf):
    tf.Variable([1.0, 2.0] * 20, name="v", use_resource=False)
    return tf.train.Saver


def make(tf, base):
    with tf.Graph().as_default(), tf.Session() as session:
        saver = variables(tf)
        session.run(tf.global_variables_initializer())
        for version in (1, 2):
            os.mkdir(os.path.join(base, f"v{version}"))
            saver(write_version=version).save(session, os.path.join(base, f"v{version}", "m"))
        x = tf.placeholder(tf.float32, name="x")
        tf.saved_model.simple_save(session, os.path.join(base, "model"), {"x": x}, {"y": x * 2.0})
    with tf.python_io.TFRecordWriter(os.path.join(base, "records")) as out:
        for _ in range(5):
            out.write(b"abc" * 30)


def restore(version):
    def read(tf, base):
        with tf.Graph().as_default(), tf.Session() as session:
            variables(tf)().restore(session, os.path.join(base, version, "m"))
            return session.run("v:0").tolist()[:2]

    return read


def reader(tf, base):
    return tf.train.NewCheckpointReader(os.path.join(base, "v2", "m")).get_tensor("v").tolist()[:2]


def meta_graph(tf, base):
    with tf.Graph().as_default() as graph:
        tf.train.import_meta_graph(os.path.join(base, "v2", "m.meta"))
        return len(graph.get_operations()) > 3


def model(tf, base):
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.loader.load(session, ["serve"], os.path.join(base, "model"))
        return session.run("v:0").tolist()[:2]


def records(tf, base):
    return len(list(tf.python_io.tf_record_iterator(os.path.join(base, "records"))))


#: Case → the file that is damaged, and what reads it.
CASES = {
    "restore, data": ("v2/m.data-00000-of-00001", restore("v2")),
    "restore, index": ("v2/m.index", restore("v2")),
    "restore, first format": ("v1/m", restore("v1")),
    "reader, data": ("v2/m.data-00000-of-00001", reader),
    "reader, index": ("v2/m.index", reader),
    "meta graph": ("v2/m.meta", meta_graph),
    "model": ("model/saved_model.pb", model),
    "model, index": ("model/variables/variables.index", model),
    "records": ("records", records),
}


def main():
    library, folder = sys.argv[1:3]
    tf = importlib.import_module(library)
    tf.logging.set_verbosity(tf.logging.FATAL)
    whole = os.path.join(folder, "whole")
    if not os.path.exists(whole):
        os.mkdir(whole)
        make(tf, whole)
    found = {}
    for case, (path, read) in CASES.items():
        for kind in KINDS:
            base = os.path.join(folder, "damaged")
            shutil.rmtree(base, ignore_errors=True)
            shutil.copytree(whole, base)
            damage(os.path.join(base, path), kind)
            try:
                found[f"{case}: {kind}"] = repr(read(tf, base))
            except Exception as error:
                found[f"{case}: {kind}"] = type(error).__name__
    print(json.dumps(found))


if __name__ == "__main__":
    main()
