"""Fit the recurrent part of the next-skill model. Training needs torch; what was learned is plain arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cowpath.errors import ModelMissing
from cowpath.next_parts import Gru
from miner.log import Log
from miner.parts import MOST_HEADS

WIDTH = 64
DROPOUT = 0.2
LONGEST = 50
BATCH = 64
STEP = 0.003
EPOCHS = 30
PATIENCE = 2
"""Epochs without a gain on the tenth kept aside, after which training stops."""


def fit_gru(log: Log, seed: int = 0) -> Gru:
    """A small network with a full softmax (GRU4Rec, Hidasi et al. 2016), stopped early on a tenth of the sessions.

    One thread and a fixed seed: equal logs give equal bytes on one machine. Needs a session of two calls.
    """
    torch = _torch()
    heads = min(len(log.skills), MOST_HEADS)
    with _apart(torch, seed):
        layers = torch.nn.ModuleDict(
            {
                "embed": torch.nn.Embedding(heads + 1, WIDTH, padding_idx=0),
                "gru": torch.nn.GRU(WIDTH, WIDTH, batch_first=True),
                "drop": torch.nn.Dropout(DROPOUT),
                "out": torch.nn.Linear(WIDTH, heads),
            }
        )
        _train(torch, layers, _windows(log, heads), seed)
        return _at_rest(torch, layers, len(log.skills))


def _torch() -> Any:
    try:
        import torch  # only where the part is asked for
    except ImportError as error:
        raise ModelMissing(
            "the recurrent part is trained with torch, which is not installed",
            suggestions=["pip install 'cowpath[model]'", "cowpath mine --no-gru"],
        ) from error
    return torch


@contextmanager
def _apart(torch: Any, seed: int) -> Iterator[None]:
    """One thread and random numbers of our own; torch is afterwards as it was."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)


def _windows(log: Log, heads: int) -> list[list[int]]:
    """Sessions as symbols (a skill's number + 1) in pieces of the longest length and one, overlapping by one."""
    held = [[skill + 1 for skill in session if skill < heads] for session in log.sessions]
    return [s[at : at + LONGEST + 1] for s in held for at in range(0, len(s) - 1, LONGEST)]


def _train(torch: Any, layers: Any, windows: Sequence[list[int]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(windows))
    kept = [windows[i] for i in order[: max(1, len(windows) // 10)]]
    learned = [windows[i] for i in order[len(kept) :]] or kept
    optimizer = torch.optim.Adam(layers.parameters(), lr=STEP)
    best, state, waited = float("inf"), None, 0
    for _ in range(EPOCHS):
        layers.train()
        for batch in _batches([learned[i] for i in rng.permutation(len(learned))]):
            optimizer.zero_grad()
            total, calls = _loss(torch, layers, batch)
            (total / calls).backward()
            optimizer.step()
        layers.eval()
        with torch.no_grad():
            loss = sum(float(_loss(torch, layers, batch)[0]) for batch in _batches(kept))
        best, state, waited = (loss, _copy(layers), 0) if loss < best else (best, state, waited + 1)
        if waited == PATIENCE:
            break
    layers.load_state_dict(state)


def _batches(windows: Sequence[list[int]]) -> Iterator[Sequence[list[int]]]:
    return (windows[start : start + BATCH] for start in range(0, len(windows), BATCH))


def _loss(torch: Any, layers: Any, windows: Sequence[list[int]]) -> tuple[Any, int]:
    """Summed cross entropy of the calls that followed, and how many they are."""
    longest = max(len(w) for w in windows)
    padded = torch.tensor([w + [0] * (longest - len(w)) for w in windows])
    hidden, _ = layers["gru"](layers["drop"](layers["embed"](padded[:, :-1])))
    followed = padded[:, 1:] > 0
    said, targets = layers["out"](layers["drop"](hidden[followed])), padded[:, 1:][followed] - 1
    return torch.nn.functional.cross_entropy(said, targets, reduction="sum"), len(targets)


def _copy(layers: Any) -> dict[str, Any]:
    return {name: value.clone() for name, value in layers.state_dict().items()}


def _at_rest(torch: Any, layers: Any, size: int) -> Gru:
    """The network as arrays, with what each skill gives the gates worked out beforehand."""
    gru, out = layers["gru"], layers["out"]
    with torch.no_grad():
        at_gates = layers["embed"].weight[1:] @ gru.weight_ih_l0.T + gru.bias_ih_l0
        at_gates[:, : 2 * WIDTH] += gru.bias_hh_l0[: 2 * WIDTH]
    return Gru(
        inputs=_half(at_gates),
        recurrent=_half(gru.weight_hh_l0.T),
        bias=_half(gru.bias_hh_l0[2 * WIDTH :]),
        outputs=_half(out.weight.T),
        popular=_half(out.bias),
        size=np.array(size),
    )


def _half(values: Any) -> NDArray[np.float16]:
    array: NDArray[np.float16] = np.ascontiguousarray(values.detach().numpy(), dtype=np.float16)
    return array
