"""/metrics: what a running collector counts, in Prometheus' text format, on a registry of its own."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from collector import status
from collector.analysts.numbers import Answers
from collector.service import Collector
from cowpath.event import utc_now

SHARES = """
    select
        max(stored_at),
        count(*) filter (where kind = 'activated'),
        (select count(*) from rejected where code = 'unnamed_skill')
    from events
"""


def exposition(collector: Collector, answers: Answers) -> bytes:
    """The whole page."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Numbers(collector, answers))
    return generate_latest(registry)


class _Numbers:
    def __init__(self, collector: Collector, answers: Answers) -> None:
        self._collector = collector
        self._answers = answers

    def collect(self) -> Iterator[Metric]:
        yield from self._taken_in()
        yield from self._queue()
        yield from self._stored()
        requests = CounterMetricFamily(
            "cowpath_http_requests", "Answered requests.", labels=["method", "route", "status"]
        )
        for (method, route, code), n in sorted(self._answers.items()):
            requests.add_metric([method, route, str(code)], n)
        yield requests

    def _taken_in(self) -> Iterator[Metric]:
        taken = self._collector.taken
        yield CounterMetricFamily("cowpath_events_accepted", "Events acknowledged.", value=taken["accepted"])
        yield CounterMetricFamily("cowpath_events_duplicate", "Repeats acknowledged.", value=taken["duplicates"])
        rejected = CounterMetricFamily("cowpath_events_rejected", "Items refused, by reason.", labels=["reason"])
        for reason, n in sorted(self._collector.refused.items()):
            rejected.add_metric([reason], n)
        yield rejected
        ignored = CounterMetricFamily(
            "cowpath_payloads_ignored", "Payloads that told of no call.", labels=["door", "event"]
        )
        for (door, event), n in self._collector.ignored.counts().items():
            ignored.add_metric([door, event], n)
        yield ignored

    def _queue(self) -> Iterator[Metric]:
        collector = self._collector
        yield GaugeMetricFamily(
            "cowpath_queue_bytes", "Bytes that wait for the disk.", value=collector.journal.pending_bytes
        )
        yield GaugeMetricFamily(
            "cowpath_drain_lag_bytes", "Journal bytes that are not yet in live.duckdb.", value=collector.backlog()
        )
        yield HistogramMetricFamily(
            "cowpath_journal_sync_seconds",
            "How long an fsync of the journal took.",
            buckets=collector.sync_times.buckets(),
            sum_value=collector.sync_times.sum_s,
        )

    def _stored(self) -> Iterator[Metric]:
        with self._collector.cursor() as cursor:
            ((last, calls, unnamed),) = cursor.rows(SHARES)
        if last:
            age_s = utc_now().replace(tzinfo=None) - last
            yield GaugeMetricFamily(
                "cowpath_last_event_age_seconds", "Time since the last event was stored.", value=age_s.total_seconds()
            )
        if calls or unnamed:
            yield GaugeMetricFamily(
                "cowpath_redacted_name_share",
                "Share of calls whose agent hid the skill's name.",
                value=unnamed / (calls + unnamed),
            )
        published = status.published(self._collector.home.usage)
        if published:
            yield GaugeMetricFamily(
                "cowpath_publish_age_seconds", "Time since usage.duckdb was written.", value=published["age_s"]
            )
