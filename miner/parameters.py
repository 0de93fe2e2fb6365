"""The thresholds of the method, one noun. Their measured effect stands in docs/methods.md."""

from __future__ import annotations

import hashlib

import msgspec


class Parameters(msgspec.Struct, frozen=True, kw_only=True):
    """Every number that decides an edge. Shares and probabilities lie in 0..1."""

    q: float = 0.05
    """False discovery rate over all pairs of used skills (Benjamini and Hochberg 1995)."""
    min_sessions: int = 3
    """Least co-uses of a pair."""
    min_lift: float = 1.3
    """Least observed / expected co-uses."""
    min_outside_lift: float = 1.1
    """The same among the others, whichever witness is left out."""
    min_outside_z: float = 1.645
    """How surprising that must be, in standard deviations: one side, 5 %."""
    min_witnesses: int = 2
    """Least actors (or days, or sessions: see ``witness``) behind a pair, and behind its direction."""
    min_outside_busiest: int = 2
    """Least co-uses that remain without the busiest witness."""
    cap: float = 10.0
    """Most ordered co-uses that one witness may contribute to a direction."""
    z: float = 1.645
    """Normal quantile of the Wilson interval behind a confirmed direction."""
    tau: float = 0.65
    """Least lower bound of a confirmed direction's share."""
    candidate_z: float = 1.0
    candidate_tau: float = 0.60
    complement_low: float = 0.25
    complement_high: float = 0.75
    """A related pair whose order interval at ``candidate_z`` lies within these bounds has no order: it complements."""
    recent_share: float = 0.3
    """Share of the latest sequences that may veto a direction (drift)."""
    recent_min: int = 1
    """Least ordered co-uses among these that may."""
    recent_reverse_min: int = 4
    """Least of them that may prove the other order."""
    pool_min: int = 400
    """Least sequences of a stratum; smaller ones fall back to a coarser group."""
    weeks_per_group: int = 4
    min_confidence: float = 0.5
    """Calls that a source only inferred, with less confidence than this, are not evidence."""
    shown_within: int = 5
    """A call of a skill that was shown to its stream so many calls ago, or fewer, followed our advice."""
    conflict_min_sessions: int = 30
    """Least sessions whose end is known behind a proposal of ``conflicts_with``."""
    conflict_z: float = 4.0
    """Least surprise, in standard deviations, at how many of them failed."""
    recovery_min_sessions: int = 3
    """Least sessions in which a skill was turned to after another had failed."""
    bundle_min_share: float = 0.005
    bundle_min_sessions: int = 5
    bundle_max_size: int = 5

    @property
    def reading(self) -> str:
        """The thresholds that decide how the log is read and counted; the others only judge the counts."""
        return f"{self.min_confidence}:{self.weeks_per_group}:{self.shown_within}"

    @property
    def digest(self) -> str:
        """Twelve hex digits that change when any threshold does."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:12]
