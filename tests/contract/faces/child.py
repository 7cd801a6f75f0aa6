"""A process of its own with one face: python -m contract.faces.child NAME FOLDER WORD COUNT.

It says "ready", waits for a line, keeps COUNT texts and prints the id of each once it is
acknowledged; then it waits to be ended.
"""

from __future__ import annotations

import sys
from pathlib import Path

from contract.faces.place import Place

if __name__ == "__main__":
    name, folder, word, count = sys.argv[1:]
    face = Place(Path(folder)).face(name)
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(count)):
        print(face.remember(f"{word} number {number}"), flush=True)
    sys.stdin.readline()
