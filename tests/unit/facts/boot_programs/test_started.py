# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every way in which a boot starts a command that sets something is seen; what it doesn't start is not."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import at_boot, boot_programs
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host

from tests.support.hosts import lay_out

ETC, LIB = "/etc/systemd/system", "/usr/lib/systemd/system"
UNIT, PATH = f"{LIB}/site.service", "/proc/sys/vm/swappiness"
SET = "/sbin/sysctl -w vm.swappiness=60"
RC, TUNE = "/etc/rc.local", {"/opt/tune": f"#!/bin/sh\n{SET}\n"}
VIRTUAL = {"/proc/cpuinfo": "vendor_id\t: GenuineIntel\nflags\t: fpu hypervisor lahf_lm\n"}
DISK = {"/sys/block/nvme0n1/device": "-> ../../../0000:00:04.0"}


def wanted(by: str = f"{ETC}/multi-user.target", name: str = "site.service") -> Dict[str, str]:
    return {f"{by}.wants/{name}": f"-> {LIB}/{name}"}


def unit(start: str, head: str = "", name: str = "site.service", lines: str = "") -> Dict[str, str]:
    return {f"{LIB}/{name}": f"[Unit]\nDescription=x\n{head}\n[Service]\n{lines}\nExecStart={start}\n"}


def enabled(start: str, head: str = "", **more: str) -> Dict[str, str]:
    return {**unit(start, head, **more), **wanted()}


def drop_in(folder: str, text: str = f"ExecStartPost={SET}") -> Dict[str, str]:
    return {f"{folder}/a.conf": f"[Service]\n{text}\n"}


def script(text: str, head: str = "#!/bin/sh") -> Dict[str, str]:
    return {RC: f"{head}\n{text}\n"}


# Files, and who sets the parameter.
SEEN: Dict[str, "tuple[Dict[str, str], str]"] = {
    **{f"sign {sign}": (enabled(f"{sign}{SET}"), UNIT) for sign in ("-", "+-", "!!", ":", "|-")},
    "sign @": (enabled("@/sbin/sysctl sysctl -w vm.swappiness=60"), UNIT),
    **{
        f"Exec{kind}": (enabled("/bin/true", lines=f"Exec{kind} = {SET}"), UNIT)
        for kind in ("Condition", "StartPre", "StartPost")
    },
    "of another target": ({**unit(SET), **wanted(f"{ETC}/graphical.target")}, UNIT),
    "with a device": ({**unit(SET), **wanted(f"{ETC}/sys-subsystem-net-devices-ens5.device")}, UNIT),
    "of a service that starts": (
        {
            **unit("/bin/true", name="app.service"),
            **wanted(name="app.service"),
            **unit(SET),
            **wanted(f"{ETC}/app.service"),
        },
        UNIT,
    ),
    "wanted by a line": ({**unit(SET), f"{ETC}/multi-user.target.d/a.conf": "[Unit]\nWants=site.service\n"}, UNIT),
    "of a timer": (
        {**unit(SET), f"{LIB}/x.timer": "[Timer]\nOnBootSec=9\nUnit=site.service\n", **wanted(name="x.timer")},
        UNIT,
    ),
    "of a path": ({**unit(SET), f"{LIB}/site.path": "[Path]\nPathExists=/etc\n", **wanted(name="site.path")}, UNIT),
    "by another name": ({**unit(SET), f"{ETC}/multi-user.target.wants/other.service": f"-> {UNIT}"}, UNIT),
    "an instance": (
        {
            **unit("/sbin/sysctl -w vm.swappiness=%i", name="site@.service"),
            f"{ETC}/multi-user.target.wants/site@60.service": f"-> {LIB}/site@.service",
        },
        f"{LIB}/site@.service",
    ),
    **{
        f"drop-in {folder}": ({**enabled("/bin/true"), **drop_in(folder)}, UNIT)
        for folder in (f"{ETC}/site.service.d", f"{ETC}/service.d", "/etc/systemd/system.control/site.service.d")
    },
    "drop-in of a prefix": (
        {
            **unit("/bin/true", name="site-a.service"),
            **wanted(name="site-a.service"),
            **drop_in(f"{ETC}/site-.service.d"),
        },
        f"{LIB}/site-a.service",
    ),
    "drop-ins by name, whichever folder": (
        {
            **enabled("/bin/true"),
            f"{LIB}/site.service.d/90.conf": f"[Service]\nExecStart={SET}\n",
            f"{ETC}/site.service.d/10.conf": "[Service]\nExecStart=\n",
        },
        UNIT,
    ),
    "beside a drop-in that is put aside": (
        {**enabled(SET), f"{ETC}/site.service.d/a.conf.rpmsave": "[Service]\nExecStart=\n"},
        UNIT,
    ),
    **{
        f"holds {line}": ({**enabled(SET, line), "/sys/class/net/ens5/mtu": "9001\n", "/empty/a/b": "-> c"}, UNIT)
        for line in (
            "ConditionPathExistsGlob=/sys/class/*/ens5/mtu",
            "ConditionPathIsDirectory=/sys/class/net/ens5",
            "ConditionPathIsSymbolicLink=!/sys/class/net/ens5/mtu",
            "ConditionPathIsSymbolicLink=/empty/a/b",
        )
    },
    "variables": (enabled("/sbin/sysctl -w vm.swappiness=${V}", lines='Environment="A=1" "V=60"'), UNIT),
    "files of variables": (
        {
            **enabled("/sbin/sysctl -w vm.swappiness=$V", lines="EnvironmentFile=-/etc/default/s*"),
            "/etc/default/site": "V=60\n",
        },
        UNIT,
    ),
    **{
        f"start {words}": ({**enabled(words), **TUNE}, UNIT)
        for words in (
            "/opt/tune --all",
            "/bin/bash -x /opt/tune",
            "/bin/sh -c '/opt/tune; exit 0'",
            "/usr/bin/env bash /opt/tune",
            "/usr/bin/nice -n 5 /opt/tune",
        )
    },
    **{
        f"rc.local {words}": ({**script(words), **TUNE}, RC)
        for words in (
            "/opt/tune &",
            "[ -x /opt/tune ] && /opt/tune",
            ". /opt/tune",
            "systemd-run --on-active=60 /opt/tune",
            "(sleep 60; sysctl -w vm.swappiness=60) &",
            "timeout 10s sysctl -w vm.swappiness=60",
            f"> {PATH} echo 60",
            f"echo 60 | dd of={PATH}",
            f"echo 60 | sudo tee -a {PATH} >/dev/null",
            "cd /proc/sys/vm\necho 60 > swappiness",
            "case $1 in start) sysctl -w vm.swappiness=60 ;; esac",
            "if [ -e /a ]; then\nf=/proc/sys/vm/swappiness\nelse\nf=/proc/sys/vm/x\nfi\necho 60 > $f",
        )
    },
    **{
        f"rc.local finds {words}": ({**script(words), **TUNE}, RC)
        for words in (
            "find /proc/sys/vm -name swappiness -exec sh -c 'echo 60 > {}' \\;",
            f"ls {PATH} -d | xargs -I{{}} sh -c 'echo 60 > {{}}'",
            f"echo {PATH} | xargs tee",
            "find /proc/sys/vm -name swappiness | while read -r f; do\n  echo 60 > $f\ndone",
            f"for f in $(ls -d {PATH} | sort); do echo 60 > $f; done",
            f"for f in /proc/sys/vm/x {PATH}; do\n  echo 60 > $f\ndone",
            "for s in vm.a=1 vm.b=2 vm.c=3 vm.d=4 vm.e=5 vm.swappiness=60; do\n  sysctl -w $s\ndone",
            "busybox sysctl -w vm.swappiness=60",
            "sysctl -w vm.swappiness=${V:-60}",
            "cd /opt && ./tune",
            "cd /opt\n. ./tune",
            "run-parts /opt",
            'for f in /opt/*; do [ -x "$f" ] && "$f"; done',
            'HERE=$(cd "$(dirname /opt/x)" && pwd)\n$HERE/tune',
        )
    },
    "one beside it": ({**script("/opt/a"), "/opt/a": '#!/bin/sh\n. "$(dirname "${BASH_SOURCE}")/tune"\n', **TUNE}, RC),
    "a function that a script reads in": (
        {
            **script('D=/opt\nif [ -s "$D/f" ]; then\n  . "$D/f"\nfi\ntune 60'),
            "/opt/f": "for s in /opt/x /opt/v; do . $s; done\ntune() {\n  sysctl -q -p $FILE\n}\n",
            "/opt/v": "FILE=/opt/s/*.conf\n",
            "/opt/s/a.conf": "vm.swappiness = 60\n",
        },
        RC,
    ),
    "a site's program": ({**enabled("/bin/sh -c 'tune-it'"), "/usr/local/sbin/tune-it": TUNE["/opt/tune"]}, UNIT),
    "a unit's folder": ({**enabled("/bin/bash ./tune", lines="WorkingDirectory=/opt"), **TUNE}, UNIT),
    "a unit's dollar": (enabled("/bin/sh -c 'for v in 60; do sysctl vm.swappiness=$${v}; done'"), UNIT),
    **{
        f"another language {text}": ({**enabled("/usr/bin/python3 /opt/p.py"), "/opt/p.py": text, **TUNE}, UNIT)
        for text in (
            f"with open('{PATH}', 'w') as f:\n    f.write('60')\n",
            f"P = '{PATH}'\nopen(P, 'w').write('60')\n",
            f"def put(file, text):\n    with open(file, 'w') as f:\n        f.write(text)\nput('{PATH}', '60')\n",
            "subprocess.run(['sysctl', '-w', 'vm.swappiness=60'])\n",
            "os.system('/opt/tune')\n",
        )
    },
    "variables that a script reads": (
        {**script('[ -f /etc/default/v ] && . /etc/default/v\nsysctl vm.swappiness="$V"'), "/etc/default/v": "V=60\n"},
        RC,
    ),
    "words that a script is given": ({**script("/opt/set 60"), "/opt/set": "#!/bin/sh\nsysctl vm.swappiness=$1\n"}, RC),
    **{
        f"sysctl {words}": ({**script(f"sysctl {words}"), "/etc/x.conf": "vm/swappiness = 60\n"}, RC)
        for words in ("-p /etc/x.conf", "-qp /etc/x.conf", "-p/etc/x.conf", "--load=/etc/x.conf", "-e -f /etc/x.conf")
    },
    **{
        f"sysctl {words}": ({**script(f"/sbin/sysctl {words}"), "/etc/sysctl.conf": "vm.swappiness=60\n"}, RC)
        for words in ("-p", "--system")
    },
    **{
        f"cron {path}": ({path: f"MAILTO=x\n{line}\n", **TUNE}, path)
        for path, line in (
            ("/etc/crontab", "*/5 * * * * root /opt/tune"),
            ("/etc/cron.d/x", "@reboot root sleep 30 && /opt/tune >/dev/null 2>&1"),
            ("/var/spool/cron/root", "@reboot /opt/tune"),
            ("/var/spool/cron/tabs/root", f"0-59/2 * * * * {SET}"),
            ("/var/spool/cron/crontabs/ubuntu", f"@reboot sudo {SET}"),
        )
    },
    "a socket": (
        {**unit(SET), f"{LIB}/site.socket": "[Socket]\nListenStream=/x\n", **wanted(name="site.socket")},
        UNIT,
    ),
    **{
        f"init.d by {folder}": (
            {
                f"/etc/{folder}/S20x": "-> ../init.d/x",
                "/etc/init.d/x": f"#!/bin/sh\ncase $1 in start) {SET} ;;\nesac\n",
            },
            "/etc/init.d/x",
        )
        for folder in ("rc2.d", "rcS.d", "rc.d/rc3.d")
    },
    **{
        path: ({path: f"{line}\n"}, path)
        for path, line in (
            ("/etc/anacrontab", f"7 5 site.weekly nice {SET}"),
            ("/etc/cron.weekly/x", SET),
            ("/etc/profile.d/x.sh", SET),
            ("/etc/NetworkManager/dispatcher.d/no-wait.d/x", SET),
        )
    },
    **{
        f"cloud-init's bootcmd {line}": ({"/etc/cloud/cloud.cfg": f"bootcmd: [{line}]\n"}, "/etc/cloud/cloud.cfg")
        for line in (f'"{SET}"', "[sysctl, -w, vm.swappiness=60]", f"echo a, {SET}")
    },
    "cron.hourly": ({"/etc/cron.hourly/x": TUNE["/opt/tune"]}, "/etc/cron.hourly/x"),
    "cloud-init's bootcmd": (
        {"/etc/cloud/cloud.cfg.d/9.cfg": f"#cloud-config\nbootcmd:\n  - echo a\n  - {SET}\nruncmd:\n  - b\n"},
        "/etc/cloud/cloud.cfg.d/9.cfg",
    ),
    "cloud-init's bootcmd in a list": (
        {"/etc/cloud/cloud.cfg": "bootcmd:\n- [ sysctl, -w, vm.swappiness=60 ]\n"},
        "/etc/cloud/cloud.cfg",
    ),
    **{
        f"condition {line}": ({**enabled(SET, line), **VIRTUAL}, UNIT)
        for line in (
            "ConditionPathExists=|/none\nConditionPathExists=|/etc",
            "ConditionPathExists=/none\nConditionPathExists=",
            "ConditionVirtualization=!container",
            "ConditionVirtualization=amazon",
            "ConditionKernelVersion=>=5",
        )
    },
}
NOT_SEEN: Dict[str, Dict[str, str]] = {
    "a target of the way down": {**unit(SET), **wanted(f"{ETC}/shutdown.target")},
    "of a service that doesn't start": {
        **unit(SET),
        **wanted(f"{ETC}/app.service"),
        f"{ETC}/app.service": "-> /dev/null",
    },
    "masked": {**enabled(SET), f"{ETC}/site.service": "-> /dev/null"},
    "a drop-in that takes it back": {
        **enabled(SET),
        **drop_in(f"{ETC}/site.service.d", "ExecStart=\nExecStart=/bin/true"),
    },
    "a masked drop-in": {
        **enabled("/bin/true"),
        **drop_in(f"{LIB}/site.service.d"),
        f"{ETC}/site.service.d/a.conf": "-> /dev/null",
    },
    **{
        f"condition {line}": {**enabled(SET, line), **VIRTUAL, "/proc/cmdline": "ro quiet\n"}
        for line in (
            "ConditionKernelCommandLine=site",
            "ConditionVirtualization=container",
            "ConditionVirtualization=xen",
            "ConditionVirtualization=!vm",
            "ConditionPathIsDirectory=/none",
            "ConditionPathIsDirectory=/proc/cmdline",
            "ConditionPathIsSymbolicLink=/proc/cmdline",
            "ConditionPathIsSymbolicLink=/etc/site",
            "ConditionFileNotEmpty=/none",
            "ConditionPathExistsGlob=/none*",
            "AssertPathExists=/none",
            "ConditionFirstBoot=yes",
        )
    },
    "a script of init.d that no level starts": {
        "/etc/init.d/x": f"#!/bin/sh\n{SET}\n",
        "/etc/rc2.d/K20x": "-> ../init.d/x",
    },
    "a script of init.d beside a unit": {
        "/etc/init.d/site": f"#!/bin/sh\n{SET}\n",
        "/etc/rc2.d/S20site": "-> ../init.d/site",
        **unit("/bin/true"),
    },
    "cloud-init's file that is put aside": {"/etc/cloud/cloud.cfg.d/9.cfg.off": f"bootcmd:\n  - {SET}\n"},
    "cloud-init's first boot": {"/etc/cloud/cloud.cfg.d/9.cfg": f"runcmd:\n  - {SET}\n"},
    "what another language reads": {
        **enabled("/opt/p.py"),
        "/opt/p.py": f"#!/usr/bin/python3\nP = '{PATH}'\ndef get(file):\n    return open(file).read()\nprint(get(P))\n",
    },
    "what is only found": script(
        f"find {PATH} -exec cat {{}} \\;\nls -d {PATH} | while read f; do cat $f > /tmp/x; done"
    ),
    "the files that a boot reads, in their order": {
        **script(". /etc/init.d/functions\ntouch /var/lock/local"),
        "/etc/init.d/functions": "apply() {\nfor f in /etc/sysctl.d/*.conf; do\nsysctl -e -p $f\ndone\n}\n",
        "/etc/sysctl.d/10-site.conf": "vm.swappiness=60\n",
        "/etc/sysctl.d/99-nearmetal-memory.conf": "vm.swappiness=10\n",
    },
    "nearmetal's file": {
        **script("sysctl -p /etc/sysctl.d/99-nearmetal-memory.conf"),
        "/etc/sysctl.d/99-nearmetal-memory.conf": "vm.swappiness=10\n",
    },
    "a folder that another program is given": {**script("timeout 60 rsync -a /opt /backup\nnice ls /opt"), **TUNE},
    "files that another program is given": {**script("ls -d /opt/* | xargs rm -f\nls -d /opt/t* | xargs head"), **TUNE},
    "a script of init.d whose unit is masked": {
        "/etc/init.d/site.sh": f"#!/bin/sh\n{SET}\n",
        "/etc/rcS.d/S20site.sh": "-> ../init.d/site.sh",
        f"{LIB}/site.service": "-> /dev/null",
    },
    "systemd's own files": {**script("/usr/lib/systemd/systemd-sysctl"), "/etc/sysctl.conf": "vm.swappiness=60\n"},
    "what is only read": script(f"cat {PATH}\n[ -e {PATH} ] && grep 60 {PATH}\n# {SET}"),
}


def setters(root: Path, files: Dict[str, str]) -> List[str]:
    lay_out(root, files)
    return sorted({owner for owner, (setting, _value) in boot_programs.settings(Host(str(root))) if setting == PATH})


@pytest.mark.parametrize("name", SEEN)
def test_what_sets_a_parameter_is_seen(name: str, tmp_path: Path) -> None:
    files, owner = SEEN[name]
    assert setters(tmp_path, files) == [owner]


@pytest.mark.parametrize("name", NOT_SEEN)
def test_what_sets_nothing_in_this_boot_is_not_seen(name: str, tmp_path: Path) -> None:
    assert setters(tmp_path, NOT_SEEN[name]) == []


def test_a_script_in_another_language_is_known_by_the_files_that_it_writes(tmp_path: Path) -> None:
    text = f"#!/usr/bin/env python3\nopen('{PATH}').read()\nopen('/sys/kernel/mm/ksm/run', 'w').write('1')\n"
    lay_out(tmp_path, {**enabled("/opt/set"), "/opt/set": text})
    assert list(boot_programs.settings(Host(str(tmp_path)))) == [(UNIT, ("/sys/kernel/mm/ksm/run", None))]


def test_scripts_that_start_each_other_come_to_an_end(tmp_path: Path) -> None:
    lay_out(
        tmp_path,
        {
            **script("/opt/a\n/opt/b"),
            "/opt/a": "#!/bin/sh\n/opt/b\n/opt/a\n",
            "/opt/b": "#!/bin/sh\n/opt/a\n. /opt/b\n",
        },
    )
    assert list(boot_programs.settings(Host(str(tmp_path)))) == []


# Files that take long to read when a part of them is read again for each line of it.
LONG = {
    "empty lines": {RC: "#!/bin/sh" + "\n" * 60000},
    "files that are read": {RC: "#!/bin/sh\n" + ". /etc/site\n" * 5000, "/etc/site": f"# {'x' * 60000}\n"},
    "words with several values": script(
        "else\n"
        + "".join(f"a{n}=1\na{n}=2\n" for n in range(900))
        + 9 * (" ".join(f"$a{n}" for n in range(700)) + "\n")
    ),
    "files that a script lists": script("a=" + "x" * 510 + "\n" + "$(ls $a$a$a$a$a$a$a$a)" * 3000),
    "a folder that a script computes": script("$(cd " + " " * 60000 + "x"),
    "a variable of many files": script("P='/sys/a'\n" * 2900 + "P>\n" * 11000, "#!/usr/bin/python3"),
    "what looks like calls": script("exec." * 13000, "#!/usr/bin/python3"),
    **{
        f"a rule of {part}": {**DISK, "/etc/udev/rules.d/99-x.rules": f"# RUN\n{part * (60000 // len(part))}"}
        for part in ("A", "A{", "A =")
    },
    "units that want each other": {
        **wanted(name="a@0.service"),
        f"{LIB}/a@.service": f"[Unit]\nWants={' '.join(f'a@{n}.service' for n in range(1200))}\n",
    },
}


@pytest.mark.parametrize("name", LONG)
def test_files_that_look_like_much_work_are_read_in_time(name: str, tmp_path: Path) -> None:
    before = time.process_time()
    assert setters(tmp_path, LONG[name]) == []
    at_boot.observe(Host(str(tmp_path)), False)
    assert time.process_time() - before < 5.0


def test_an_empty_folder_is_one(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert setters(tmp_path, enabled(SET, "ConditionPathIsDirectory=/empty")) == [UNIT]
