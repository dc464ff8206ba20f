# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The levers of NIC settings that the driver changes, by ethtool or sysfs. PRIVATE to the collection."""

from __future__ import annotations

import errno
from abc import abstractmethod
from typing import Dict, Iterable, Mapping, Optional, Sequence, Tuple

from .._error import Declined, NearmetalError
from .._facts import ethtool as facts
from .._facts import network
from .._facts.nic import Nic
from .._number import is_number
from .._parse import ethtool
from .._plan import Value
from .base import InOneGo, Key, impossible, refused, unwritable
from .network import OnNic

_MOST = 1 << 20
# The errors by which a driver, or the kernel on its behalf, refuses a value; any other is a failure.
_REFUSALS = (errno.EOPNOTSUPP, errno.EINVAL, errno.ERANGE)


def declined(error: OSError, interface: Nic, attempt: str, places: Iterable[Key] = ()) -> NearmetalError:
    """The error for what a driver refused, as one sentence that names the driver."""
    named = f"{attempt} of {interface.name}, whose driver is {interface.driver or 'unknown'}"
    sentence = refused(error, named)
    return Declined(str(sentence), places) if error.errno in _REFUSALS else sentence


class _Number(OnNic):
    """A whole number of one NIC."""

    def fits(self, where: str, value: Value) -> bool:
        return not isinstance(value, bool) and isinstance(value, int) and 0 <= value < _MOST


class Queues(_Number):
    """How many queue pairs a NIC uses."""

    disruptive = True
    disturbing = creates = True

    def disturbs(self) -> Iterable[Key]:
        tables = ("network.rps", "network.rfs", "network.xps", "network.bql")
        return (*self.interrupts(), *((table, self.where) for table in tables))

    def read(self) -> Value:
        interface = self.nic()
        return (
            network.queues_now(interface, facts.channels(self.host, interface.name)) if interface is not None else None
        )

    def write(self, value: Value) -> None:
        interface = self.require_nic()
        present = self.host.ethtool(interface.name, ethtool.question(ethtool.GET_CHANNELS, len(ethtool.CHANNELS)))
        if present is None or not isinstance(value, int):
            raise NearmetalError(f"the driver of {interface.name} doesn't say how many queues it has")
        combined = ethtool.numbers(present, ethtool.CHANNELS)["combined_max"] > 0
        goal = {"combined": value} if combined else {"rx": value, "tx": value}
        try:
            self.host.set_driver(interface.name, ethtool.changed(present, ethtool.SET_CHANNELS, ethtool.CHANNELS, goal))
        except OSError as error:
            raise declined(error, interface, f"queues {value}") from None


class DriverField(InOneGo, OnNic):
    """One field of a driver's table; `where` is place/field. The fields of one NIC are written in one call."""

    declining = True

    def __init__(self, what: str, names: Sequence[str]) -> None:
        super().__init__(what)
        self.names = names

    def has_place(self, where: str) -> bool:
        place, _slash, field = where.rpartition("/")
        return super().has_place(place) and field in self.names

    def fits(self, where: str, value: Value) -> bool:
        return isinstance(value, int) and 0 <= value < _MOST

    def read(self) -> Value:
        interface = self.nic()
        return (self.ask(interface) or {}).get(self.where.rpartition("/")[2]) if interface is not None else None

    def write_all(self, values: Mapping[str, Value]) -> None:
        changes: Dict[str, Dict[str, int]] = {}
        for where, value in values.items():
            place, _slash, field = where.rpartition("/")
            if not isinstance(value, int):
                raise impossible(self, value, where)
            changes.setdefault(place, {})[field] = value
        for place, change in changes.items():
            interface = self.at(self.host, place).require_nic()
            record = self.record(interface, change)
            if record is None:
                raise NearmetalError(f"the driver of {interface.name} doesn't say its present {self.what}")
            try:
                self.host.set_driver(interface.name, record)
            except OSError as error:
                refused_fields = self._refused_fields(interface, change)
                values_of_fields = ", ".join(f"{field} {value}" for field, value in refused_fields.items())
                places = [(self.what, f"{place}/{field}") for field in refused_fields]
                raise declined(error, interface, values_of_fields, places) from None

    def _refused_fields(self, interface: Nic, change: Mapping[str, int]) -> Mapping[str, int]:
        """Of a change that was refused, the fields that are refused alone, too; all, if a try would stop traffic.

        What the driver takes meanwhile is the engine's to take back, with the whole change.
        """
        alone = {} if self.disruptive or len(change) == 1 else change
        refused_fields = {}
        for field, value in alone.items():
            record = self.record(interface, {field: value})
            try:
                if record is not None:
                    self.host.set_driver(interface.name, record)
            except OSError as error:
                if error.errno in _REFUSALS:
                    refused_fields[field] = value
        return refused_fields or change

    @abstractmethod
    def ask(self, interface: Nic) -> Optional[Mapping[str, int]]:
        """The present table."""

    @abstractmethod
    def record(self, interface: Nic, order: Mapping[str, int]) -> Optional[bytes]:
        """The record that sets these fields and nothing else; None when the driver has no such table."""


class DriverNumber(DriverField):
    """A number in a record, of which all fields are read and set by one of two `commands`."""

    def __init__(self, what: str, names: Sequence[str], commands: Tuple[int, int], fields: Sequence[str]) -> None:
        super().__init__(what, names)
        self.commands, self.fields = commands, fields

    def ask(self, interface: Nic) -> Optional[Mapping[str, int]]:
        present = self._present(interface)
        return ethtool.numbers(present, self.fields) if present is not None else None

    def record(self, interface: Nic, order: Mapping[str, int]) -> Optional[bytes]:
        present = self._present(interface)
        return ethtool.changed(present, self.commands[1], self.fields, order) if present is not None else None

    def _present(self, interface: Nic) -> Optional[bytes]:
        return self.host.ethtool(interface.name, ethtool.question(self.commands[0], len(self.fields)))


class Rings(DriverNumber):
    """Descriptors per queue. Some drivers request their interrupts again when these change."""

    disruptive = disturbing = True

    def disturbs(self) -> Iterable[Key]:
        return self.interrupts()


class Offloads(DriverField):
    """What the NIC does in place of the CPU."""

    def ask(self, interface: Nic) -> Optional[Mapping[str, int]]:
        offloads = facts.offloads(self.host, interface.name, facts.feature_names(self.host, interface.name))
        return {name: on for name, (on, _free) in offloads.items()} if offloads is not None else None

    def record(self, interface: Nic, order: Mapping[str, int]) -> Optional[bytes]:
        present = self.ask(interface)
        if present is None:
            return None
        unknown = [name for name in order if name not in present]
        if unknown:
            raise NearmetalError(f"{interface.name} has no offload {unknown[0]}")
        change = {name: bool(on) for name, on in order.items() if present[name] != on}
        return ethtool.features_change(facts.feature_names(self.host, interface.name), change)


class Sysfs(_Number):
    """A number in the interface's directory of /sys: mtu, gro_flush_timeout."""

    declining = True

    def __init__(self, what: str, file: str, disruptive: bool = False) -> None:
        super().__init__(what)
        self.file = file
        self.disruptive = disruptive

    def read(self) -> Value:
        interface = self.nic()
        text = self.host.line(f"{interface.folder}/{self.file}") if interface is not None else None
        return int(text) if text is not None and is_number(text) else None

    def write(self, value: Value) -> None:
        interface = self.require_nic()
        try:
            self.host.write_value(f"{interface.folder}/{self.file}", f"{value}\n")
        except OSError as error:
            raise declined(error, interface, f"{self.file} {value}", [(self.what, self.where)]) from None

    def obstacle(self) -> str:
        interface = self.nic()
        return unwritable(self.host, f"{interface.folder}/{self.file}") if interface is not None else super().obstacle()


LEVERS = (
    Queues("network.queues"),
    Rings("network.rings", ("rx", "tx"), (ethtool.GET_RINGS, ethtool.SET_RINGS), ethtool.RINGS),
    DriverNumber("network.coalesce", facts.COALESCE, (ethtool.GET_COALESCE, ethtool.SET_COALESCE), ethtool.COALESCE),
    Offloads("network.offloads", facts.OFFLOADS),
    Sysfs("network.mtu", "mtu", disruptive=True),
    Sysfs("network.txqueuelen", "tx_queue_len"),
    Sysfs("network.defer_hard_irqs", "napi_defer_hard_irqs"),
    Sysfs("network.gro_flush_timeout", "gro_flush_timeout"),
)
