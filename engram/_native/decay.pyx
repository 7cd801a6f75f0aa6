# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=False, freethreading_compatible=True
"""Importance of many episodes at one moment."""

import numpy as np

from libc.stddef cimport size_t
from libc.stdint cimport int64_t
from libcpp cimport bool as cpp_bool

from engram._native import boundary

__all__ = ["decay"]


cdef extern from "decay.hpp" namespace "engram" nogil:
    cppclass DecayInput:
        const double* salience
        const double* valence
        const int64_t* access_count
        const int64_t* baseline
        int64_t now
        double rate "lambda"
        double alpha
        double beta

    cpp_bool c_decay "engram::decay"(const DecayInput&, size_t, double*)


def decay(salience, valence, access_count, baseline, now, lambda_, alpha, beta):
    """Compute the importance of every episode.

    Ebbinghaus's forgetting curve with reinforcement by access and by emotion:

        salience·exp(-lambda_·days) + alpha·ln(1 + access_count) + beta·valence

    where days = max(0, (now - baseline) / 86,400,000,000), exact for every pair of int64 times. The
    exponential is computed here, within 1 ulp, so its bits do not depend on the machine; the twin
    takes NumPy's, and a sum differs from the twin's by at most a few ulp of its largest term.

    Takes O(n) time and no memory beyond the result, with the GIL released.

    Args:
        salience: float64 [n].
        valence: float64 [n]; emotional valence.
        access_count: int64 [n], at least 0.
        baseline: int64 [n]; last access or else event time, UTC microseconds since the epoch.
        now: UTC microseconds since the epoch; fits 64 bits.
        lambda_: Forgetting rate per day; finite, at least 0.
        alpha: Weight of accesses; finite.
        beta: Weight of valence; finite.

    Returns:
        The importances, float64 [n], not clamped.

    Raises:
        TypeError: An argument is not an array of its element type, or not a number.
        ValueError: A shape, the memory layout, a count or a number is not as described; the message
            names the argument.
    """
    boundary.array("salience", salience, np.float64)
    boundary.array("valence", valence, np.float64)
    boundary.array("access_count", access_count, np.int64)
    boundary.array("baseline", baseline, np.int64)
    boundary.length("valence", valence, len(salience), "salience")
    boundary.length("access_count", access_count, len(salience), "salience")
    boundary.length("baseline", baseline, len(salience), "salience")

    cdef DecayInput given
    given.now = boundary.whole("now", now, boundary.INT64_MIN, boundary.INT64_MAX)
    given.rate = boundary.real("lambda_", lambda_, 0.0)
    given.alpha = boundary.real("alpha", alpha)
    given.beta = boundary.real("beta", beta)
    cdef const double[::1] salience_view = salience
    cdef const double[::1] valence_view = valence
    cdef const int64_t[::1] access_count_view = access_count
    cdef const int64_t[::1] baseline_view = baseline
    cdef size_t count = salience_view.shape[0]
    importance = np.empty(count, np.float64)
    if count == 0:
        return importance

    # Borrowed pointers: the views above keep every array alive until this function returns.
    given.salience = &salience_view[0]
    given.valence = &valence_view[0]
    given.access_count = &access_count_view[0]
    given.baseline = &baseline_view[0]
    cdef double[::1] importance_view = importance
    cdef cpp_bool counted
    with nogil:
        counted = c_decay(given, count, &importance_view[0])
    if not counted:
        raise ValueError("access_count must not be negative")
    return importance
