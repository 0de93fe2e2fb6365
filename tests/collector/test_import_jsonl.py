"""JSON lines become events and skills; a file read again adds nothing and no line is lost without a word."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from collector.doors import open_door
from collector.importers.jsonl import import_jsonl, read_events
from collector.importers.skills import merge_skills
from cowpath.cli import main
from cowpath.errors import UnknownSkill
from cowpath.event import Event, Rejected, derived_id
from cowpath.home import Home
from cowpath.settings import Settings
from cowpath.skill import Catalogue, Skill, read_catalogue, write_catalogue
from cowpath.store import Store


def lines(*rows: object) -> list[bytes]:
    return [json.dumps(row).encode() + b"\n" for row in rows]


def call(skill: str = "plan", session: str = "s1", **more: object) -> dict[str, object]:
    return {"session_id": session, "skill_id": skill, **more}


def events(*rows: object) -> list[Event]:
    items = list(read_events(lines(*rows)))
    assert all(isinstance(item, Event) for item in items), items
    return [item for item in items if isinstance(item, Event)]


@pytest.fixture
def settings(home: Home) -> Settings:
    return Settings(home=str(home.root), publish_every_s=0)


def stored(home: Home, sql: str) -> list[tuple[object, ...]]:
    with Store.open(home.live, read_only=True) as store:
        return store.rows(sql)


def test_a_line_becomes_an_event_with_an_id_that_stays() -> None:
    [event] = events(
        call(
            seq=3,
            ts="2026-03-01 10:00:00",
            actor="ann",
            outcome="success",
            group="g",
            suggested_by="cowpath",
            stream_id="sub",
            batch_id="b",
            trigger="user",
            duration_ms=12,
            session_reward=0.5,
        )
    )

    assert event == Event(
        event_id=derived_id("jsonl", "s1", "sub", 3, "plan"),
        session_id="s1",
        skill="plan",
        stream_id="sub",
        seq=3,
        called_at=datetime(2026, 3, 1, 10, tzinfo=UTC),
        trigger="user",
        outcome="ok",
        duration_ms=12.0,
        batch_id="b",
        actor="ann",
        source="jsonl",
        suggested_by="cowpath",
        extra={"group": "g", "session_reward": 0.5},
    )


@pytest.mark.parametrize(
    "written", ["2026-03-01T10:00:00Z", "2026-03-01 10:00:00", "2026-03-01T12:00:00+02:00", 1772359200, 1772359200000]
)
def test_times_of_every_notation_are_utc(written: object) -> None:
    assert events(call(ts=written))[0].called_at == datetime(2026, 3, 1, 10, tzinfo=UTC)


def test_an_id_of_its_own_is_kept() -> None:
    assert events(call(event_id="mine", seq=0))[0].event_id == "mine"


def test_equal_lines_without_a_sequence_number_are_told_apart_by_their_place() -> None:
    first = events(call(), call(), call("commit"))
    again = events(call(), call(), call("commit"))

    assert len({event.event_id for event in first}) == 3
    assert first == again


def test_bad_lines_say_where_and_why_and_the_rest_is_read() -> None:
    items = list(read_events([b"\n", *lines(call(seq=0)), b"{torn\n", *lines([1], call(ts="soon"), call(seq="x"))]))

    assert [item.skill if isinstance(item, Event) else (item.code, item.index) for item in items] == [
        "plan",
        ("bad_json", 2),
        ("not_an_object", 3),
        ("bad_time", 4),
        ("bad_type", 5),
    ]
    assert all(item.message.startswith("line ") for item in items if isinstance(item, Rejected))


@given(st.permutations(range(12)))
def test_the_order_of_lines_does_not_change_ids(order: list[int]) -> None:
    rows = [call(f"skill-{n % 3}", f"s{n % 2}", seq=n) for n in range(12)]

    ids = {event.event_id for event in events(*rows)}

    assert {event.event_id for event in events(*(rows[n] for n in order))} == ids


def test_importing_twice_is_importing_once_in_any_order(settings: Settings, home: Home) -> None:
    rows = lines(*(call(f"skill-{n % 5}", f"s{n % 7}", seq=n) for n in range(200)))
    with open_door(settings) as door:
        first = import_jsonl(rows, door)
    random.Random(1).shuffle(rows)
    with open_door(settings) as door:
        second = import_jsonl(rows, door)

    assert (first["calls"], first["accepted"], first["duplicates"]) == (200, 200, 0)
    assert (first["skills"], first["sessions"], first["streams"]) == (5, 7, 7)
    assert (second["accepted"], second["duplicates"]) == (0, 200)
    assert stored(home, "select count(*), count(distinct event_id) from events") == [(200, 200)]


def test_every_refused_line_is_counted_by_reason_and_kept(settings: Settings, home: Home) -> None:
    bad = [b"{torn\n", *lines(call(""), call("custom_skill", seq=1), call("x" * 300, seq=2))]
    with open_door(settings) as door:
        document = import_jsonl([*lines(call(seq=0)), *bad], door)

    assert (document["accepted"], document["rejected"]) == (1, 4)
    assert document["reasons"] == {"bad_json": 1, "missing_field": 1, "too_long": 1, "unnamed_skill": 1}
    assert stored(home, "select code from rejected order by code") == [(code,) for code in document["reasons"]]


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "calls", "sessions", "skills"),
    [("tau_bench", 2150, 425, 30), ("galaxy_eu_2019", 4087, 426, 250), ("restbench_tmdb", 221, 95, 46)],
)
def test_a_measured_data_set_comes_in_whole(
    name: str, calls: int, sessions: int, skills: int, data: Path, settings: Settings, home: Home
) -> None:
    folder = data / name
    with (folder / "events.jsonl").open("rb") as file, open_door(settings) as door:
        document = import_jsonl(file, door)
    with (folder / "catalog.jsonl").open("rb") as file:
        merged = merge_skills(file, home)

    assert (document["accepted"], document["rejected"], document["sessions"]) == (calls, 0, sessions)
    assert (merged.added, merged.skipped) == (skills, 0)


def test_a_catalogue_file_adds_then_changes_nothing_then_changes_what_changed(home: Home) -> None:
    rows = [{"skill_id": "plan", "name": "Plan", "description": "Plans.", "tags": ["a"], "node_type": "x"}]
    first = merge_skills(lines(*rows), home)
    second = merge_skills(lines(*rows), home)
    third = merge_skills(lines({**rows[0], "description": "Plans well.", "aliases": ["outline"]}), home)
    merge_skills(lines(*rows), home)

    assert [(r.added, r.unchanged, r.changed) for r in (first, second, third)] == [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
    skill = read_catalogue(home.catalogue).skills["plan"]
    assert (skill.name, skill.description, skill.tags, skill.metadata) == ("Plan", "Plans.", ("a",), {"node_type": "x"})
    assert skill.aliases == ("outline",)


def test_a_catalogue_line_does_not_replace_a_skill_that_has_a_file(home: Home) -> None:
    write_catalogue(home.catalogue, Catalogue([Skill(skill_id="plan", name="plan", path="/lib/plan/SKILL.md")]))

    report = merge_skills(lines({"skill_id": "plan", "name": "other"}), home)

    assert (report.kept, report.changed) == (1, 0)
    assert read_catalogue(home.catalogue).skills["plan"].name == "plan"


def test_catalogue_lines_that_are_no_skill_are_skipped_with_an_error(home: Home) -> None:
    report = merge_skills([b"{torn\n", *lines([1], {"name": "x"}, {"skill_id": " "}, {"skill_id": "ok"})], home)

    assert (report.added, report.skipped) == (1, 4)
    assert [(d.level, d.message.split(":")[0]) for d in report.diagnostics] == [
        ("error", f"line {number}") for number in (1, 2, 3, 4)
    ]


def test_the_commands_print_documents_and_an_unknown_skill_is_an_error(tmp_path: Path, home: Home) -> None:
    (tmp_path / "events.jsonl").write_bytes(b"".join(lines(call(seq=0), call("commit", seq=1))))
    where = ["--home", str(home.root), "--json"]

    def answer(*arguments: str) -> dict[str, object]:
        result = CliRunner().invoke(main, [*arguments, *where], catch_exceptions=False)
        return msgspec.json.decode(result.stdout, type=dict[str, object])

    imported = answer("import", "jsonl", str(tmp_path / "events.jsonl"))
    listed = answer("catalogue", "list")
    missing = CliRunner().invoke(main, ["catalogue", "show", "plam", *where])

    assert (imported["accepted"], listed) == (2, {"count": 0, "skills": []})
    assert isinstance(missing.exception, UnknownSkill)


@pytest.mark.model
def test_a_synchronised_skill_is_shown_by_any_of_its_names_and_embedded(tmp_path: Path, home: Home) -> None:
    (tmp_path / "lib/plan").mkdir(parents=True)
    (tmp_path / "lib/plan/SKILL.md").write_text("---\nname: outline\ndescription: Plans.\n---\nBody\n")
    where = ["--home", str(home.root), "--json"]

    synced = CliRunner().invoke(main, ["catalogue", "sync", str(tmp_path / "lib"), *where], catch_exceptions=False)
    shown = CliRunner().invoke(main, ["catalogue", "show", "outline", *where], catch_exceptions=False)

    document = msgspec.json.decode(synced.stdout)
    assert (document["added"], document["skills"], document["embeddings"]["available"]) == (["plan"], 1, True)
    assert [d["code"] for d in document["diagnostics"]] == ["name_differs"]
    assert msgspec.json.decode(shown.stdout)["skill_id"] == "plan"
