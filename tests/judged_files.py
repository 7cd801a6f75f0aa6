"""Small files in the formats of LongMemEval, LoCoMo and collections with judgements."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PETS = ("a cat named Mochi", "a dog named Rex", "a parrot named Kiwi", "a tortoise named Dot")
TOWNS = ("Lisbon", "Oslo", "Kyoto", "Quito")


def write(file: Path, content: object) -> Path:
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


def message(role: str, content: str, *, flagged: bool = False) -> dict[str, Any]:
    said: dict[str, Any] = {"role": role, "content": content}
    return said | {"has_answer": True} if flagged else said


def instance(number: int, **changes: object) -> dict[str, Any]:
    """A question of three sessions, the second of which answers it."""
    pet, town = PETS[number % 4], TOWNS[number // 4 % 4]
    gold = f"answer_{number}_1"
    return {
        "question_id": f"q{number}",
        "question_type": ("single-session-user", "multi-session")[number % 2],
        "question": f"What pet do I have in {town}?",
        "answer": number,
        "question_date": "2023/05/30 (Tue) 20:08",
        "answer_session_ids": [gold],
        "haystack_session_ids": [f"filler_{number}", gold, "filler"],
        "haystack_dates": ["2023/05/20 (Sat) 08:01", "2023/05/22 (Mon) 09:00", "2023/05/21"],
        "haystack_sessions": [
            [message("user", "What is the tallest mountain?"), message("assistant", "Everest.")],
            [
                message("user", f"I live in {town} now."),
                message("assistant", "How is it there?"),
                message("user", f"Lovely, I have {pet} with me.", flagged=True),
            ],
            [message("user", "Recommend a book about bread."), message("assistant", " ")],
        ],
    } | changes


def official(count: int) -> list[dict[str, Any]]:
    return [instance(number) for number in range(count)]


def composed(count: int) -> dict[str, Any]:
    """The same questions, asked of one haystack."""
    instances = official(count)
    sessions = {
        name: {"session_id": name, "date": date, "turns": turns}
        for one in instances
        for name, date, turns in zip(
            one["haystack_session_ids"],
            one["haystack_dates"],
            one["haystack_sessions"],
            strict=True,
        )
    }
    kept = ("question_id", "question_type", "question", "question_date", "answer_session_ids")
    questions = [{key: one[key] for key in kept} for one in instances]
    return {"label": "composed", "sessions": list(sessions.values()), "questions": questions}


def conversation(name: str, **changes: object) -> dict[str, Any]:
    """Two sessions and a third that has a date alone; five questions."""

    def line(place: str, speaker: str, text: str, **more: str) -> dict[str, str]:
        return {"speaker": speaker, "dia_id": place, "text": text} | more

    talk = {
        "speaker_a": "Ana",
        "speaker_b": "Ben",
        "session_10_date_time": "1:56 pm on 8 May, 2023",
        "session_10": [
            line("D10:1", "Ana", "I moved to Lisbon."),
            line("D10:2", "Ben", "Congratulations! Here is my garden.", blip_caption="tall roses"),
        ],
        "session_2_date_time": "12:05 am on 1 February, 2023",
        "session_2": [
            line("D2:1", "Ben", "My sister plays the cello."),
            line("D2:2", "Ana", "Mine paints boats."),
        ],
        "session_3_date_time": "12:05 am on 1 March, 2023",
    }
    asked = [
        ("Where did Ana move?", 4, ["D10:1"]),
        ("What do the sisters do?", 1, ["D2:1; D02:02"]),
        ("What grows in the garden?", 2, ["D10:2", "D", "D:11:26", "D9:9"]),
        ("What is Ben's job?", 3, []),
        ("Where did Ben move?", 5, ["D10:1"]),
    ]
    qa = [{"question": text, "category": kind, "evidence": ids} for text, kind, ids in asked]
    return {"sample_id": name, "conversation": talk, "qa": qa} | changes


def documents() -> dict[str, Any]:
    return {
        "name": "three",
        "corpus": [
            {"id": "a", "title": "Wings", "text": "Lift of a wing in a slipstream."},
            {"id": "b", "title": "Heat", "text": "Conduction of heat in a slab."},
            {"id": "c", "title": "", "text": ""},
        ],
        "queries": [{"id": "1", "text": "lift of wings"}, {"id": "2", "text": "heat in slabs"}],
        "qrels": [["1", "a", 2, 1], ["1", "b", 0], ["2", "b", 1], ["2", "z", 1]],
    }
