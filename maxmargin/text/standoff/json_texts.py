"""Texts with entities in JSON: lines of our own and of Doccano, tasks of Label Studio, documents of spaCy."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from maxmargin.text.sentence_files.json_lines import dump_record
from maxmargin.text.sentence_files.line_files import FileToRead, name_of
from maxmargin.text.standoff.annotated_texts import AnnotatedText, TextEntity, make_entity
from maxmargin.text.standoff.plain_texts import read_whole
from maxmargin.text.standoff.tokenizer import Sentences
from maxmargin.wording import quote

LABELS = ("label", "labels")  # of Doccano, by version


def records_of(source: FileToRead, encoding: str, name: str | None) -> Iterator[tuple[Any, str]]:
    """The records of a file, a list of them, a single one, or one in each line, with what to call each."""
    text = read_whole(source, encoding, name).removeprefix("\ufeff")
    name = name or name_of(source)
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                try:
                    yield json.loads(line), f"{name}, line {number}"
                except (ValueError, RecursionError) as error:
                    raise ValueError(f"{name}, line {number}: it is not JSON: {error}.") from None
        return
    is_single = isinstance(whole, dict) or _is_pair(whole)
    for number, record in enumerate([whole] if is_single else whole if isinstance(whole, list) else [whole], start=1):
        yield record, f"{name}, record {number}"


def _is_pair(record: object) -> bool:
    return isinstance(record, list) and len(record) == 2 and isinstance(record[0], str)


def text_in(record: object, place: str) -> str:
    """The text of a record."""
    if not isinstance(record, dict) or not isinstance(record.get("text"), str):
        raise ValueError(f"{place}: an object must hold a string 'text', but there is {quote(record)}.")
    return record["text"]


def list_in(record: dict[str, object], field: str, place: str) -> list[Any]:
    """A list of a record, empty where it is null."""
    found = record.get(field) or []
    if not isinstance(found, list):
        raise ValueError(f"{place}: {field!r} must be a list, not {quote(found)}.")
    return found


def entities_in(text: str, found: Sequence[Any], keys: tuple[str, str, str], place: str) -> list[TextEntity]:
    """Entities of a text: lists of start, end and type, or objects that have them under these keys."""
    said = [item.get("text") if isinstance(item, dict) else None for item in found]
    parts = [[item.get(key) for key in keys] if isinstance(item, dict) else item for item in found]
    for part in parts:
        if not isinstance(part, list) or len(part) < 3:
            raise ValueError(f"{place}: an entity must be a start, an end and a type, not {quote(part)}.")
    return [make_entity(text, part[0], part[1], part[2], place, words) for part, words in zip(parts, said, strict=True)]


# --- our own ------------------------------------------------------------------------------------------------------


def read_own(source: FileToRead, encoding: str, name: str | None = None) -> Iterator[AnnotatedText]:
    """Lines of a "text" and its "entities", objects with "start", "end" and "type"."""
    for record, place in records_of(source, encoding, name):
        text = text_in(record, place)
        found = list_in(record, "entities", place)
        entities = entities_in(text, found, ("start", "end", "type"), place) if "entities" in record else None
        yield AnnotatedText(text, entities, place, record=_without(record, "text", "entities"))


def own_lines(texts: Iterable[AnnotatedText]) -> Iterator[str]:
    """An object for each text, with all that is known of its entities."""
    for annotated in texts:
        entities = [_own(entity) for entity in annotated.entities or ()]
        yield dump_record({**annotated.record, "text": annotated.text, "entities": entities})


def _own(entity: TextEntity) -> dict[str, object]:
    found = entity._asdict()
    return found if entity.probability is not None else _without(found, "probability")


def _without(record: dict[str, object], *fields: str) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in fields}


# --- Doccano ------------------------------------------------------------------------------------------------------


def read_doccano(source: FileToRead, encoding: str, name: str | None = None) -> Iterator[AnnotatedText]:
    """Lines of a "text" and "label", lists of start, end and type; or "entities", where there are relations, too."""
    for record, place in records_of(source, encoding, name):
        text = text_in(record, place)
        field = next((field for field in (*LABELS, "entities") if field in record), None)
        keys = ("start_offset", "end_offset", "label")
        entities = None if field is None else entities_in(text, list_in(record, field, place), keys, place)
        yield AnnotatedText(text, entities, place, record=_without(record, "text", *LABELS, "entities", "relations"))


def doccano_lines(texts: Iterable[AnnotatedText]) -> Iterator[str]:
    """An object for each text, as Doccano imports them."""
    for annotated in texts:
        label = [[entity.start, entity.end, entity.type] for entity in annotated.entities or ()]
        yield dump_record({**annotated.record, "text": annotated.text, "label": label})


# --- Label Studio -------------------------------------------------------------------------------------------------


def read_label_studio(source: FileToRead, encoding: str, name: str | None = None) -> Iterator[AnnotatedText]:
    """Tasks, as exported in JSON or JSON_MIN: of several annotations of a text the first that was not cancelled."""
    for record, place in records_of(source, encoding, name):
        if not isinstance(record, dict):
            raise ValueError(f"{place}: a task must be an object, not {quote(record)}.")
        if "data" in record:
            text = text_in(record["data"], place)
            done = [note for note in list_in(record, "annotations", place) if not note.get("was_cancelled")]
            found = [item.get("value", {}) for item in list_in(done[0], "result", place)] if done else None
        else:
            text = text_in(record, place)
            found = list_in(record, "label", place) if "label" in record else None
        labelled = [value for value in found or () if value.get("labels")]
        entities = None if found is None else [_of_value(text, value, place) for value in labelled]
        yield AnnotatedText(text, entities, place, record=record)


def _of_value(text: str, value: dict[str, Any], place: str) -> TextEntity:
    """An entity of Label Studio, whose browser counts some characters twice: those beyond 16 bits."""
    start, end, said = value.get("start"), value.get("end"), value.get("text")
    if isinstance(start, int) and isinstance(end, int) and said is not None and text[start:end] != said:
        units = text.encode("utf-16-le")
        if units[2 * start : 2 * end].decode("utf-16-le", "replace") == said:
            start, end = (len(units[: 2 * place].decode("utf-16-le", "replace")) for place in (start, end))
    return make_entity(text, start, end, value["labels"][0], place)


def label_studio_lines(texts: Iterable[AnnotatedText]) -> Iterator[str]:
    """Tasks, as Label Studio imports them: entities that have a probability are predictions, others annotations."""
    tasks = []
    for annotated in texts:
        result = [
            {
                "id": f"entity-{k}",
                "from_name": "label",
                "to_name": "text",
                "type": "labels",
                "value": {"start": e.start, "end": e.end, "text": e.text, "labels": [e.type]},
                **({} if e.probability is None else {"score": e.probability}),
            }
            for k, e in enumerate(annotated.entities or (), start=1)
        ]
        kept = _without(dict(annotated.record), "annotations", "predictions", "label", "text")
        data = {**kept.pop("data", {}), "text": annotated.text}
        is_found = any(entity.probability is not None for entity in annotated.entities or ())
        field, by = ("predictions", {"model_version": "maxmargin"}) if is_found else ("annotations", {})
        tasks.append({**kept, "data": data, field: [{**by, "result": result}]})
    yield dump_record(tasks)


# --- spaCy --------------------------------------------------------------------------------------------------------


def read_spacy_json(source: FileToRead, encoding: str, name: str | None = None) -> Iterator[AnnotatedText]:
    """What `Doc.to_json` returns, with its tokens, or pairs of a text and {"entities": [[start, end, type]]}."""
    for record, place in records_of(source, encoding, name):
        if _is_pair(record) and isinstance(record[1], dict):
            text, found = record[0], list_in(record[1], "entities", place)
            yield AnnotatedText(text, entities_in(text, found, ("start", "end", "label"), place), place)
            continue
        text = text_in(record, place)
        found = list_in(record, "ents", place)
        entities = entities_in(text, found, ("start", "end", "label"), place) if "ents" in record else None
        yield AnnotatedText(text, entities, place, _tokens(record, text, place))


def _tokens(record: dict[str, object], text: str, place: str) -> Sentences | None:
    if "tokens" not in record:
        return None
    spans = [_bounds(item, place) for item in list_in(record, "tokens", place)]
    spans = [span for span in spans if text[slice(*span)].strip()]
    ends = [_bounds(item, place)[1] for item in list_in(record, "sents", place)] or [len(text)]
    sentences: Sentences = [[] for _ in ends]
    for span in spans:
        k = next((k for k, end in enumerate(ends) if span[0] < end), len(ends) - 1)
        sentences[k].append(span)
    return [sentence for sentence in sentences if sentence]


def _bounds(item: object, place: str) -> tuple[int, int]:
    if isinstance(item, dict) and isinstance(item.get("start"), int) and isinstance(item.get("end"), int):
        return item["start"], item["end"]
    raise ValueError(f"{place}: tokens and sentences must have a start and an end, not {quote(item)}.")


def spacy_lines(texts: Iterable[AnnotatedText]) -> Iterator[str]:
    """A list of documents, as `Doc.from_json` reads each."""
    yield dump_record([_spacy_record(annotated) for annotated in texts])


def _spacy_record(annotated: AnnotatedText) -> dict[str, object]:
    ents = [{"start": e.start, "end": e.end, "label": e.type} for e in annotated.entities or ()]
    record: dict[str, Any] = {"text": annotated.text, "ents": ents}
    if annotated.sentences is not None:
        spans = [span for sentence in annotated.sentences for span in sentence]
        record["sents"] = [{"start": s[0][0], "end": s[-1][1]} for s in annotated.sentences]
        record["tokens"] = [{"id": k, "start": start, "end": end} for k, (start, end) in enumerate(spans)]
    return record
