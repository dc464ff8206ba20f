# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of the report directory."""

from __future__ import annotations

import resource
import signal
from pathlib import Path

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._files import write, writing


def test_a_full_disk_leaves_no_part_of_a_report(tmp_path: Path) -> None:
    path, limits = tmp_path / "run.json", resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(NearmetalError, match="the report can't be written: File too large"), writing("the report"):
            write(str(path), "x" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    assert not list(tmp_path.iterdir())
