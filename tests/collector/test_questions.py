"""Promises of the ready questions, the export and the metrics."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from collector.analysts.export import export
from collector.analysts.questions import questions
from collector.erase import erase
from collector.service import Collector
from cowpath.cli import main
from cowpath.edge import Edge, write_layer
from cowpath.event import Event
from cowpath.home import Home
from cowpath.skill import Catalogue, Skill, write_catalogue

MakeEvent = Callable[..., Event]
NAMES = [q.name for q in questions()]
GIVEN = {"skill": "plan", "first": "plan", "then": "test"}


@pytest.fixture
def published(home: Home, collector: Collector, event: MakeEvent) -> Home:
    write_catalogue(home.catalogue, Catalogue([Skill(skill_id=s, name=s) for s in ("plan", "test", "idle")]))
    edge = Edge(source="plan", relation="precedes", target="test", status="confirmed", provenance="curated")
    write_layer(home.edges, "curated", [edge])
    collector.take_in(
        [
            event("e1", seq=0, outcome="ok", trigger="user", actor="ada"),
            event("e2", seq=1, minute=2, skill="test", outcome="error", trigger="agent"),
            event("e3", session_id="s2", minute=1440, outcome="ok"),
            event("bad", kind="danced"),
        ]
    )
    collector.publish()
    return home


def told(home: Home, *arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(main, ["sql", "--home", str(home.root), *arguments], catch_exceptions=False)
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def rows(home: Home, *arguments: str) -> list[list[Any]]:
    found: list[list[Any]] = told(home, *arguments)["rows"]
    return found


def test_all_questions_are_there() -> None:
    assert set(NAMES) >= {
        "usage_by_skill", "adoption_by_week", "success_rate", "trigger_split", "unused_skills", "funnel", "next_after",
        "sessions_of_day", "coverage", "rejected_by_reason", "latest_events",
        "edges_of_skill",
    }  # fmt: skip
    assert all(q.about for q in questions())


@pytest.mark.parametrize("name", NAMES)
def test_a_question_has_the_same_answer_in_the_copy_and_live(name: str, published: Home, collector: Collector) -> None:
    question = next(q for q in questions() if q.name == name)
    sets = {p.name: GIVEN[p.name] for p in question.parameters if p.default is None}

    copied = told(published, name, *(f"--set={k}={v}" for k, v in sets.items()))
    live = collector.live.query(question.sql, question.values(sets), limit=10_000, timeout_s=30)

    assert copied["columns"] == live.column_names
    assert len(copied["rows"]) == live.num_rows > 0


def test_answers_are_what_the_log_says(published: Home) -> None:
    assert [r[:3] for r in rows(published, "usage_by_skill")] == [["plan", 2, 2], ["test", 1, 1]]
    assert [r[:5] for r in rows(published, "success_rate")] == [["test", 1, 1, 0, 0.0], ["plan", 2, 2, 2, 1.0]]
    assert [r[0] for r in rows(published, "unused_skills")] == ["idle"]
    assert rows(published, "funnel", "--set", "first=plan", "--set", "then=test") == [[2, 1, 0.5, 120.0]]
    assert rows(published, "next_after", "--set", "skill=plan") == [["test", 1, 1, 1, 1.0]]
    assert [r[0] for r in rows(published, "sessions_of_day")] == ["s2"]
    assert rows(published, "trigger_split")[0] == ["plan", 2, 1, 0, 0, 1]


def test_a_query_written_out_takes_parameters_and_prints_csv(published: Home) -> None:
    result = CliRunner().invoke(
        main,
        ["sql", "select event_id from events where skill = $s", "--set", "s=test", "--format", "csv",
         "--home", str(published.root)],
        catch_exceptions=False,
    )  # fmt: skip
    assert result.stdout == '"event_id"\n"e2"\n'


@pytest.mark.parametrize("sql", ["select * from read_text('{root}/secret')", "select * from '{root}/catalogue.jsonl'"])
def test_the_published_copy_too_is_asked_without_files(sql: str, published: Home) -> None:
    from cowpath.errors import QueryRefused

    with pytest.raises(QueryRefused):
        told(published, sql.format(root=published.root))


def test_a_question_that_lacks_a_parameter_says_which(published: Home) -> None:
    from cowpath.errors import InputError

    with pytest.raises(InputError, match="next_after needs skill"):
        told(published, "next_after")


def test_the_export_holds_each_event_in_the_partition_of_its_day(published: Home, tmp_path: Path) -> None:
    report = export(published.usage, tmp_path / "out")

    assert report["written"] == ["2026-11-30", "2026-12-01"]
    table = pq.read_table(tmp_path / "out" / "events")
    assert sorted(table.column("event_id").to_pylist()) == ["e1", "e2", "e3"]
    assert set(map(str, table.column("dt").to_pylist())) == {"2026-11-30", "2026-12-01"}
    assert pq.read_table(tmp_path / "out" / "skills.parquet").num_rows == 3


def test_report_35_an_export_again_writes_only_the_days_that_changed(
    published: Home, collector: Collector, event: MakeEvent, tmp_path: Path
) -> None:
    export(published.usage, tmp_path)
    collector.take_in([event("late", minute=3)])
    collector.publish()

    report = export(published.usage, tmp_path)

    assert (report["written"], report["unchanged"], report["removed"]) == (["2026-11-30"], 1, [])
    assert pq.read_table(tmp_path / "events").num_rows == 4
    assert [p for p in tmp_path.rglob("*") if p.name.startswith(".")] == []


def test_a_day_that_is_gone_from_the_copy_is_gone_from_the_export(
    published: Home, collector: Collector, tmp_path: Path
) -> None:
    export(published.usage, tmp_path)
    (tmp_path / "events" / "dt=2020-01-01").mkdir()

    assert export(published.usage, tmp_path)["removed"] == ["2020-01-01"]


def test_an_erased_subject_is_in_no_parquet_file_of_the_home_nor_in_the_next_export(
    published: Home, collector: Collector
) -> None:
    def exported() -> set[str]:
        report = CliRunner().invoke(main, ["export", "--home", str(published.root)], catch_exceptions=False)
        assert json.loads(report.stdout)["directory"].startswith(str(published.root))
        return sessions_in_parquet(published)

    assert exported() == {"s1", "s2"}

    assert erase(collector, "actor", "ada")["removed"]["exports"] == 5

    assert sessions_in_parquet(published) == set()
    assert exported() == {"s2"}


def sessions_in_parquet(home: Home) -> set[str]:
    """Read, not searched for: the files are compressed."""
    tables = [pq.read_table(path) for path in home.root.rglob("*.parquet")]
    return {session for t in tables if "session_id" in t.column_names for session in t.column("session_id").to_pylist()}


def test_b16_metrics_tell_what_was_taken_in_and_how_requests_were_answered(start_server: Callable[..., Any]) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    server = start_server()
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        event = {"session_id": "s1", "skill_id": "plan", "event_id": "e1", "ts": "2026-11-30T12:00:00Z"}
        client.post("/v1/events", json=[event, event, {"skill_id": "x"}])
        client.post("/v1/events", json=event | {"event_id": "e2", "skill_id": "custom_skill"})
        client.post("/v1/publish")
        client.get("/nowhere/at/all")
        page = client.get("/metrics").text

    samples = {
        (s.name, *sorted(s.labels.values())): s.value
        for family in text_string_to_metric_families(page)
        for s in family.samples
    }
    assert samples["cowpath_events_accepted_total",] == 1
    assert samples["cowpath_events_duplicate_total",] == 1
    assert samples["cowpath_events_rejected_total", "missing_field"] == 1
    assert samples["cowpath_events_rejected_total", "unnamed_skill"] == 1
    assert samples["cowpath_http_requests_total", "/v1/events", "200", "POST"] == 2
    assert samples["cowpath_http_requests_total", "(any)", "(none)", "404"] == 1
    assert samples["cowpath_journal_sync_seconds_count",] >= 2
    assert samples["cowpath_redacted_name_share",] == 0.5
    assert samples["cowpath_queue_bytes",] == 0
    assert samples["cowpath_drain_lag_bytes",] == 0
    assert {"cowpath_last_event_age_seconds", "cowpath_publish_age_seconds"} <= {name for name, *_ in samples}


def test_a_second_process_asks_the_running_collector_in_every_format(
    start_server: Callable[..., Any], home: Home
) -> None:
    import pyarrow as pa

    server = start_server()
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        client.post("/v1/events", json={"session_id": "s1", "skill_id": "plan", "event_id": "e1"})
        client.post("/v1/publish")
        sql = "select event_id, skill_id from events"
        assert client.post("/v1/sql", json={"sql": sql}).json()["rows"] == [["e1", "plan"]]
        assert client.post("/v1/sql", json={"sql": sql, "format": "csv"}).text == '"event_id","skill_id"\n"e1","plan"\n'
        stream = client.post("/v1/sql", json={"sql": sql, "format": "arrow"})
        assert pa.ipc.open_stream(stream.content).read_all().to_pylist() == [{"event_id": "e1", "skill_id": "plan"}]
        cut = client.post("/v1/sql", json={"sql": "select range from range(5)", "limit": 2})
        assert (cut.json()["rows"], cut.headers["X-Cowpath-Truncated"]) == ([[0], [1]], "true")
        refused = client.post("/v1/sql", json={"sql": "delete from events"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, "query_refused")
    assert rows(home, "latest_events", "--live")[0][3:5] == ["plan", "s1"]
