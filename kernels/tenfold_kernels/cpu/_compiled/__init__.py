"""Numba-compiled loops over the bodies of scalar.py. Imported only inside builders: this is where Numba gets loaded."""
