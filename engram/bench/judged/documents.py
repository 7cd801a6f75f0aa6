"""Collections of documents with queries and judgements."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from engram.bench.judged.asking import Question
from engram.bench.judged.data import DataSet, Haystack, Labels, Said, Session
from engram.bench.judged.reading import Content, refused, unique

__all__ = ["collection"]

_COLLECTION = "collection with judgements"
_HIGHEST = 2**63 - 1


class _Document(msgspec.Struct):
    id: str
    text: str
    title: str = ""


class _Query(msgspec.Struct):
    id: str
    text: str


class _Collection(msgspec.Struct):
    corpus: list[_Document]
    queries: list[_Query]
    # Of each judgement the query, the document and the relevance count.
    qrels: list[list[str | int]]


def collection(content: Content) -> DataSet:
    """Return the queries of a collection: its documents are one haystack of sessions of one turn.

    A document is its title and its text. A relevance of zero is none.

    Raises:
        BadFileError: It is no such collection.
    """
    read = content.decoded(_Collection, _COLLECTION)
    unique((one.id for one in read.corpus), content.name, _COLLECTION, "documents")
    unique((one.id for one in read.queries), content.name, _COLLECTION, "queries")
    grades = _grades(read, content)
    sessions = [
        Session(one.id, None, [Said(one.id, "", f"{one.title}\n{one.text}".strip())])
        for one in read.corpus
    ]
    labels = {
        one.id: Labels("", list(grades[one.id]), list(grades[one.id]), grades=grades[one.id])
        for one in read.queries
    }
    questions = [Question(one.id, one.text, None) for one in read.queries]
    return DataSet([Haystack(sessions, questions)], labels)


def _grades(read: _Collection, content: Content) -> defaultdict[str, dict[str, int]]:
    there = {one.id for one in read.corpus}
    grades: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for judgement in read.qrels:
        match judgement:
            case [str(query), str(document), int(relevance), *_] if abs(relevance) <= _HIGHEST:
                if relevance > 0 and document in there:
                    grades[query][document] = relevance
            case _:
                reason = "a judgement does not begin with query, document and whole relevance"
                raise refused(content.name, _COLLECTION, reason)
    return grades
