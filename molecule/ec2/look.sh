#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# look.sh DIR records the workload's knobs, on any system and architecture, and the folders that nearmetal writes to.
set -eu
mkdir -p "$1"
find /etc/default /etc/modprobe.d /etc/sysctl.d /etc/systemd /etc/tmpfiles.d /etc/udev /usr/local -xdev -type f \
    -exec sha256sum {} + | sort -k2 > "$1/files"
for knob in /sys/devices/system/clocksource/clocksource0/current_clocksource \
    /sys/kernel/mm/transparent_hugepage/enabled /proc/sys/net/core/somaxconn /proc/sys/net/ipv4/tcp_keepalive_time \
    /proc/sys/net/ipv4/tcp_slow_start_after_idle /sys/devices/system/cpu/cpu*/cpuidle/state*/disable \
    /sys/class/net/e*/queues/rx-*/rps_cpus /sys/class/net/e*/queues/rx-*/rps_flow_cnt; do
    if [ -e "$knob" ]; then
        echo "$knob $(cat "$knob")"
    fi
done > "$1/knobs"
