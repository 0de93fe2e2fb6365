"""The listing under its budget: how many of the next skills' descriptions it holds, cut by habit and by need.

    python -m benchmarks.listing --json [--data NAME ...] [--seeds 0 1 2]

A fifth of the units is held out; counts and the next-skill model are learned from the rest. At every call
of a held-out session (at most 600 drawn for a seed) whose skill has a description: is that description whole in the
listing that an agent has before the call? Names always stay, so a budget here is what is left for descriptions.
"by habit" keeps the most called, as an agent does by itself; "at the start" goes by need before the first call,
which is all that settings can do; "at the call" by need after the calls so far, for whoever writes the listing anew.
These logs come without edges of other layers, so no prerequisites are reached.
Data sets are read from COWPATH_DATA, else ``../shared/data``; an absent one ends the run.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import document, finish
from cowpath.next_model import NextModel
from cowpath.skill import Skill
from miner.next_eval import Session, by_unit, read_lines, read_sessions
from miner.transitions import fit
from ranker.listing import Budget, Entry, by_habit, by_need, entry_of

SETS = ("n8n_dev", "traject_bench")
ROOMS = (1_000, 2_000, 4_000, 8_000)
"""Characters left for descriptions; the last is what Claude Code gives its whole listing by default."""

MOST_CALLS = 600
REPLICATES = 2_000
AT_LEAST = 1.25
ARMS = ("by habit", "at the start", "at the call")

Row = dict[str, Any]
Call = tuple[tuple[str, ...], str, str]
"""What was called before, the skill that came, the unit that is drawn whole in an interval."""


@dataclass(frozen=True)
class Learned:
    """What the held-in part tells."""

    uses: Mapping[str, int]
    model: NextModel

    @classmethod
    def of(cls, train: Sequence[Session], seed: int) -> Learned:
        skills = [session.skills for session in train]
        return cls(
            uses=Counter(skill for called in skills for skill in called),
            model=fit(skills, groups=[session.unit for session in train], seed=seed),
        )

    def need_after(self, prefix: Sequence[str]) -> dict[str, float]:
        return dict(zip(self.model.skills, self.model.predict(prefix).tolist(), strict=True))


def main() -> None:
    """Measure, print the document, exit 1 where a bar is missed or a data set is absent."""
    asked = _arguments()
    home = Path(os.environ.get("COWPATH_DATA", Path(__file__).parents[2] / "shared" / "data"))
    absent = [name for name in asked.data if not (home / name / "events.jsonl").exists()]
    if absent:
        sys.exit(f"absent below {home}: {', '.join(absent)}; set COWPATH_DATA to the folder of data sets")
    rows = {name: measure(home / name, asked.seeds) for name in asked.data}
    finish(document("listing", results={"seeds": asked.seeds, "sets": rows}, bars=bars(rows)), as_json=asked.json)


def measure(data: Path, seeds: Sequence[int]) -> Row:
    """Every arm at every budget over the held-out calls of all seeds."""
    sessions = read_sessions(data)
    entries = [entry_of(skill, Budget()) for skill in _skills(data)]
    calls: list[Call] = []
    kept: list[NDArray[np.bool_]] = []
    for seed in seeds:
        train, test = by_unit(sessions, seed)
        drawn = _calls(test, {entry.skill_id for entry in entries if entry.text}, seed)
        kept.append(_kept(entries, Learned.of(train, seed), drawn))
        calls += drawn
    held = np.concatenate(kept)
    fresh = np.array([skill not in prefix for prefix, skill, _ in calls])
    units = [unit for _, _, unit in calls]
    return {
        "skills": len(entries),
        "texts_chars": sum(entry.text_chars for entry in entries),
        "calls": len(calls),
        "budgets": {str(room): _row(held[:, i], units) for i, room in enumerate(ROOMS)},
        "skills_new_to_their_session": {
            "calls": int(fresh.sum()),
            "budgets": {
                str(room): _row(held[fresh, i], [u for u, new in zip(units, fresh, strict=True) if new])
                for i, room in enumerate(ROOMS)
            },
        },
    }


def bars(rows: Mapping[str, Row]) -> list[Row]:
    """At the default budget, need at the call keeps a quarter more than habit; the interval and the most possible."""
    found = []
    for name, row in rows.items():
        ratio = row["budgets"][str(ROOMS[-1])]["versus_habit"]["at the call"]
        title = f"{name}: kept at the call / kept by habit, {ROOMS[-1]} characters"
        found.append({"bar": title, "at": AT_LEAST, "measured": ratio["ratio"], "met": ratio["ratio"] >= AT_LEAST})
    return found


def _kept(entries: Sequence[Entry], learned: Learned, calls: Sequence[Call]) -> NDArray[np.bool_]:
    """Whether each call's description was there: calls x budgets x arms."""
    names = sum(entry.name_chars for entry in entries)
    fixed = [
        (by_habit(entries, learned.uses, names + room), by_need(entries, learned.uses, learned.uses, names + room)[0])
        for room in ROOMS
    ]
    held = np.zeros((len(calls), len(ROOMS), len(ARMS)), dtype=bool)
    for number, (prefix, skill, _) in enumerate(calls):
        need = learned.need_after(prefix)
        for at, room in enumerate(ROOMS):
            found = by_need(entries, need, learned.uses, names + room)[0]
            held[number, at] = [skill in kept for kept in (*fixed[at], found)]
    return held


def _row(held: NDArray[np.bool_], units: Sequence[str]) -> Row:
    shares = held.mean(axis=0)
    habit = float(shares[0])
    return {
        "kept": {arm: round(float(share), 4) for arm, share in zip(ARMS, shares, strict=True)},
        "most_possible_ratio": round(1 / habit, 3) if habit else None,
        "versus_habit": {arm: _ratio(held[:, i], held[:, 0], units) for i, arm in enumerate(ARMS) if i},
    }


def _ratio(ours: NDArray[np.bool_], habit: NDArray[np.bool_], units: Sequence[str]) -> Row:
    """Ours over habit with a 95 % interval: whole units drawn with replacement, the same for both."""
    names, unit = np.unique(np.array(units, dtype=np.str_), return_inverse=True)
    mine, other = (np.bincount(unit, weights=kept, minlength=len(names)) for kept in (ours, habit))
    draws = np.random.default_rng(0).multinomial(len(names), np.full(len(names), 1 / len(names)), size=REPLICATES)
    low, high = np.quantile((draws @ mine) / np.maximum(draws @ other, 1), [0.025, 0.975])
    return {
        "ratio": round(float(mine.sum() / max(other.sum(), 1)), 4),
        "interval": [round(float(v), 4) for v in (low, high)],
    }


def _calls(test: Sequence[Session], described: set[str], seed: int) -> list[Call]:
    calls = [(s.skills[:at], s.skills[at], s.unit) for s in test for at in range(1, len(s.skills))]
    calls = [call for call in calls if call[1] in described]
    drawn = np.sort(np.random.default_rng(seed).permutation(len(calls))[:MOST_CALLS])
    return [calls[i] for i in drawn]


def _skills(data: Path) -> list[Skill]:
    rows = read_lines(data / "catalog.jsonl")
    return [Skill(skill_id=row["skill_id"], name=row["name"], description=row.get("description") or "") for row in rows]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.listing", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", choices=SETS, default=list(SETS), metavar="NAME", help=", ".join(SETS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="random splits")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
