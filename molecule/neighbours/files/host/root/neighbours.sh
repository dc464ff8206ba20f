#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# neighbours.sh prints the neighbours' own status, and the knobs that nearmetal shares with them.
set -eu
tuned-adm active
systemctl is-active tuned irqbalance systemd-networkd
tr '\0' ' ' < "/proc/$(pidof irqbalance)/cmdline"
echo
for knob in /sys/devices/system/cpu/cpufreq/policy*/scaling_governor /sys/devices/system/cpu/cpu*/cpuidle/state*/disable \
    /proc/sys/net/core/busy_poll /proc/sys/net/core/busy_read /sys/class/net/ens*/mtu /sys/class/net/ens*/tx_queue_len; do
    echo "$knob $(cat "$knob")"
done
