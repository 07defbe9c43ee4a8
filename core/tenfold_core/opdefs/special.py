"""Op definitions: special functions, element by element.

A row each: name, inputs, outputs, attributes (TensorFlow's registry at 2.21 is the source of every name, order and
default), flags, and the function that infers static shapes. See `tenfold_core/op_def.py` for the notation.
"""

from __future__ import annotations

from tenfold_core.opdefs import shape_fns as s
from tenfold_core.opdefs import shape_fns_array as a
from tenfold_core.opdefs.table import family

op = family("special")

op("BesselI0", "x: T", "y: T", "T: {floats}", shape=s.unchanged)
op("BesselI0e", "x: T", "y: T", "T: {floats}", shape=s.unchanged)
op("BesselI1", "x: T", "y: T", "T: {floats}", shape=s.unchanged)
op("BesselI1e", "x: T", "y: T", "T: {floats}", shape=s.unchanged)
op("BesselJ0", "x: T", "y: T", "T: {floats}", shape=s.unchanged)
op("BesselJ1", "x: T", "y: T", "T: {floats}", shape=s.unchanged)
op("BesselK0", "x: T", "y: T", "T: {floats}", shape=s.unchanged)
op("BesselK0e", "x: T", "y: T", "T: {floats}", shape=s.unchanged)
op("BesselK1", "x: T", "y: T", "T: {floats}", shape=s.unchanged)
op("BesselK1e", "x: T", "y: T", "T: {floats}", shape=s.unchanged)
op("BesselY0", "x: T", "y: T", "T: {floats}", shape=s.unchanged)
op("BesselY1", "x: T", "y: T", "T: {floats}", shape=s.unchanged)
op("Betainc", "a: T, b: T, x: T", "z: T", "T: {float, double}", shape=a.merged)
op("Dawsn", "x: T", "y: T", "T: {floats}", shape=s.unchanged)
op("Digamma", "x: T", "y: T", "T: {floats}", shape=s.unchanged)
op("Erfinv", "x: T", "y: T", "T: {floats}", shape=s.unchanged)
op("Expint", "x: T", "y: T", "T: {floats}", shape=s.unchanged)
op("FresnelCos", "x: T", "y: T", "T: {floats}", shape=s.unchanged)
op("FresnelSin", "x: T", "y: T", "T: {floats}", shape=s.unchanged)
op("Igamma", "a: T, x: T", "z: T", "T: {floats}", shape=s.broadcast)
op("IgammaGradA", "a: T, x: T", "z: T", "T: {float, double}", shape=s.broadcast)
op("Igammac", "a: T, x: T", "z: T", "T: {floats}", shape=s.broadcast)
op("Ndtri", "x: T", "y: T", "T: {floats}", shape=s.unchanged)
op("Polygamma", "a: T, x: T", "z: T", "T: {float, double}", shape=s.broadcast)
op("Spence", "x: T", "y: T", "T: {floats}", shape=s.unchanged)
op("Xlog1py", "x: T, y: T", "z: T", "T: {half, bfloat16, float, double, complex64, complex128}", shape=s.broadcast)
op("Zeta", "x: T, q: T", "z: T", "T: {float, double}", shape=s.broadcast)
