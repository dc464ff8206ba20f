# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which state of a pair is measured first: a coin that can be tossed again. Pure. PRIVATE to the collection."""

from __future__ import annotations

import hashlib
from typing import Tuple

UNTUNED, TUNED = "untuned", "tuned"


def order(seed: int, host: str, phase: str, pair: int, attempt: int) -> Tuple[str, str]:
    """The two states of a pair in the order of their measurement.

    The same on every Python; each host, pair and attempt has a coin of its own. That the coin is fair is all
    that the verdict rests on: under "no effect" it alone decides the sign of the pair's difference, whatever
    the noise is (Fisher, The Design of Experiments, 1935; for clouds Abedi and Brecht, ICPE 2017).
    """
    text = "\0".join(("nearmetal prove", str(seed), host, phase, str(pair), str(attempt)))
    heads = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[0] & 1
    return (TUNED, UNTUNED) if heads else (UNTUNED, TUNED)
