"""The demo's page for people: what was taken in, learned, refused and suggested."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cowpath.edge import Edge
from examples.demo import world

WIDTH = 100
NEAREST = 8
"""How many embedding neighbours a skill has, however far they are."""
SHOWN_EDGES = 6
SHOWN_SUGGESTIONS = 3

SQL = (
    """python -c 'import duckdb; print(duckdb.connect(".demo/usage.duckdb").sql("from transitions order by n desc"))'"""
)

HEADS: dict[str, str] = {
    "hub": "a hub: it meets everything",
    "one actor's routine": "one actor's routine",
    "one actor's reversed order": "one actor's order, against all others",
    "our own advice": "calls that followed our own advice",
    "parallel calls": "made in parallel: no order",
    "twins that only read alike": "they only read alike",
}


@dataclass(frozen=True)
class Outside:
    """How many learned edges leave the embedding neighbourhood, and how many random pairs do."""

    edges: int
    share: float
    random: float | None


@dataclass(frozen=True)
class Story:
    """Everything the demo saw: documents of the commands, and the learned edges, strongest first."""

    url: str
    catalogue: Mapping[str, Any]
    receipts: Sequence[Mapping[str, Any]]
    mined: Mapping[str, Any]
    edges: Sequence[Edge]
    refused: Mapping[str, Mapping[str, Any]]
    suggested: Sequence[tuple[Sequence[str], Mapping[str, Any], Sequence[tuple[str, float]]]]
    outside: Outside | None


def render(story: Story) -> str:
    parts = (taken_in, learned, refused, suggested, beyond_likeness, look_around)
    return "\n".join(line for part in parts for line in ["", *part(story)])


def taken_in(story: Story) -> Iterator[str]:
    mined = story.mined
    accepted, rejected = (sum(receipt[name] for receipt in story.receipts) for name in ("accepted", "rejected"))
    yield "TAKEN IN"
    yield (
        f"  {accepted:,} calls over HTTP in {len(story.receipts)} requests, each answered once it was on disk;"
        f" {rejected} refused."
    )
    yield (
        f"  {mined['sessions']:,} sessions of {mined['actors']} actors on {mined['days']} days,"
        f" {mined['skills']} skills. The log is made up; its paths and traps are planted."
    )


def learned(story: Story) -> Iterator[str]:
    mined = story.mined
    precedes = [edge for edge in story.edges if edge.relation == "precedes"]
    complements = [edge for edge in story.edges if edge.relation == "complements"]
    yield f"LEARNED  from {mined['pairs_tested']:,} pairs tested"
    yield f"  {'precedes':<44}{'sessions':>8}{'actors':>8}{'this order':>12}{'x chance':>10}"
    for edge in precedes[:SHOWN_EDGES]:
        yield edge_line(edge, "→", f"{edge.evidence['share']:.0%}")
    yield f"  ... {len(precedes)} confirmed orders: " + found_of_planted(precedes)
    yield "  complements"
    for edge in complements[:SHOWN_EDGES]:
        yield edge_line(edge, "+", "no order")


def edge_line(edge: Edge, sign: str, order: str) -> str:
    evidence = edge.evidence
    pair = f"{edge.source} {sign} {edge.target}"
    return f"  {pair:<44}{evidence['sessions']:>8}{evidence['witnesses']:>8}{order:>12}{evidence['lift']:>10.1f}"


def found_of_planted(precedes: Sequence[Edge]) -> str:
    planted = world.truth().precedes
    claimed = {(edge.source, edge.target) for edge in precedes}
    false = len(claimed - planted) or "none"
    return f"{len(claimed & planted)} of the {len(planted)} planted ones are there, and {false} that was not planted."


def refused(story: Story) -> Iterator[str]:
    yield "REFUSED, AND WHY"
    for name, case in story.refused.items():
        yield f"  {case['source']} → {case['target']}   ({HEADS[name]})"
        yield from wrapped(reason_of(case) + advice_in(story, name), indent=6)


def reason_of(case: Mapping[str, Any]) -> str:
    """The counts of a pair, and the first test that it fails."""
    evidence = case["evidence"]
    words = []
    if evidence["sessions"]:
        words.append(
            f"together in {evidence['sessions']} sessions ({evidence['expected']:.0f} by chance),"
            f" in this order {evidence['this_order']};"
        )
    words.append(f"{case['failed'][0]['says']}.")
    if case["verdict"] == "complements":
        words.append("Kept as a complement.")
    return " ".join(words)


def advice_in(story: Story, name: str) -> str:
    """How often the advised pair was called because we said so."""
    if name != "our own advice":
        return ""
    return f" All {story.mined['suggested_calls']} times it was called because we suggested it; that is no evidence."


def suggested(story: Story) -> Iterator[str]:
    yield "WHAT COMES NEXT"
    for skills, answer, neighbours in story.suggested:
        yield f"  after {', '.join(skills)}"
        best = answer["suggestions"][0]
        rest = ", ".join(
            f"{s['skill_id']} ({s['probability']:.0%})" for s in answer["suggestions"][1:SHOWN_SUGGESTIONS]
        )
        yield f"    {best['skill_id']} ({best['probability']:.0%}), then {rest}"
        yield from wrapped(f"because {best['because']['words'][0]}", indent=6)
        if neighbours:
            alike = ", ".join(f"{name} ({cosine:.2f})" for name, cosine in neighbours)
            yield f"    descriptions alike: {alike}"


def beyond_likeness(story: Story) -> Iterator[str]:
    yield "BEYOND WHAT READS ALIKE"
    if story.outside is None:
        yield "  The sentence encoder is not installed, so this ran in keyword-only mode and cannot compare."
        return
    found = story.outside
    control = "" if found.random is None else f" (of random pairs {found.random:.0%} are outside)"
    yield from wrapped(
        f"{found.share:.0%} of the {found.edges} learned pairs join skills of which neither is among the other's"
        f" {NEAREST} nearest descriptions{control}. A graph drawn from embedding neighbours cannot hold them,"
        " however it is pruned.",
        indent=2,
    )


def look_around(story: Story) -> Iterator[str]:
    yield "LOOK AROUND"
    for command in (
        ".venv/bin/cowpath next scan-dependencies --home .demo",
        ".venv/bin/cowpath why issue-refund draft-reply --home .demo",
        ".venv/bin/cowpath search 'undo a bad deploy' --home .demo",
        "head -1 .demo/edges/learned.jsonl",
        f".venv/bin/{SQL}",
        ".venv/bin/cowpath import claude     your own agent history, into your own home",
        "make up                            the real thing, on 127.0.0.1:8710",
    ):
        yield f"  {command}"


def wrapped(text: str, *, indent: int) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=" " * indent, subsequent_indent=" " * indent)
