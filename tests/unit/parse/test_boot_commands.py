# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lines of scripts write: by which commands, to which files, and that reading them comes to an end."""

from __future__ import annotations

import time
from typing import Set

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse.boot_commands import FILE, GOVERNOR, SCRIPT, settings

SWAPPINESS, PAGES = "/proc/sys/vm/swappiness", "/sys/kernel/mm/transparent_hugepage"
ARRAY = {SWAPPINESS, "/proc/sys/vm/a"}
MANY = [f"vm.a_long_name_of_a_parameter_{number}=1" for number in range(30)]
ALL = {f"/proc/sys/{setting[:-2].replace('.', '/')}" for setting in MANY}


@pytest.mark.parametrize(
    ("line", "written"),
    [
        (f"cp {SWAPPINESS} /var/tmp/before", set()),
        (f"cp /var/tmp/before {SWAPPINESS}", {SWAPPINESS}),
        (f"install -m 644 /etc/value {SWAPPINESS}", {SWAPPINESS}),
        (f"dd if=/etc/value of={SWAPPINESS}", {SWAPPINESS}),
        (f"dd if={SWAPPINESS} of=/var/tmp/before", set()),
        (f"echo 1 | tee /var/log/x {SWAPPINESS}", {SWAPPINESS}),
        ("find /sys/devices -name scaling_governor -exec sh -c 'echo performance > {}' \\;", {GOVERNOR}),
        ("find /sys/devices/system/cpu -name scaling_governor | xargs -I{} sh -c 'echo powersave > {}'", {GOVERNOR}),
        ("for f in $(find /sys/devices -name scaling_governor); do echo performance > $f; done", {GOVERNOR}),
        ("find /sys/class/net/ens5 -name mtu -exec sh -c 'echo 1400 > {}' \\;", {"/sys/class/net/*/mtu"}),
        ("echo 64 > $(dirname $(readlink -f /a/b))/queue/nomerges", {"/sys/block/*/queue/nomerges"}),
        ("echo x | tee /sys/kernel/mm/transparent_hugepage/{enabled,defrag}", {f"{PAGES}/enabled", f"{PAGES}/defrag"}),
        (f"bash -o pipefail -c 'echo 60 > {SWAPPINESS}'", {SWAPPINESS}),
        ("su - root -c 'sysctl -w vm.swappiness=60'", {SWAPPINESS}),
        ('eval "sysctl -w vm.swappiness=60"', {SWAPPINESS}),
        ("until sysctl vm.swappiness=60; do sleep 1; done", {SWAPPINESS}),
        ("nsenter -t 1 -m sysctl -w vm.swappiness=60", {SWAPPINESS}),
        (f"echo 60 >| {SWAPPINESS}", {SWAPPINESS}),
        (f"python3 -c \"open('{SWAPPINESS}', 'w').write('60')\"", {SWAPPINESS}),
        (f"python3 -c \"print(open('{SWAPPINESS}').read())\"", set()),
        (f"awk 'BEGIN {{ print 60 > \"{SWAPPINESS}\" }}'", {SWAPPINESS}),
        (f"awk '{{ print $1 }}' {SWAPPINESS}", set()),
        ('all=(\n  "vm.a=1"  # why\n  vm.swappiness=60\n)\nfor o in "${all[@]}"; do sysctl -w "$o"; done', ARRAY),
        (f"all='{' '.join(MANY)}'\nfor o in $all; do sysctl -w $o; done", ALL),
        ("find /proc/sys/vm -name swappiness -exec sh -c 'echo 60 > {}' \\;", {SWAPPINESS}),
        ("sysctl -p - <<EOF\nvm.swappiness = 60\nEOF", {SWAPPINESS}),
        ("cat <<-'END' | sysctl -q -p /dev/stdin\n\t# why\n\tvm.swappiness=60\n\tEND", {SWAPPINESS}),
        ("sysctl -p - <<EOF\nvm.swappiness=60\n", set()),  # its end is missing
        ("echo 'vm.swappiness = 60' | sysctl -p -", {SWAPPINESS}),
        ("printf 'vm.overcommit=1\\nvm.swappiness=60\\n' | sysctl --load=-", {SWAPPINESS, "/proc/sys/vm/overcommit"}),
        ("echo 'sysctl -w vm.swappiness=60' | sudo sh", {SWAPPINESS}),
        ("echo 'sysctl -w vm.swappiness=60' | at now + 1 minute", {SWAPPINESS}),
        ("echo 'sysctl -w vm.swappiness=60' | grep sh", set()),
        ("chroot /host sysctl -w vm.swappiness=60", {SWAPPINESS}),
        ("docker run --privileged -v /proc/sys:/p alpine /sbin/sysctl -w vm.swappiness=60", {SWAPPINESS}),
        ("podman exec app sysctl vm.swappiness=60", {SWAPPINESS}),
        ("doas sysctl vm.swappiness=60", {SWAPPINESS}),
    ],
)
def test_the_files_that_a_line_writes(line: str, written: Set[str]) -> None:
    assert {name for name, _value in settings(line) if name.startswith(("/sys/", "/proc/sys/"))} == written


def test_a_script_whose_variables_have_many_values_is_read_in_time() -> None:
    before = time.process_time()
    found = list(settings("else\n" + "a=1\nb=2\nc=3\nd=4\n" * 5 + "$a$b$c$d\n" * 6000))
    assert time.process_time() - before < 3.0
    assert len(found) < 10000


@pytest.mark.parametrize(
    ("line", "started"),
    [
        ("service tune restart", "/etc/init.d/tune restart"),
        ("invoke-rc.d tune start", "/etc/init.d/tune start"),
        ("cat /opt/tune | bash", "/opt/tune"),
        ("sh < /opt/tune", "/opt/tune"),
        ("at -f /opt/tune now", "/opt/tune now"),
        ("echo /opt/tune | batch", "/opt/tune"),
        ("start-stop-daemon --start --exec /opt/tune", "/opt/tune"),
    ],
)
def test_the_scripts_that_a_line_starts(line: str, started: str) -> None:
    assert (SCRIPT, started) in set(settings(line))


def test_the_file_that_sysctl_reads_from_a_pipe() -> None:
    assert (FILE, "/opt/values") in set(settings("cat /opt/values | sysctl -p -"))
    assert (FILE, "/opt/values") in set(settings("sysctl -p - < /opt/values"))
