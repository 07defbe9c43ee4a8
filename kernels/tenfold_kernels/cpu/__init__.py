"""Kernels for device type CPU, one or more files an op family; registry.py loads a family at its first look-up."""
