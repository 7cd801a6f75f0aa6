"""A process that writes events: `events_writer.py FILE NAME COUNT`."""

from __future__ import annotations

import sys

from engram.events import EventLog

if __name__ == "__main__":
    path, name, count = sys.argv[1:]
    log = EventLog(path)
    for number in range(int(count)):
        log.emit("memory_written", f"agent://writer/{name}", {"memory_id": f"{name}-{number}"})
        print(number, flush=True)
