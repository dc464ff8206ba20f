# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait until the unit has planned for this boot, which it does after the boot has ended."""

from __future__ import annotations

from lab.host import Host

# What the unit was planned for is in /run, so it is of this boot. A run's CPU time is its progress.
_LOOK = """
look() {
    test -e /etc/systemd/system/nearmetal.timer || { echo absent; return; }
    state=$(systemctl show -p ActiveState --value nearmetal.service)
    pid=$(systemctl show -p MainPID --value nearmetal.service)
    if test -e /run/nearmetal/fingerprint && test "$state" = inactive -o "$state" = failed; then
        echo planned "$state"
    else
        echo waiting $(cut -d ' ' -f 14-17 "/proc/$pid/stat" 2>/dev/null) $(systemctl list-jobs --no-legend | wc -l)
    fi
}
# A login costs an emulated host more than this loop.
for round in 1 2 3 4 5 6 7 8 9 10; do
    said=$(look)
    case $said in waiting*) sleep 2 ;; *) break ;; esac
done
echo "$said"
"""
# The timer's first look is at most a minute after it was started, its others every two.
STUCK_SECONDS = 300.0


def wait(host: Host) -> str:
    """The unit's final state, `inactive` or `failed`; `absent` if no unit is installed.

    A slow unit is no error. A unit is stuck if it isn't started, or uses no CPU time, while the host's clock goes on.
    """
    before, since = "", _uptime(host)
    while True:
        said = host.run(_LOOK).strip()
        if not said.startswith("waiting"):
            return said.split()[-1]
        now = _uptime(host)
        if said != before or now < since:
            before, since = said, now
        if now - since > STUCK_SECONDS:
            log = host.run("systemctl list-jobs; journalctl -b --no-pager -o short-monotonic -u nearmetal; true")
            raise host.stuck(f"its unit gets no further for {STUCK_SECONDS:.0f} s, {said!r}:\n{log}\n")


def _uptime(host: Host) -> float:
    return float(host.run("cut -d ' ' -f 1 /proc/uptime"))
