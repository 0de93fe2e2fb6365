"""The next-skill model: its parts' exact numbers, its answers at the edges, its bytes at rest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cowpath.errors import BadFile
from cowpath.next_model import BUCKETS, EMPTY, Blend, NextModel
from cowpath.next_parts import Alike, Linear, NGrams, Similar
from miner.log import read_log
from miner.parts import fit_content, fit_decayed, fit_last_and_rest, fit_ngrams, fit_session_linear
from miner.transitions import fit

SESSIONS = ["plan build test ship", "plan build test fix test ship", "plan fix test", "build test ship", "look build"]
LOG = [session.split() for session in SESSIONS]


def after(part: NGrams | Linear | Alike | Similar, skills: tuple[str, ...], *prefix: str) -> dict[str, float]:
    scores = part.scores([skills.index(skill) for skill in prefix])
    return dict(zip(skills, scores.tolist(), strict=True))


def test_absolute_discounting_gives_the_numbers_done_by_hand() -> None:
    log = read_log([["a", "b"], ["a", "b"], ["a", "c"]])
    found = after(fit_ngrams(log), log.skills, "a")

    # Order 0: a 3, b 2, c 1 of 6; three skills give .75 * 3 / 6 back, a third of it each.
    order0 = {"a": 2.25 / 6 + 0.125, "b": 1.25 / 6 + 0.125, "c": 0.25 / 6 + 0.125}
    # After a: b 2, c 1 of 3, back-off .75 * 2 / 3 = .5; after (start, a) the same once more.
    order1 = {"a": 0.5 * order0["a"], "b": 1.25 / 3 + 0.5 * order0["b"], "c": 0.25 / 3 + 0.5 * order0["c"]}
    order2 = {"a": 0.5 * order1["a"], "b": 1.25 / 3 + 0.5 * order1["b"], "c": 0.25 / 3 + 0.5 * order1["c"]}
    assert found == pytest.approx(order2)
    assert sum(found.values()) == pytest.approx(1)


def test_a_context_never_seen_backs_off_to_the_shorter_one() -> None:
    log = read_log(LOG)
    ngrams = fit_ngrams(log)
    never, shorter = ("look", "fix", "plan", "build"), ("plan", "plan", "build")
    assert after(ngrams, log.skills, *never) == after(ngrams, log.skills, *shorter)


def test_a_session_starts_where_sessions_started() -> None:
    log = read_log([["a", "b"], ["a", "c"], ["b", "a"], ["a"]])
    found = after(fit_ngrams(log), log.skills)
    assert max(found, key=found.__getitem__) == "a"
    assert found["a"] == pytest.approx(2.25 / 4 + 0.75 * 2 / 4 * (3.25 / 7 + 0.75 * 3 / 7 / 3))


def test_the_decayed_ridge_solves_its_normal_equations() -> None:
    log = read_log([["a", "b", "c"], ["a", "c"]])
    a, b, c = (log.skills.index(skill) for skill in "abc")
    past, target = np.zeros((3, 3)), np.zeros((3, 3))
    past[0, a] = past[2, a] = past[1, b] = 1
    past[1, a] = 0.9
    target[0, b] = target[1, c] = target[2, c] = 1
    weights = np.linalg.solve(past.T @ past + 20 * np.eye(3), past.T @ target)

    found = fit_decayed(log).scores([a, b])

    assert found == pytest.approx(0.9 * weights[a] + weights[b], rel=2e-3)


def test_eliminating_the_last_skill_gives_the_solution_of_the_whole_system() -> None:
    log = read_log(LOG)
    size, rows, targets = len(log.skills), [], []
    for session in log.sessions:
        for at in range(1, len(session)):
            row = np.zeros(2 * size + 1)
            row[session[at - 1]], row[-1] = 1, 1
            for distance in range(2, at + 1):
                row[size + session[at - distance]] += 0.9 ** (distance - 1)
            rows.append(row)
            targets.append(np.eye(size)[session[at]])
    x, y = np.stack(rows), np.stack(targets)
    whole = np.linalg.solve(x.T @ x + 10 * np.eye(2 * size + 1), x.T @ y)

    found = fit_last_and_rest(log)

    assert found.matrix.astype(float) == pytest.approx(whole, rel=2e-3, abs=1e-6)
    asked = [log.skills.index(skill) for skill in ("plan", "fix", "test")]
    expected = whole[asked[2]] + 0.9 * whole[size + asked[1]] + 0.81 * whole[size + asked[0]] + whole[-1]
    assert found.scores(asked) == pytest.approx(expected, rel=5e-3, abs=1e-5)


def test_the_session_linear_part_solves_its_normal_equations() -> None:
    log = read_log([["a", "b", "c"]])
    a, b, c = (log.skills.index(skill) for skill in "abc")
    e = np.exp(-1)
    whole, past, future = np.ones((1, 3)), np.zeros((2, 3)), np.zeros((2, 3))
    past[0, a], past[1, b], past[1, a] = 1, 1, e
    future[0, b], future[0, c], future[1, c] = 1, e, 1
    gram = 0.2 * whole.T @ whole + 0.8 * past.T @ past + 10 * np.eye(3)
    expected = np.linalg.solve(gram, 0.2 * whole.T @ whole + 0.8 * past.T @ future)

    assert fit_session_linear(log).matrix.astype(float) == pytest.approx(expected, rel=2e-3)


def test_descriptions_lend_a_skill_what_followed_its_like() -> None:
    log = read_log([["deploy", "verify"], ["deploy", "verify"], ["deploy", "verify"], ["verify", "report"]])
    vectors = {s: np.eye(3)[i] for i, s in enumerate(("deploy", "verify", "report"))}
    vectors["ship"] = np.array([0.99, 0.0, 0.1]) / np.hypot(0.99, 0.1)
    parts = fit_content(fit_ngrams(log), log.skills, ["ship"], vectors)
    alike, similar = parts["alike"], parts["similar"]

    assert log.skills[int(np.argmax(alike.scores([3])))] == "verify"
    assert log.skills[int(np.argmax(similar.scores([3])))] == "deploy"


def test_unknown_skills_in_a_prefix_are_passed_over() -> None:
    model = fit(LOG)
    with_unknown = model.predict(["look", "never heard of", "plan", "build"])
    assert with_unknown.tolist() == model.predict(["look", "plan", "build"]).tolist()
    assert model.predict(["never heard of"]).sum() == pytest.approx(1)
    assert model.count("never heard of", "plan") == 0


def test_the_current_skill_is_never_suggested_and_the_rest_sums_to_one() -> None:
    model = fit(LOG)
    for skill in model.skills:
        found = model.predict(["plan", skill])
        assert found[model.skills.index(skill)] == 0
        assert found.sum() == pytest.approx(1)
        assert all(part[model.skills.index(skill)] == 0 for part in model.parts([skill]).values())


def test_count_is_how_often_one_directly_followed_the_other() -> None:
    model = fit(LOG)
    assert [model.count("build", "test"), model.count("test", "build"), model.count("plan", "build")] == [3, 0, 2]


def test_a_weighted_mean_and_a_weighted_product_of_two_parts() -> None:
    parts = {"ngrams": np.array([0.5, 0.5, 0.0]), "decayed": np.array([0.1, 0.4, 0.5]), "popularity": np.zeros(3)}
    weights = {bucket: {"ngrams": 0.75, "decayed": 0.25, "popularity": 3.0} for bucket in BUCKETS}

    assert Blend("mean", weights).join(parts, "1") == pytest.approx([0.4, 0.475, 0.125])
    product = Blend("product", weights).join(parts, "1")
    assert product[0] / product[1] == pytest.approx((0.1 / 0.4) ** 0.25, rel=1e-4)


def test_a_model_at_rest_comes_back_and_has_the_same_bytes(tmp_path: Path) -> None:
    vectors = {s: np.eye(8)[i] for i, s in enumerate(["plan", "build", "test", "ship", "brand new"])}
    model = fit(LOG * 20, vectors=vectors)
    model.save(tmp_path / "next.npz")
    loaded = NextModel.load(tmp_path / "next.npz")
    loaded.save(tmp_path / "again.npz")

    assert (tmp_path / "next.npz").read_bytes() == (tmp_path / "again.npz").read_bytes()
    assert loaded.skills == model.skills
    assert loaded.new_skills == ("brand new",)
    assert loaded.record == model.record
    for prefix in ([], ["plan"], ["plan", "build"], ["brand new"]):
        assert loaded.predict(prefix).tolist() == model.predict(prefix).tolist()


def test_a_file_that_is_no_model_says_so(tmp_path: Path) -> None:
    (tmp_path / "next.npz").write_bytes(b"not a zip file")
    with pytest.raises(BadFile, match="next-skill model"):
        NextModel.load(tmp_path / "next.npz")


@pytest.mark.parametrize("nothing", [[], [[]]])
def test_an_empty_log_gives_a_model_that_says_nothing(nothing: list[list[str]], tmp_path: Path) -> None:
    model = fit(nothing)
    model.save(tmp_path / "next.npz")

    for empty in (model, EMPTY, NextModel.load(tmp_path / "next.npz")):
        assert empty.predict(["plan"]).shape == (0,)
        assert empty.predict([]).shape == (0,)
        assert empty.predict_new(["plan"]).shape == (0,)
        assert empty.parts(["plan"]) == {}
        assert empty.weights(["plan"]) == {}
        assert empty.count("plan", "build") == 0


def test_a_log_of_one_call_knows_how_sessions_start() -> None:
    model = fit([["plan"]])
    assert model.predict([]).tolist() == [1.0]
    assert model.predict(["plan"]).tolist() == [0.0]
