"""Datasets and their iterators as machines: what tf.data's ops describe, element after element.

A `Dataset` (core.py) is immutable and travels over DT_VARIANT edges; `iterate` gives a machine, which gives the
next element or None at the end. sources.py, transforms.py, functional.py, shuffle.py and prefetch.py have the kinds;
iterators.py has the resource that steps ask. The ops are in cpu/dataset*.py.
"""
