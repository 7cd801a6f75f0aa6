"""The tables of the reference of faces, made from the suite of their behaviours.

Write them anew: python tests/faces_page.py
"""

from __future__ import annotations

import re
from pathlib import Path

from contract.faces.behaviours import BEHAVIOURS, PAIRS, reason
from contract.faces.registry import FACES

PAGE = Path(__file__).parents[1] / "docs/reference/faces.md"
BEGIN, END = "<!-- {} -->\n", "<!-- end of {} -->"


def behaviours() -> str:
    """Return a row for every behaviour and a column for every face, and the reasons below."""
    reasons: list[str] = []
    rows = [["behaviour", "", *(face.about for face in FACES.values())]]
    rows.append(["---"] * len(rows[0]))
    for one, sentence in BEHAVIOURS.items():
        cells = [_cell(reason(face, one), reasons) for face in FACES.values()]
        rows.append([f"`{one}`", sentence, *cells])
    listed = "".join(f"{number}. {why}\n" for number, why in enumerate(reasons, 1))
    return f"{_table(rows)}\n{listed}"


def _cell(why: str | None, reasons: list[str]) -> str:
    if why is None:
        return "yes"
    if why not in reasons:
        reasons.append(why)
    return f"– ({reasons.index(why) + 1})"


def pairs() -> str:
    """Return a row for every face that keeps and a column for every face that finds."""
    writers = dict.fromkeys(writer for writer, _ in PAIRS)
    readers = dict.fromkeys(reader for _, reader in PAIRS)
    rows = [["kept by", *(f"found by {FACES[name].about}" for name in readers)]]
    rows.append(["---"] * len(rows[0]))
    for writer in writers:
        cells = ["yes" if (writer, reader) in PAIRS else "–" for reader in readers]
        rows.append([FACES[writer].about, *cells])
    return _table(rows)


def _table(rows: list[list[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def renewed(text: str) -> str:
    """Return the page with tables as the suite has them."""
    for name, table in (("behaviours", behaviours()), ("pairs", pairs())):
        begin, end = BEGIN.format(name), END.format(name)
        text = re.sub(
            f"(?s){begin}.*{end}",
            lambda _, whole=f"{begin}{table}{end}": whole,
            text,
        )
    return text


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
