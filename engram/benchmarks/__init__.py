"""The documented import path of the benchmarks, `engram.bench`."""
