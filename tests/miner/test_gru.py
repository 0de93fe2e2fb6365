"""The recurrent part: kept where order further back decides, left out where it adds nothing, plain arrays at rest."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np
import pytest

from cowpath.errors import InputError, ModelMissing
from cowpath.event import Event
from cowpath.next_model import NextModel
from cowpath.next_parts import LONGEST_READ, Gru
from cowpath.settings import Settings, read_settings
from miner.log import read_log
from miner.stages import mine
from miner.transitions import fit

SESSIONS = 700


def far_order() -> list[list[str]]:
    """Three noisy steps lie between the opening pair and its answer, and the pair's order decides which comes."""
    rng = np.random.default_rng(5)
    log = []
    for _ in range(SESSIONS):
        swapped = bool(rng.integers(2))
        opening = ["left", "right"] if swapped else ["right", "left"]
        between = [f"step{i}" for i in rng.permutation(6)[:3]]
        log.append([*opening, *between, "ask", "yes" if swapped else "no"])
    return log


def near_order() -> list[list[str]]:
    """The last skill alone decides, as far as anything does."""
    rng = np.random.default_rng(5)
    log = []
    for _ in range(SESSIONS):
        session = [int(rng.integers(12))]
        for _ in range(4):
            session.append((session[-1] + 1) % 12 if rng.random() < 0.7 else int(rng.integers(12)))
        log.append([f"k{skill}" for skill in session])
    return log


@pytest.fixture(scope="module")
def far() -> NextModel:
    pytest.importorskip("torch")
    return fit(far_order(), gru=True)


def test_it_is_kept_where_the_order_of_what_lies_far_back_decides(far: NextModel) -> None:
    said = far.record["gru"]
    assert said["kept"] is True
    assert said["mrr@20_with"] - said["mrr@20_without"] > 2 * said["standard_error"] > 0
    assert isinstance(far.kept["gru"], Gru)
    for opening, answer in ((["left", "right"], "yes"), (["right", "left"], "no")):
        found = far.predict([*opening, "step4", "step0", "step2", "ask"])
        assert far.skills[int(found.argmax())] == answer


def test_it_is_left_out_where_the_others_say_as_much(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    model, plain = fit(near_order(), gru=True), fit(near_order())
    assert model.record["gru"]["kept"] is False
    assert "gru" not in model.kept
    assert model.blend == plain.blend
    assert "gru" not in plain.record


def test_equal_logs_in_any_order_give_equal_bytes(far: NextModel) -> None:
    assert fit(far_order()[::-1], gru=True).to_bytes() == far.to_bytes()


def test_at_rest_it_says_what_it_said_in_under_a_fifth_of_a_millisecond(far: NextModel, tmp_path: Path) -> None:
    far.save(tmp_path / "next.npz")
    loaded = NextModel.load(tmp_path / "next.npz")
    part = loaded.kept["gru"]
    longest = list(range(5)) * (LONGEST_READ // 5)
    assert part.scores(longest).tolist() == far.kept["gru"].scores(longest).tolist()
    assert part.scores([3] * 40 + longest).tolist() == part.scores(longest).tolist()
    assert part.scores([]).tolist() == [0.0] * len(far.skills)
    assert part.scores([1]).sum() == pytest.approx(1)
    took = []
    for _ in range(200):
        began = perf_counter()
        part.scores(longest)
        took.append(perf_counter() - began)
    assert min(took) < 0.0002


def test_the_arrays_say_what_the_network_says() -> None:
    torch = pytest.importorskip("torch")
    from miner.gru import WIDTH, _at_rest

    torch.manual_seed(1)
    layers = torch.nn.ModuleDict(
        {
            "embed": torch.nn.Embedding(8, WIDTH, padding_idx=0),
            "gru": torch.nn.GRU(WIDTH, WIDTH, batch_first=True),
            "out": torch.nn.Linear(WIDTH, 7),
        }
    )
    prefix = [2, 5, 0, 6, 2]
    with torch.no_grad():
        hidden, _ = layers["gru"](layers["embed"](torch.tensor([[s + 1 for s in prefix]])))
        expected = torch.softmax(layers["out"](hidden[0, -1]), dim=0).numpy()
    assert _at_rest(torch, layers, 9).scores(prefix) == pytest.approx([*expected, 0, 0], abs=2e-3)


def test_without_torch_it_says_what_to_install_and_off_it_needs_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    log = near_order()[:60]
    assert fit(log).skills == read_log(log).skills
    with pytest.raises(ModelMissing, match="torch") as raised:
        fit(log, gru=True)
    assert "pip install 'cowpath[model]'" in raised.value.suggestions


def test_a_mining_run_with_it_is_told_apart_from_one_without(
    publish: Callable[..., Settings], sessions: Callable[..., list[Event]]
) -> None:
    pytest.importorskip("torch")
    settings = publish(sessions(["plan build test"] * 40 + ["look fix"] * 20))
    plain, trained = mine(settings), mine(replace(settings, gru=True))

    assert plain["run_id"] != trained["run_id"]
    assert "gru" not in plain["next_model"]
    assert trained["next_model"]["gru"]["kept"] is False
    assert mine(settings) == plain


def test_a_switch_says_yes_or_no_and_nothing_else() -> None:
    assert [read_settings({"COWPATH_GRU": said}).gru for said in ("1", "Yes", "0", "off", "")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    with pytest.raises(InputError, match="COWPATH_GRU is 'maybe'"):
        read_settings({"COWPATH_GRU": "maybe"})
