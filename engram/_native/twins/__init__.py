"""NumPy twins of the compiled kernels: same names, arguments, errors and results."""

from __future__ import annotations
