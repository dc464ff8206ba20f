# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/cloud.md: its plays run, on our own fake endpoint, and its figures are those of the code."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.types.data import AS_OF
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.types.table import offline_types

from tests.support.aws.fake_aws import FakeAws
from tests.support.fleet import ROOT, Fleet

GUIDE = (ROOT / "docs" / "cloud.md").read_text(encoding="utf-8")
PLAYS = re.findall(r"^```yaml\n(.*?)^```$", GUIDE, re.M | re.S)


def test_every_play_of_the_guide_runs(tmp_path: Path, aws: FakeAws) -> None:
    tag = [{"Key": "workload", "Value": "cache"}]
    instance = aws.add(1, "m5.24xlarge", Tags=tag)
    fleet = Fleet(tmp_path)
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    fleet.inventory({"host1": {**local, "instance_id": instance}})
    assert len(PLAYS) == 6
    (tmp_path / "guide.yml").write_text("---\n" + "\n".join(PLAYS))
    done = fleet.run(playbook=str(tmp_path / "guide.yml"), callback="default")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "c6in.32xlarge: 400000 IOPS, 12500.0 MB/s" in done.stdout
    assert "14 more interfaces can be attached" in done.stdout
    assert "45.0 minutes" in done.stdout
    assert not {"ModifyInstanceAttribute", "StopInstances"} & set(aws.calls)
    assert len(aws.interfaces) == 1


def test_the_table_is_as_old_and_as_long_as_the_guide_says() -> None:
    assert f"({len(offline_types())} of them, as of {AS_OF})" in GUIDE


def test_the_guide_names_files_that_exist() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", GUIDE):
        assert (ROOT / "docs" / target).exists(), target
