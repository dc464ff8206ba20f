#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# look.sh DIR records every file under /etc and similar folders, and every knob, with the host's own tools.
set -eu
mkdir -p "$1"
find /etc /usr/local /boot /var/lib -xdev -type f -not -path '/var/lib/systemd/*' -not -path '/var/lib/dhcp/*' \
    -not -path '/var/lib/NetworkManager/*' \
    -not -path '/boot/grub/grubenv' -exec sha256sum {} + | sort -k2 > "$1/files"
for knob in /sys/devices/system/clocksource/clocksource0/current_clocksource /sys/devices/system/cpu/online \
    /sys/devices/system/cpu/smt/control /sys/kernel/mm/transparent_hugepage/enabled \
    /sys/kernel/mm/transparent_hugepage/defrag /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages \
    /proc/sys/kernel/numa_balancing /proc/sys/vm/zone_reclaim_mode /proc/sys/vm/overcommit_memory \
    /proc/sys/vm/swappiness /proc/sys/net/core/somaxconn \
    /proc/sys/net/ipv4/tcp_keepalive_time /proc/sys/net/ipv4/tcp_slow_start_after_idle \
    /proc/sys/net/ipv4/tcp_max_syn_backlog /proc/sys/net/ipv4/ip_local_port_range /proc/sys/net/core/busy_poll \
    /proc/sys/net/core/busy_read /proc/sys/net/core/rps_sock_flow_entries \
    /sys/class/net/e*/queues/rx-0/rps_cpus /sys/class/net/e*/queues/rx-0/rps_flow_cnt \
    /sys/block/*vd*/queue/scheduler /sys/block/*vd*/queue/read_ahead_kb; do
    if [ -e "$knob" ]; then echo "$knob $(cat "$knob")"; else echo "$knob is absent"; fi
done > "$1/knobs"
