"""How often search finds the turns of a conversation that answer a question about it (LoCoMo), over HTTP.

Each conversation is a tenant's tree of its own, each turn an entry; the questions go in as they stand. The data is
not part of memsvc: get `locomo10.json` and say where it is. Recall is the share of a question's evidence among the
first hits, MRR that of the first piece of evidence; chance is what a random order would score.
"""

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memsvc.testing import fresh_tree, set_up

set_up()

from benchmarks.server import client_of  # noqa: E402  after Django is set up
from memsvc.client import MemsvcClient  # noqa: E402
from memsvc.contract.requests import SearchMode  # noqa: E402
from memsvc.recall.vectors import embed_tree  # noqa: E402
from memsvc.tree.models import Tree  # noqa: E402

CONVERSATIONS = 5
DEPTH = 20
ADVERSARIAL = 5  # questions without an answer
BARS = {
    "hybrid": {"recall@5": 0.62, "recall@10": 0.72, "mrr": 0.50},
    "lexical": {"recall@10": 0.66},
}
MODES: tuple[SearchMode, ...] = ("hybrid", "lexical", "semantic", "substring")
_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Turn:
    id: str
    speaker: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Conversation:
    name: str
    turns: list[Turn]
    questions: list[Question]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evidence", description=__doc__)
    parser.add_argument(
        "--data", type=Path, default=os.environ.get("LOCOMO"), help="locomo10.json (or LOCOMO=…)"
    )
    data = parser.parse_args().data
    if data is None or not Path(data).is_file():
        print(f"There is no data: {data or 'name the file with --data or LOCOMO=…'}", file=sys.stderr)
        return 2
    conversations = list(read(json.loads(Path(data).read_text())[:CONVERSATIONS]))
    places = [(conversation, *stored(conversation)) for conversation in conversations]
    print(f"{'':10} {'recall@5':>9} {'recall@10':>10} {'recall@20':>10} {'mrr':>7}")
    chance = sum(DEPTH / 2 / len(each.turns) * len(each.questions) for each in conversations)
    print(f"{'chance':10} {'':>9} {chance / sum(len(each.questions) for each in conversations):>10.3f}")
    missed = 0
    for mode in MODES:
        found = mean([row for place in places for row in scores(*place, mode)])
        low = [name for name, bar in BARS.get(mode, {}).items() if found[name] < bar]
        missed += len(low)
        verdict = f"  below its bar: {', '.join(low)}" if low else ""
        figures = f"{found['recall@5']:>9.3f} {found['recall@10']:>10.3f} {found['recall@20']:>10.3f}"
        print(f"{mode:10} {figures} {found['mrr']:>7.3f}{verdict}", flush=True)
    return 1 if missed else 0


def read(samples: Sequence[Mapping[str, Any]]) -> Iterator[Conversation]:
    for sample in samples:
        turns = list(_turns(sample["conversation"]))
        known = {turn.id for turn in turns}
        asked = [
            Question(each["question"], frozenset(_evidence(each.get("evidence", [])) & known))
            for each in sample["qa"]
            if each["category"] != ADVERSARIAL
        ]
        yield Conversation(sample["sample_id"], turns, [each for each in asked if each.evidence])


def _turns(talk: Mapping[str, Any]) -> Iterator[Turn]:
    numbers = sorted(int(name.split("_")[1]) for name in talk if re.fullmatch(r"session_\d+", name))
    for number in numbers:
        written = re.sub(r"\s+", " ", talk[f"session_{number}_date_time"].strip())
        begun = datetime.strptime(written, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for second, turn in enumerate(talk[f"session_{number}"]):
            caption = f" [shared image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            text = f"{turn['speaker']}: {turn['text']}".strip() + caption
            yield Turn(turn["dia_id"], turn["speaker"], text, begun + timedelta(seconds=second))


def _evidence(written: Sequence[str]) -> set[str]:
    """Some ids are joined or misspelt in the data: "D8:6; D9:17", "D:11:26", "D30:05"."""
    pairs = re.findall(r"D:?(\d+):(\d+)", " ".join(written))
    return {f"D{int(session)}:{int(turn)}" for session, turn in pairs}


def stored(conversation: Conversation) -> tuple[MemsvcClient, dict[str, str]]:
    """A client of the conversation's tree, and which turn each entry is."""
    tree = fresh_tree(conversation.name)
    client = client_of(tree)
    turns: dict[str, str] = {}
    for start in range(0, len(conversation.turns), _AT_ONCE):
        some = conversation.turns[start : start + _AT_ONCE]
        done = client.batch([_operation(turn) for turn in some])
        turns |= {str(result["id"]): turn.id for turn, result in zip(some, done.results, strict=True)}
    _embed(tree)
    return client, turns


def _operation(turn: Turn) -> dict[str, object]:
    return {
        "op": "add_entry",
        "category": "events",
        "body": turn.text,
        "tags": [turn.speaker],
        "when": turn.at.isoformat(),
    }


def _embed(tree: Tree) -> None:
    """What the worker does after a write."""
    while embed_tree(tree):
        pass


def scores(
    conversation: Conversation, client: MemsvcClient, turns: Mapping[str, str], mode: SearchMode
) -> Iterator[dict[str, float]]:
    for question in conversation.questions:
        page = client.search(question.text, mode=mode, limit=DEPTH)
        ranked = [turns[hit.entry.entry_id] for hit in page.items]
        row = {
            f"recall@{k}": len(question.evidence & set(ranked[:k])) / len(question.evidence)
            for k in (5, 10, 20)
        }
        first = next((place for place, turn in enumerate(ranked, 1) if turn in question.evidence), None)
        yield row | {"mrr": 1 / first if first else 0.0}


def mean(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]}


if __name__ == "__main__":
    sys.exit(main())
