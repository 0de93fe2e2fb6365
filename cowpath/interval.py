"""Intervals of shares, and of the difference of two, that also hold for small numbers."""

from __future__ import annotations

import math

Z = 1.959964
"""Of the 95 % interval."""


def newcombe(one: tuple[int, int], other: tuple[int, int], *, z: float = Z) -> tuple[float, float]:
    """Interval of the difference of two shares, each (successes, trials), from their Wilson intervals.

    Newcombe (1998), Interval estimation for the difference between independent proportions, method 10.
    """
    p, q = one[0] / one[1], other[0] / other[1]
    (p_low, p_high), (q_low, q_high) = wilson(*one, z=z), wilson(*other, z=z)
    return p - q - math.hypot(p - p_low, q_high - q), p - q + math.hypot(p_high - p, q - q_low)


def wilson(k: float, n: float, *, z: float = Z) -> tuple[float, float]:
    """Wilson's (1927) interval of a share k/n."""
    middle, half = k / n + z * z / (2 * n), z * math.sqrt(k / n * (1 - k / n) / n + z * z / (4 * n * n))
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)
