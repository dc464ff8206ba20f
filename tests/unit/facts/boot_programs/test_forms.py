# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Forms in which jobs, cloud-init and scripts start what sets something; files of the kernel are no scripts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import at_boot, boot_programs
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host

from tests.support.hosts import lay_out

SET, NAME = "sysctl -w vm.swappiness=60", "/proc/sys/vm/swappiness"
RC, CLOUD, TUNE = "/etc/rc.local", "/etc/cloud/cloud.cfg.d/9.cfg", "/usr/lib/systemd/system/tune.service"
THP = "/sys/kernel/mm/transparent_hugepage/enabled"

FORMS: Dict[str, "tuple[Dict[str, str], str]"] = {
    **{
        f"a job at {when}": ({"/etc/cron.d/x": f"{when} root {SET}\n"}, "/etc/cron.d/x")
        for when in ("0 4 1 jan *", "0~30 4 * * *", "-*/5 * * * *", "0 4 * * mon-fri")
    },
    **{
        f"bootcmd {items}": ({CLOUD: f"bootcmd:\n{items}\n"}, CLOUD)
        for items in (
            f'  - ["sh", "-c", "echo 60 > {NAME}"]',
            "  -\n    - sysctl\n    - -w\n    - vm.swappiness=60",
            "  - echo a\n  - - sysctl\n    - vm.swappiness=60\n  - echo b",
            f"  - |\n    {SET}",
        )
    },
    **{
        f"a script that says {words}": ({RC: f"#!/bin/sh\n{words}\n", TUNE: f"[Service]\nExecStart={SET}\n"}, TUNE)
        for words in ("systemctl start tune.service", "/bin/systemctl --no-block restart tune", "service tune start")
    },
    "a unit that another's success starts": (
        {
            "/usr/lib/systemd/system/a.service": "[Unit]\nOnSuccess=tune.service\n[Service]\nExecStart=/bin/true\n",
            "/etc/systemd/system/multi-user.target.wants/a.service": "-> /usr/lib/systemd/system/a.service",
            TUNE: f"[Service]\nExecStart={SET}\n",
        },
        TUNE,
    ),
}
NO_SCRIPTS: Dict[str, Dict[str, str]] = {
    "read by a user's job": {"/var/spool/cron/crontabs/u": "@reboot . /proc/kmsg\n"},
    "read as parameters": {"/var/spool/cron/crontabs/u": "@reboot sysctl -p /proc/kmsg\n"},
    "started by another name": {"/var/spool/cron/crontabs/u": "@reboot /home/u/x\n", "/home/u/x": "-> /proc/kmsg"},
    "a unit that a script only stops": {
        RC: "#!/bin/sh\nsystemctl stop tune\nsystemctl status tune\n",
        TUNE: f"[Service]\nExecStart={SET}\n",
    },
}


@pytest.mark.parametrize("name", FORMS)
def test_the_owner_is_the_file_that_says_it(name: str, tmp_path: Path) -> None:
    files, owner = FORMS[name]
    lay_out(tmp_path, files)
    assert {path for path, setting in boot_programs.settings(Host(str(tmp_path))) if setting[0] == NAME} == {owner}


@pytest.mark.parametrize("name", NO_SCRIPTS)
def test_nothing_is_set_by(name: str, tmp_path: Path) -> None:
    lay_out(tmp_path, {**NO_SCRIPTS[name], "/proc/kmsg": "vm.swappiness=60\nsysctl -w vm.swappiness=60\n"})
    assert list(boot_programs.settings(Host(str(tmp_path)))) == []


@pytest.mark.parametrize("kind", ["w", "f+", "F", "F!"])
def test_lines_of_tmpfiles_that_write_to_a_file_of_the_kernel(kind: str, tmp_path: Path) -> None:
    lay_out(tmp_path, {"/etc/tmpfiles.d/a.conf": f"{kind} {THP} - - - - never\nf /sys/kernel/mm/ksm/run - - - - 1\n"})
    assert [(found.name, found.value) for found in at_boot.observe(Host(str(tmp_path)), False)] == [
        (f"sysfs.{THP}", "never")
    ]


@pytest.mark.parametrize("job", ["sysctl -p /home/u/x", "/home/u/y", "/home/u/*"])
def test_a_user_s_jobs_that_name_one_file_again_and_again_are_read_in_time(job: str, tmp_path: Path) -> None:
    jobs = "".join(f"@reboot {job} {number}\n" for number in range(2000))
    parameters, script = "vm.a=1\n" * 9000, "#!/bin/sh\n" + "echo 1 > /x\n" * 5000
    lay_out(tmp_path, {"/var/spool/cron/u": jobs, "/home/u/x": parameters, "/home/u/y": script})
    lay_out(tmp_path, {f"/home/u/z{number}": "#!/bin/sh\n" for number in range(300)})
    before = time.process_time()
    assert len(list(boot_programs.settings(Host(str(tmp_path))))) <= 16 * 9000
    assert time.process_time() - before < 5.0
