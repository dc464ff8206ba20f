# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""blkfront_check's real main(): it reports, writes nothing, and needs no root."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.modules import blkfront_check, tune

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]
LINE = "blkfront: xvda: barrier or flush: disabled; persistent grants: {}; indirect descriptors: enabled;\n"


def everything(root: Path) -> Dict[str, int]:
    return {str(path): path.lstat().st_mtime_ns for path in root.rglob("*")}


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("grants", ["enabled", "disabled"])
def test_it_reports_and_never_fails(tmp_path: Path, call: Call, check: bool, grants: str) -> None:
    host = FakeKernel(tmp_path, files_of("xen_hvm", {"/dev/kmsg": "[    1.8] " + LINE.format(grants)}))
    before = everything(tmp_path)
    result = call(blkfront_check.main, host, check=check)
    assert not result["changed"]
    assert "failed" not in result
    assert result["findings"][0]["now"] == {"xvda": grants}
    assert result["findings"][0]["status"] == {"enabled": "ok", "disabled": "advice"}[grants]
    assert result["platform"]["host_class"] == "xen_hvm"
    assert everything(tmp_path) == before


def test_without_root_an_unreadable_log_is_unknown(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("xen_pv", {"/dev/kmsg": None}))
    host.root_user = False
    result = call(blkfront_check.main, host)
    assert result["findings"][0]["status"] == "unknown"
    assert "become: true" in result["msg"]


def test_tune_reports_it_too_and_keeps_nothing(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("xen_hvm"))
    result = call(tune.main, host, concerns={"blkfront_check": {}})
    assert not result["changed"]
    assert {finding["concern"] for finding in result["findings"]} == {"blkfront_check"}
    assert not (tmp_path / "var/lib/nearmetal/wanted.json").exists()
