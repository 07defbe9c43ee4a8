"""Hostile input, by the byte: what reads bytes of others is given any bytes. docs/fuzzing.md says how.

targets/ has a file for each reader, targets/__init__.py the table of them; harness.py decides what is a fault; run.py
runs the fuzzer, replay.py runs inputs that are there; messages.py mutates protocol buffers so that they stay ones;
corpus/ keeps the inputs that found something.
"""
