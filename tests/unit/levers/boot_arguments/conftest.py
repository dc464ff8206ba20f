# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every run of these tests is preceded by its check: what check mode promises, the run does."""

from __future__ import annotations

import re
from typing import Any, Dict

import pytest

from tests.support.fake_kernel import FakeKernel
from tests.unit.conftest import Main, Modules

# What only a write or another program can tell: a full or read-only disk, a program that fails, and what grub-mkconfig
# makes of other kernels, disks and files than those of its last run.
ONLY_A_RUN_TELLS = re.compile("no space left|failed with code|could not be restored|can't be written|EIO")
OF_MKCONFIG = re.compile("no entry for Linux|doesn't exist|which no disk has|bytes too long")


class Promised(Modules):
    """Calls main() in check mode before each run, and compares what both say."""

    def __call__(self, main: Main, host: FakeKernel, check: bool = False, **options: Any) -> Dict[str, Any]:
        if check:
            return super().__call__(main, host, True, **options)
        promised = super().__call__(main, host, True, **options)
        done = super().__call__(main, host, **options)
        if done.get("failed") and not promised.get("failed"):
            trouble = f"{done['msg']} {done.get('errors')}"
            generated = OF_MKCONFIG.search(trouble) and any(host.commands)
            assert generated or ONLY_A_RUN_TELLS.search(trouble), f"check promised what the run refused: {trouble}"
        return done


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Modules:
    """Call a module's main(), in check mode first."""
    return Promised(capsys)
