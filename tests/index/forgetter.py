"""A process that forgets episodes of a large store and is killed before it closes it.

Usage: forgetter.py STORE ID...
"""

from __future__ import annotations

import os
import signal
import sys

from answers import embedder
from small_segments import shrink

from engram import Engram

shrink()
with Engram(sys.argv[1], embedder=embedder()) as memory:
    memory.recall("w1 w2")
    for uid in sys.argv[2:]:
        memory.forget(uid)
    memory.recall("w1 w2")
    os.kill(os.getpid(), signal.SIGKILL)
