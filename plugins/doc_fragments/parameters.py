# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the kernel parameters that module_utils/_parameters.py declares."""

from __future__ import annotations


class ModuleDocFragment:
    """Fragments `nearmetal.ec2.parameters.memory`, `.cpu_power` and `.network_stack`, for modules of these names."""

    MEMORY = r"""
options:
  swappiness:
    description:
      - How readily memory of programs goes to swap so that file cache can stay (C(vm.swappiness)), 0 to 200, or to 100
        before Linux 5.8. A workload's value is a maximum.
      - On a host without swap it changes nothing. V(0) swaps only when the kernel would otherwise kill a process.
      - "Set it when: programs must stay in memory: 0 (Aerospike, which may refuse to start with more), 1
        (Elasticsearch's and Cloudera's guides), or 10 (tuned); above 100 where swap is in compressed memory (zram).
        Most images on EC2 have no swap; then it changes nothing."
      - "What it costs: file cache is dropped instead. With 0 the kernel kills processes before it swaps."
    type: int
  overcommit:
    description:
      - Whether the kernel promises programs more memory than there is (C(vm.overcommit_memory)).
      - V(heuristic) is 0, and refuses only what is obviously too much. V(always) is 1, so that a large process can
        always fork. V(never) is 2, and programs get no more than C(CommitLimit) in C(/proc/meminfo).
      - V(never) is refused where less than 512 MiB would be left to promise, because no login could start then.
      - "Set it when: a large process forks to save (V(always), Redis guide), or a program must get an error when memory
        is short (V(never))."
      - "What it costs: with V(always) the kernel grants memory that it doesn't have, and kills a process when that
        memory is used. With V(never), programs that reserve much and use little fail."
    type: str
    choices: [heuristic, always, never]
  aio_max_nr:
    description:
      - How many asynchronous requests to disks all programs together may prepare (C(fs.aio-max-nr)). A workload's value
        is a minimum.
      - "Set it when: C(fs.aio-nr) is near C(fs.aio-max-nr): 1048576 (rpk)."
      - "What it costs: kernel memory for each prepared request."
    type: int
  max_map_count:
    description:
      - How many areas of memory one process may map (C(vm.max_map_count)), at least 65530, the kernel's own number. A
        workload's value is a minimum.
      - "Set it when: Elasticsearch (1048576), Cassandra (1048575) or SAP HANA (2147483647) asks for it."
      - "What it costs: nothing until it is used."
    type: int
  vfs_cache_pressure:
    description:
      - How readily the kernel forgets names and inodes of files when memory is short, compared with file cache, 1 to
        10000 (C(vm.vfs_cache_pressure)). 100 is even.
      - "Set it when: a program uses each file once (2000, ScyllaDB), or many files again and again (below 100)."
      - "What it costs: more, and names of files are looked up on the disk again; less, and file cache goes instead."
    type: int
  min_free_kbytes:
    description:
      - How much memory the kernel keeps free, for example for arriving packets (C(vm.min_free_kbytes)). A workload's
        value is a minimum.
      - More than 5 % of the memory is refused.
      - "Set it when: the kernel log shows failed page allocations in the receive path; the ENA guide keeps 1 to 3 % of
        the memory free."
      - "What it costs: memory; more than 5 % is refused, also at each boot."
    type: int
"""

    CPU_POWER = r"""
options:
  nmi_watchdog:
    description:
      - Whether an interrupt looks at each CPU for a kernel that hangs (C(kernel.nmi_watchdog)).
      - "Set it when: the last microsecond counts (V(disabled), tuned's network-latency)."
      - "What it costs: with V(disabled), nobody reports a CPU that hangs in the kernel."
    type: str
    choices: [disabled, enabled]
  timer_migration:
    description:
      - Whether timers of an idle CPU go to a busy one (C(kernel.timer_migration)).
      - "Set it when: the last microsecond counts (V(disabled), tuned's network-latency): a busy CPU keeps to its own."
      - "What it costs: with V(disabled), idle CPUs wake up for their own timers."
    type: str
    choices: [disabled, enabled]
  stat_interval:
    description:
      - How many seconds pass until each CPU adds up its counters of memory again, 1 to 3600 (C(vm.stat_interval)). A
        workload's value is a minimum.
      - "Set it when: the last microsecond counts (10, tuned's network-latency)."
      - "What it costs: C(/proc/vmstat) is as old."
    type: int
  skew_tick:
    description:
      - V(enabled) boots with C(skew_tick=1), so that the ticks of the CPUs come at different moments. V(kernel) removes
        nearmetal's argument.
      - "Set it when: the last microsecond counts on many CPUs (tuned's network-latency)."
      - "What it costs: more power, and a reboot to bring it into force."
    type: str
    choices: [enabled, kernel]
"""

    NETWORK_STACK = r"""
options:
  somaxconn:
    description:
      - How many connections may wait to be accepted (C(net.core.somaxconn)). A workload's value is a minimum.
      - "Set it when: C(nstat) shows C(TcpExtListenOverflows)."
      - "What it costs: nothing, but the program must request that backlog too."
    type: int
  max_syn_backlog:
    description:
      - How many connections may be half open (C(net.ipv4.tcp_max_syn_backlog)). A workload's value is a minimum.
      - "Set it when: C(nstat) shows C(TcpExtListenOverflows)."
      - "What it costs: nothing, but the program must request that backlog too."
    type: int
  netdev_max_backlog:
    description:
      - Packets that may wait for a CPU when RPS is on (C(net.core.netdev_max_backlog)). A workload's value is a
        minimum.
      - "Set it when: the second column of C(/proc/net/softnet_stat) grows."
      - "What it costs: memory; packets may wait longer."
    type: int
  netdev_budget:
    description:
      - Packets per round of NAPI (C(net.core.netdev_budget)). A workload's value is a minimum.
      - "Set it when: the third column of C(/proc/net/softnet_stat) grows."
      - "What it costs: longer rounds delay other work."
    type: int
  rmem_max:
    description:
      - The largest receive buffer that a program may ask for (C(net.core.rmem_max)). A workload's value is a minimum.
      - "Set it when: a program logs that it couldn't increase its receive buffer, as Caddy and Traefik do for HTTP/3
        (7500000, quic-go)."
      - "What it costs: memory, of the sockets whose programs ask for that much."
    type: int
  wmem_max:
    description:
      - The largest send buffer that a program may ask for (C(net.core.wmem_max)). A workload's value is a minimum.
      - "Set it when: a program logs that it couldn't increase its send buffer (7500000 for HTTP/3, quic-go)."
      - "What it costs: memory, of the sockets whose programs ask for that much."
    type: int
  tcp_rmem:
    description:
      - The minimum, initial and maximum receive buffer (C(net.ipv4.tcp_rmem)). Three ascending numbers in one text. A
        workload's value is a minimum.
    type: str
  tcp_wmem:
    description:
      - The minimum, initial and maximum send buffer (C(net.ipv4.tcp_wmem)). Three ascending numbers in one text. A
        workload's value is a minimum.
    type: str
  tcp_mem:
    description:
      - How many pages of memory all TCP connections together may use (C(net.ipv4.tcp_mem)). Three ascending numbers in
        one text, from no pressure to the maximum. A workload's value is a minimum.
      - "Set it when: C(nstat) shows C(TcpExtTCPMemoryPressures), or the kernel logs C(TCP: out of memory). perftune
        gives TCP 3 % of the memory."
      - "What it costs: memory; more than the host has is refused."
    type: str
  syn_retries:
    description:
      - How often a connection that nobody answers is tried again (C(net.ipv4.tcp_syn_retries)). V(6) takes 127 s, V(3)
        takes 15 s.
      - "Set it when: a client should give up on an unreachable host sooner than after 127 s (amazon-ec2-net-utils takes
        V(3))."
      - "What it costs: the client gives up on a host that is slow to boot, too."
    type: int
  tcp_retries:
    description:
      - How often data that nobody acknowledges is sent again before the connection ends, 1 to 255
        (C(net.ipv4.tcp_retries2)). A workload's value is a maximum.
      - "Set it when: the nodes of a cluster are to notice a lost peer within seconds (5, Elasticsearch)."
      - "What it costs: each connection of the host ends sooner, those over bad networks too."
    type: int
  conntrack_max:
    description:
      - How many connections a firewall or NAT on this host remembers (C(net.netfilter.nf_conntrack_max)). Not
        applicable until a firewall has loaded C(nf_conntrack). A workload's value is a minimum.
      - "Set it when: the kernel logs C(nf_conntrack: table full), or C(conntrack -S) shows drops."
      - "What it costs: kernel memory per connection."
    type: int
  conntrack_buckets:
    description:
      - The lists among which these connections are spread (C(net.netfilter.nf_conntrack_buckets)), rounded up to a
        multiple of 8192. It needs Linux 4.8. A workload's value is a minimum.
      - "Set it when: you set O(conntrack_max): as many as connections, or a quarter."
      - "What it costs: kernel memory per list."
    type: int
  neighbor_gc_thresh1:
    description:
      - The number of neighbors up to which the kernel forgets none (C(neigh.default.gc_thresh1) of IPv4 and IPv6). A
        workload's value is a minimum.
      - "Set it when: the kernel logs C(neighbour: arp_cache: neighbor table overflow!), as in large subnets."
      - "What it costs: kernel memory per neighbor."
    type: int
  neighbor_gc_thresh2:
    description:
      - The number of neighbors from which on old neighbors are forgotten after 5 s (C(gc_thresh2)). A workload's value
        is a minimum.
      - "Set it when: the kernel logs C(neighbour: arp_cache: neighbor table overflow!), as in large subnets."
      - "What it costs: kernel memory per neighbor."
    type: int
  neighbor_gc_thresh3:
    description:
      - How many neighbors the kernel knows at most (C(gc_thresh3)). A workload's value is a minimum.
      - "Set it when: the kernel logs C(neighbour: arp_cache: neighbor table overflow!), as in large subnets."
      - "What it costs: kernel memory per neighbor."
    type: int
  slow_start_after_idle:
    description:
      - Whether an idle connection forgets its congestion window (C(net.ipv4.tcp_slow_start_after_idle)). V(disabled)
        is 0, V(enabled) is 1.
      - "Set it when: long-lived connections send in bursts (V(disabled))."
      - "What it costs: bursts after a pause."
    type: str
    choices: [disabled, enabled]
  mtu_probing:
    description:
      - Whether the kernel finds the MTU of a path on which ICMP is dropped (C(net.ipv4.tcp_mtu_probing)).
      - V(disabled) is 0, V(on_black_hole) is 1, V(enabled) is 2.
    type: str
    choices: [disabled, on_black_hole, enabled]
  keepalive_time:
    description:
      - Seconds until an idle connection sends its first keep-alive (C(net.ipv4.tcp_keepalive_time)). A workload's value
        is a maximum.
      - The security groups of the newest types forget a connection that is idle for 350 s.
      - "Set it when: connections idle behind security groups (below 350 on the newest types)."
      - "What it costs: a packet per idle connection."
    type: int
  port_range:
    description:
      - Local ports for outgoing connections, as two ascending numbers in one text (C(net.ipv4.ip_local_port_range)). A
        workload's value is a minimum width.
    type: str
  reserved_ports:
    description:
      - Ports that no outgoing connection gets (C(net.ipv4.ip_local_reserved_ports)), as in V(8080,30000-32767).
      - V(auto) takes those of O(port_range) on which something listens now, beside those that are reserved already, and
        without the kernel's own range, 32768 to 60999, whose ports a program gets by chance.
      - "Set it when: O(port_range) begins below 32768: a service couldn't start again while a connection has its port."
      - "What it costs: nothing but these ports. Name those of services that don't run yet, such as Kubernetes' node
        ports."
    type: str
  busy_poll:
    description:
      - Microseconds of polling in poll() and read(), which buys latency with CPU time (C(net.core.busy_poll),
        C(net.core.busy_read)). A workload's value is a minimum.
      - "Set it when: every microsecond counts and CPUs are free (50 to 70)."
      - "What it costs: a CPU per polling thread."
    type: int
  qdisc:
    description:
      - The queueing discipline of interfaces that come up (C(net.core.default_qdisc)).
      - "Set it when: you measured its effect; no workload sets it."
    type: str
  congestion_control:
    description:
      - The algorithm by which a connection finds its speed (C(net.ipv4.tcp_congestion_control)).
      - "Set it when: you measured its effect; no workload sets it."
    type: str
"""
