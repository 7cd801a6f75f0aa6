"""English words that say nothing of what a text is about."""

from __future__ import annotations

from typing import Final

STOP_WORDS: Final = frozenset(
    """
    a an the this that these those
    i me my mine we us our ours you your yours he him his she her hers it its they them their theirs
    who whom whose which what when where why how
    am is are was were be been being do does did done doing have has had having
    can could may might must shall should will would
    and or but nor so if then than because while although though unless until
    of in on at by for from to into onto with without within about above below under over between
    through during before after against among upon across along around off out up down
    not no nor yes any some all each every either neither both few more most many much other others
    another such own same only just even also too very again ever never once here there now
    let please tell
    """.split()  # noqa: SIM905 - a list would take a line for each
)
"""In lower case."""
