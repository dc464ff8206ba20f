# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""NICs of the fake kernel: their files as /sys and /proc show them, and a driver that answers the ethtool ioctl.

After the kernel's documentation (networking/scaling.rst, core-api/irq/irq-affinity.rst) and <linux/ethtool.h>,
written apart from the engine. A change of the number of queues creates new vectors, as ENA does after a reset.
"""

from __future__ import annotations

import copy
import errno
import hashlib
import os
import re
import shutil
import struct
from pathlib import Path
from typing import Any, Dict, Iterator, List, Set, Tuple

from tests.support.kernel.cpus import numbers, ranges
from tests.support.kernel.numbering import Numbering

NET = "/sys/class/net"
_TX_USECS = 4  # where it is in ethtool's table of moderation
DRIVERS = {
    # driver: names of a queue's interrupts, the chip's words before them
    "ena": (["{name}-Tx-Rx-{queue}"], "PCI-MSI {number}-edge"),
    "ixgbevf": (["{name}-TxRx-{queue}"], "xen-pirq-msi-x"),
    "virtio_net": (["{place}-input.{queue}", "{place}-output.{queue}"], "PCI-MSI {number}-edge"),
    "vif": (["vif0-q{queue}-tx", "vif0-q{queue}-rx"], "xen-dyn-event"),
}


def mask(cpus: List[int], width: int) -> str:
    """As the kernel prints a mask for so many possible CPUs."""
    bits = sum(1 << cpu for cpu in cpus)
    words = [f"{bits >> 32 * word & 0xFFFFFFFF:08x}" for word in range((width + 31) // 32)]
    return ",".join(reversed(words))


def nic_files(cpus: int, nics: List[Dict[str, Any]]) -> Dict[str, str]:
    """Path → text of these NICs: {name, driver, place, queues, node} each, on a host of so many CPUs."""
    files = {"/proc/irq/default_smp_affinity": mask(list(range(cpus)), cpus) + "\n"}
    table = "    " + "".join(f"       CPU{cpu}" for cpu in range(cpus)) + "\n"
    for position, nic in enumerate(nics):
        index = nic.get("index", position)
        for path, text in _of(cpus, index, nic):
            files[path] = text
        table += _lines(cpus, nic, range(nic["queues"]), 24 + 40 * index)
    files["/proc/interrupts"] = table + "LOC: " + " ".join("9" for _cpu in range(cpus)) + "  Local timer interrupts\n"
    times = "".join(f"cpu{cpu} 100 0 100 9000 0 10 10 0 0 0\n" for cpu in range(cpus))
    files["/proc/stat"] = "cpu  100 0 100 9000 0 10 10 0 0 0\n" + times
    return files


def vectors(nic: Dict[str, Any], queue: int, first: int) -> Iterator[Tuple[int, str]]:
    """Number and name of the interrupts of a queue."""
    names, _chip = DRIVERS[nic["driver"]]
    for position, name in enumerate(names):
        number = first + 1 + queue * len(names) + position
        yield number, name.format(queue=queue, **{key: nic[key] for key in ("name", "place")})


def _lines(cpus: int, nic: Dict[str, Any], queues: range, first: int) -> str:
    text = ""
    chip = DRIVERS[nic["driver"]][1]
    zeros = "          0" * cpus
    if nic["driver"] == "ena":
        text += f"{first:4}:{zeros}   PCI-MSI {first}-edge      ena-mgmnt@pci:{nic['place']}\n"
    for queue in queues:
        for number, name in vectors(nic, queue, first):
            text += f"{number:4}:{zeros}   {chip.format(number=number)}      {name}\n"
    return text


def _of(cpus: int, index: int, nic: Dict[str, Any]) -> Iterator[Tuple[str, str]]:
    folder, device = f"{NET}/{nic['name']}", f"/sys/devices/pci0000:00/{nic['place']}"
    first = 24 + 40 * index
    yield f"{folder}/device", f"-> ../../../devices/pci0000:00/{nic['place']}"
    yield f"{device}/driver", f"-> ../../../bus/pci/drivers/{nic['driver']}"
    yield f"{device}/numa_node", f"{nic.get('node', -1)}\n"
    # The directory is empty on Xen since Linux 5.17, and missing for xen-netfront.
    if nic["driver"] in ("ena", "virtio_net"):
        yield f"{device}/msi_irqs/{first}", "msix\n"
    plain = {"type": 1, "ifindex": index + 2, "mtu": 9001, "tx_queue_len": 1000, "flags": nic.get("flags", "0x1003")}
    plain.update(dict.fromkeys(("napi_defer_hard_irqs", "gro_flush_timeout"), 0))
    for name, value in plain.items():
        yield f"{folder}/{name}", f"{value}\n"
    for queue in range(nic["queues"]):
        yield from queue_files(folder, queue, nic["queues"], cpus)
        for number, _name in vectors(nic, queue, first):
            yield f"/proc/irq/{number}/smp_affinity_list", f"0-{cpus - 1}\n"
            yield f"/proc/irq/{number}/effective_affinity_list", "0\n"
            yield f"/proc/irq/{number}/node", f"{nic.get('node', -1)}\n"
            if nic["driver"] in ("ena", "virtio_net"):
                yield f"{device}/msi_irqs/{number}", "msix\n"


def queue_files(folder: str, queue: int, queues: int, cpus: int) -> Iterator[Tuple[str, str]]:
    """A receive and a transmit queue; xps_cpus can only be read where there are several."""
    yield f"{folder}/queues/rx-{queue}/rps_cpus", mask([], cpus) + "\n"
    yield f"{folder}/queues/rx-{queue}/rps_flow_cnt", "0\n"
    if queues > 1:
        yield f"{folder}/queues/tx-{queue}/xps_cpus", mask([], cpus) + "\n"
    yield f"{folder}/queues/tx-{queue}/byte_queue_limits/limit_max", "1879048192\n"
    yield f"{folder}/queues/tx-{queue}/byte_queue_limits/limit_min", "0\n"


class FakeNics:
    """How the kernel and the drivers react to writes about the NICs of a host below `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.channels: Dict[str, List[int]] = {}  # interface → most, now
        self.rings: Dict[str, List[int]] = {}  # interface → rx most, tx most, rx, tx
        self.coalesce: Dict[str, List[int]] = {}  # interface → 22 numbers
        self.orders: Dict[str, List[int]] = {}  # interface → commands that changed its driver
        self.stubborn: Dict[
            str, str
        ] = {}  # interface → errno name of every change by its driver; `late`: it is done before
        self.hints: Dict[str, str] = {}  # interface → the CPUs that its driver asks for at each request of interrupts
        self.statistics: Dict[str, Dict[str, int]] = {}
        self.paired: Set[str] = set()  # interfaces whose queues share interrupts, as igb's with virtual functions
        self.features: Dict[str, Dict[str, bool]] = {}  # interface → each feature that can be switched: on or off
        self.addresses: Dict[str, bytes] = {}  # device → the address in its hardware
        self.numbers = Numbering(root / NET.lstrip("/"), "ifindex")
        self._own: Dict[str, List[Any]] = {}  # interface → what its driver chose, by table

    def take(self, path: str, text: str) -> bool:
        """Carry out a write to a file of a NIC; False if it isn't one."""
        value = text.strip()
        if re.fullmatch(r"/proc/irq/\d+/smp_affinity_list", path):
            cpus = sorted(set(numbers(value)) & set(numbers(self._read("/sys/devices/system/cpu/online"))))
            if not cpus:
                raise OSError(errno.EINVAL, "no online CPU", path)
            self._write(path, ranges(numbers(value)))
            target = path.replace("smp_affinity", "effective_affinity")
            stays = set(cpus) & set(numbers(self._read(target))) and not (self.root / "sys/hypervisor/type").exists()
            if (
                not stays
            ):  # assign_vector_locked() of x86 doesn't move an interrupt that may stay; Xen uses the first CPU
                self._write(target, str(cpus[0]))
        elif path.endswith(("/rps_cpus", "/xps_cpus")):
            bits = int(value.replace(",", ""), 16)
            width = len(numbers(self._read("/sys/devices/system/cpu/possible")))
            if path.endswith("/rps_cpus") and bits:
                bits &= ~sum(1 << cpu for cpu in self._isolated())
                if not bits:
                    raise OSError(errno.EINVAL, "no housekeeping CPU", path)
            self._write(path, mask([cpu for cpu in range(width) if bits >> cpu & 1], width))
        elif path.endswith("/rps_flow_cnt") or path == "/proc/sys/net/core/rps_sock_flow_entries":
            flows = int(value)
            self._write(path, str(1 << (flows - 1).bit_length() if flows else 0))
        elif path == "/proc/sys/net/netfilter/nf_conntrack_buckets":  # nf_ct_alloc_hashtable(): whole pages
            self._write(path, str(-(-int(value) // 512) * 512))
        elif path.startswith(("/proc/sys/", NET)):
            self._write(path, value.replace(" ", "\t"))  # the kernel prints several numbers with tabs between them
        else:
            return False
        return True

    def boot(self) -> None:
        """Each driver probes its device again."""
        for device, own in self._own.items():
            for table, value in zip(self._tables(), own):
                if value is not None:
                    table[device] = value
        self._own = {}
        self.numbers.boot()

    def exchange(self, name: str, hardware: Dict[str, str]) -> None:
        """Another device takes the slot: everything is as `hardware` and a newly loaded driver set it."""
        lines = [line for line in self._read("/proc/interrupts").splitlines() if f" {name}-" in line]
        interrupts = [f"/proc/irq/{line_number(line)}/" for line in lines]
        for path, text in hardware.items():
            if path.startswith((f"{NET}/{name}/", *interrupts)) and not text.startswith("->"):
                self._make(path, text)
        own = self._own.pop(name, [])
        for table, value in zip(self._tables(), own):
            if value is not None:
                table[name] = value
        self.numbers.count()
        self.numbers.register(name)
        self.addresses[self._place(name)] = b"\x12" + self._address(name)[1:]

    def _address(self, name: str) -> bytes:
        place = self._place(name)
        return self.addresses.setdefault(place, b"\x02" + hashlib.sha256(place.encode()).digest()[:5])

    def _place(self, name: str) -> str:
        return os.path.basename(os.readlink(self.root / f"{NET}/{name}/device".lstrip("/")))

    def rename(self, name: str, other: str) -> None:
        """The device and its settings stay; it was down meanwhile, so its interrupts are renamed."""
        (self.root / f"{NET}/{name}".lstrip("/")).rename(self.root / f"{NET}/{other}".lstrip("/"))
        for path, pattern in (("/proc/interrupts", rf" {name}-(?=\w)"), ("/proc/net/route", rf"^{name}\b")):
            file = self.root / path.lstrip("/")
            if file.exists():
                renamed = re.sub(pattern, lambda match: match[0].replace(name, other), file.read_text(), flags=re.M)
                file.write_text(renamed)
        for table in (*self._tables(), self._own, self.orders, self.stubborn, self.hints, self.statistics):
            if name in table:
                table[other] = table.pop(name)

    def _tables(self) -> "Tuple[Dict[str, Any], ...]":
        return (self.channels, self.rings, self.coalesce, self.features)

    def _isolated(self) -> List[int]:
        """CPUs that rps_cpumask_housekeeping() leaves out since Linux 5.9; without nohz_full= its file has no list."""
        paths = [self.root / f"sys/devices/system/cpu/{name}" for name in ("isolated", "nohz_full")]
        texts = [path.read_text().strip() for path in paths if path.exists()]
        return sorted({cpu for text in texts if text not in ("", "(null)") for cpu in numbers(text)})

    def driver(self, device: str, record: bytes) -> bytes:
        """Answer an ethtool record; OSError for what this driver can't do."""
        (command,) = struct.unpack_from("=I", record)
        if command == 0x20:  # struct ethtool_perm_addr: how long it may be, or is, then the address
            return record[:4] + struct.pack("=I", 6) + self._address(device).ljust(len(record) - 8, b"\0")
        answer = {0x03: self._who, 0x3C: self._channels, 0x10: self._rings, 0x0E: self._coalesce}.get(command)
        if answer is not None:
            return answer(device, record)
        if command in (0x3D, 0x11, 0x0F):
            if device in self.stubborn and self.stubborn[device] != "late":
                raise OSError(getattr(errno, self.stubborn[device]), "the driver refuses", device)
            self.orders.setdefault(device, []).append(command)
            self._remember(device)
            done = {0x3D: self._set_channels, 0x11: self._set_rings, 0x0F: self._set_coalesce}[command](device, record)
            if self.stubborn.get(device) == "late":
                raise OSError(errno.EIO, "done, and yet an error", device)
            return done
        if command == 0x3B:
            self._remember(device)
        if device in self.features and (command in (0x3A, 0x3B) or (command, record[4:8][0]) == (0x1B, 4)):
            return self._features(device, command, record)
        if command == 0x37 and device in self.features and struct.unpack_from("=8xQ", record) == (1 << 4,):
            return struct.pack("=IIQI", command, 0, 1 << 4, len(self.features[device]))
        if command in (0x37, 0x1B, 0x1D) and device in self.statistics:
            return self._statistics(device, command, record)
        raise OSError(errno.EOPNOTSUPP, "Operation not supported", device)

    def _remember(self, device: str) -> None:
        self._own.setdefault(device, [copy.copy(table.get(device)) for table in self._tables()])

    def _who(self, device: str, record: bytes) -> bytes:
        return record[:4] + self._driver(device).encode().ljust(32, b"\0") + b"2.13.0g".ljust(32, b"\0") + record[68:]

    def _driver(self, device: str) -> str:
        return (self.root / f"sys/class/net/{device}/device/driver").resolve().name

    def _channels(self, device: str, record: bytes) -> bytes:
        most, now = self._known(self.channels, device)
        return struct.pack("=9I", 0x3C, 0, 0, 0, most, 0, 0, 0, now)

    def _rings(self, device: str, record: bytes) -> bytes:
        rx_most, tx_most, rx, tx = self._known(self.rings, device)
        return struct.pack("=9I", 0x10, rx_most, 0, 0, tx_most, rx, 0, 0, tx)

    def _coalesce(self, device: str, record: bytes) -> bytes:
        values = list(self._known(self.coalesce, device))
        if device in self.paired:  # igb_get_coalesce()
            values[_TX_USECS] = 0
        return struct.pack("=23I", 0x0E, *values)

    def _set_rings(self, device: str, record: bytes) -> bytes:
        _command, *found = struct.unpack("=9I", record)
        requested = [found[4], found[7]]
        if self._driver(device) == "ena":  # ena_set_ringparam(): at least 256, then rounddown_pow_of_two()
            requested = [
                max(power for power in (1 << bit for bit in range(8, 20)) if power <= max(n, 256)) for n in requested
            ]
        if self._driver(device) == "ixgbevf":  # ixgbevf_set_ringparam(): at least 64, then ALIGN(…, 8)
            requested = [(max(number, 64) + 7) // 8 * 8 for number in requested]
        self.rings[device][2:] = requested
        if device in self.hints:  # ena_up() requests each interrupt again, and irq_set_affinity_hint() moves it
            known = {irq.name for irq in (self.root / f"sys/class/net/{device}/device/msi_irqs").iterdir()}
            for place in (self.root / "proc/irq").glob("*/smp_affinity_list"):
                if place.parent.name in known:
                    place.write_text(f"{self.hints[device]}\n")
        return record

    def _set_coalesce(self, device: str, record: bytes) -> bytes:
        values = list(struct.unpack("=23I", record)[1:])
        if device in self.paired and values[_TX_USECS]:  # igb_set_coalesce()
            raise OSError(errno.EINVAL, "Invalid argument", device)
        if self._driver(device) == "ixgbevf" and max(values[0], values[_TX_USECS]) > 0xFF8 >> 2:
            raise OSError(errno.EINVAL, "Invalid argument", device)  # ixgbevf_set_coalesce()
        self.coalesce[device] = values
        return record

    def _set_channels(self, device: str, record: bytes) -> bytes:
        queues = struct.unpack("=9I", record)[8]
        most, now = self.channels[device]
        if not 0 < queues <= most:
            raise OSError(errno.EINVAL, "Invalid argument", device)
        self.channels[device][1] = queues
        self._resize(device, now, queues)
        return record

    def _resize(self, device: str, now: int, queues: int) -> None:
        """Add or remove queues in /sys; a vector without a queue keeps its line, not its name (amzn-drivers#316)."""
        width = len(numbers(self._read("/sys/devices/system/cpu/possible")))
        folder = f"{NET}/{device}"
        for queue in range(queues, now):
            for kind in ("rx", "tx"):
                shutil.rmtree(self.root / f"{folder}/queues/{kind}-{queue}".lstrip("/"))
        for queue in range(now, queues):
            for path, text in queue_files(folder, queue, queues, width):
                self._make(path, text)
        lines = []
        for line in self._read("/proc/interrupts").splitlines():
            match = re.match(rf"(.*-edge) +{device}-Tx-Rx-(\d+)$", line)
            lines.append(match.group(1) if match and int(match.group(2)) >= queues else line)
        first = int(min((self.root / f"sys/class/net/{device}/device/msi_irqs").iterdir(), key=_number).name)
        known = {line.split(":")[0].strip(): position for position, line in enumerate(lines)}
        nic = {"name": device, "place": "", "driver": "ena"}
        for queue in range(now, queues):
            ((number, name),) = vectors(nic, queue, first)
            line = f"{number:4}:{'          0' * width}   PCI-MSI {number}-edge      {name}"
            if str(number) in known:
                lines[known[str(number)]] = line
            else:
                lines.insert(len(lines) - 1, line)
                self._make(f"/sys/class/net/{device}/device/msi_irqs/{number}", "msix\n")
                self._make(f"/proc/irq/{number}/smp_affinity_list", f"0-{width - 1}\n")
                self._make(f"/proc/irq/{number}/effective_affinity_list", "0\n")
        self._write("/proc/interrupts", "\n".join(sorted(lines, key=line_number)))

    def _statistics(self, device: str, command: int, record: bytes) -> bytes:
        counters = self.statistics[device]
        if command == 0x37:
            return struct.pack("=IIQI", command, 0, 2, len(counters))
        if command == 0x1B:
            names = b"".join(name.encode().ljust(32, b"\0") for name in counters)
            return struct.pack("=III", command, 1, len(counters)) + names
        return struct.pack(f"=II{len(counters)}Q", command, len(counters), *counters.values())

    def _features(self, device: str, command: int, record: bytes) -> bytes:
        """Their names, their state, or a change; all of them in one block of 32 bits."""
        features = self.features[device]
        if command == 0x1B:
            names = b"".join(name.encode().ljust(32, b"\0") for name in features)
            return struct.pack("=III", command, 4, len(features)) + names
        if command == 0x3B:
            valid, requested = struct.unpack_from("=8x2I", record)
            for bit, name in enumerate(features):
                if valid >> bit & 1:
                    features[name] = bool(requested >> bit & 1)
            return record
        active = sum(on << bit for bit, on in enumerate(features.values()))
        return struct.pack("=6I", command, 1, (1 << len(features)) - 1, active, active, 0)

    def _known(self, table: Dict[str, List[int]], device: str) -> List[int]:
        if device not in table:
            raise OSError(errno.EOPNOTSUPP, "Operation not supported", device)
        return table[device]

    def _read(self, path: str) -> str:
        return (self.root / path.lstrip("/")).read_text().strip("\n")

    def _write(self, path: str, text: str) -> None:
        (self.root / path.lstrip("/")).write_text(text + "\n")

    def _make(self, path: str, text: str) -> None:
        (self.root / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path.lstrip("/")).write_text(text)


def _number(path: Path) -> int:
    return int(path.name)


def line_number(line: str) -> int:
    """Numbered interrupts ascend between the head of their table and those that have a name."""
    word = line.partition(":")[0].strip()
    return int(word) if word.isdigit() else -1 if word.startswith("CPU") else 1 << 20
