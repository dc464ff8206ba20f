#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# look.sh DIR: every file under /etc and its like, and every knob, as the host's own tools show them.
set -eu
mkdir -p "$1"
find /etc /usr/local /boot /var/lib -xdev -type f -not -path '/var/lib/systemd/*' -not -path '/var/lib/dhcp/*' \
    -exec sha256sum {} + | sort -k2 > "$1/files"
for knob in /sys/devices/system/clocksource/clocksource0/current_clocksource /sys/devices/system/cpu/online \
    /sys/kernel/mm/transparent_hugepage/enabled /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages \
    /proc/sys/net/core/somaxconn /proc/sys/net/ipv4/tcp_keepalive_time /proc/sys/net/ipv4/tcp_slow_start_after_idle \
    /sys/class/net/eth0/queues/rx-0/rps_cpus /sys/block/xvd[ab]/queue/scheduler /sys/block/xvd[ab]/queue/read_ahead_kb; do
    if [ -e "$knob" ]; then echo "$knob $(cat "$knob")"; else echo "$knob is absent"; fi
done > "$1/knobs"
