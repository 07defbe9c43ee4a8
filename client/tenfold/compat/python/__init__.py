"""What only TensorFlow's own Python code has, and programs import nevertheless: `tensorflow.python.util.…`, ….

A module for each, found by tensorflow_paths.py. Names and arguments are TF 1.15's; each is a few lines over what
Tenfold has, and none is imported by Tenfold itself.
"""
