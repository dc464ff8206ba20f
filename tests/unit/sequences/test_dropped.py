# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of which each drops knobs of the one before: none fails that a host never tuned would take; restore ends all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.sequences import drops
from tests.support.sequences.world import HOSTS

LIVES = 8  # per host


@pytest.mark.parametrize("name", sorted(HOSTS))
def test_a_run_that_drops_knobs_does_what_it_does_on_a_host_never_tuned(name: str, tmp_path: Path) -> None:
    failures = [failure for seed in range(LIVES) for failure in [drops.failure(seed, tmp_path, name)] if failure]
    assert not failures, "\n\n".join(failures)
