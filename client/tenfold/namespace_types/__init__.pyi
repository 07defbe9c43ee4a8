# Written by `make stubs`: what type checkers see of namespaces.py.
