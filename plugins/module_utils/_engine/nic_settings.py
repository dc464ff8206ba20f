# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The levers of NICs that the driver itself moves, by the ethtool ioctl. PRIVATE to the collection."""

from __future__ import annotations

from typing import Dict, Optional

from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.lever import Lever
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.network import demand_nic, nic_at, refused
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import ethtool as facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import network, nic
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.nic import Nic
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import ethtool
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Value

_MOST = 1 << 20


class DriverSetting(Lever):
    """One setting of a NIC; subclasses say which record sets it."""

    def check(self, where: str, value: Value) -> None:
        if not nic.PLACE.fullmatch(where):
            raise NearmetalError(f"{self.what} has no place {where!r}")
        for entry in value.values() if isinstance(value, dict) else (value,):
            if not isinstance(entry, int) or not 0 <= entry < _MOST:
                raise NearmetalError(f"{self.what} can't be {value!r}")

    def read(self, host: WritableHost, where: str) -> Value:
        found = nic_at(host, where)
        return self.ask(host, found) if found is not None else None

    def write(self, host: WritableHost, where: str, value: Value) -> None:
        found = demand_nic(host, where)
        record = self.record(host, found, value)
        if record is None:
            raise NearmetalError(f"the driver of {found.name} doesn't say its present {self.what}")
        try:
            host.set_driver(found.name, record)
        except OSError as error:
            raise refused(error, f"{value} as {self.what} of {found.name}") from None

    def obstacle(self, host: WritableHost, where: str) -> str:
        return "" if nic_at(host, where) is not None else f"no network interface is at {where} any more"

    def ask(self, host: WritableHost, one: Nic) -> Value:
        """The present value."""
        raise NotImplementedError

    def record(self, host: WritableHost, one: Nic, value: Value) -> Optional[bytes]:
        """The record that sets the value and nothing else; None when the driver has no such setting."""
        raise NotImplementedError


class Queues(DriverSetting):
    """How many queue pairs a NIC uses."""

    def ask(self, host: WritableHost, one: Nic) -> Value:
        return network.queues_now(one, facts.channels(host, one.name))

    def record(self, host: WritableHost, one: Nic, value: Value) -> Optional[bytes]:
        present = host.ethtool(one.name, ethtool.question(ethtool.GET_CHANNELS, len(ethtool.CHANNELS)))
        if present is None or not isinstance(value, int):
            return None
        combined = ethtool.numbers(present, ethtool.CHANNELS)["combined_max"] > 0
        goal = {"combined": value} if combined else {"rx": value, "tx": value}
        return ethtool.changed(present, ethtool.SET_CHANNELS, ethtool.CHANNELS, goal)


class Rings(DriverSetting):
    """Descriptors per queue: rx and tx."""

    def ask(self, host: WritableHost, one: Nic) -> Value:
        found = facts.rings(host, one.name)
        return network.now(found) if found is not None else None

    def record(self, host: WritableHost, one: Nic, value: Value) -> Optional[bytes]:
        return _table(host, one, value, (ethtool.GET_RINGS, ethtool.SET_RINGS), ethtool.RINGS)


class Coalesce(DriverSetting):
    """Interrupt moderation."""

    def ask(self, host: WritableHost, one: Nic) -> Value:
        return facts.coalesce(host, one.name)

    def record(self, host: WritableHost, one: Nic, value: Value) -> Optional[bytes]:
        return _table(host, one, value, (ethtool.GET_COALESCE, ethtool.SET_COALESCE), ethtool.COALESCE)


class Offloads(DriverSetting):
    """What the NIC does in place of the CPU."""

    def ask(self, host: WritableHost, one: Nic) -> Value:
        found = facts.offloads(host, one.name, facts.feature_names(host, one.name))
        return {name: on for name, (on, _free) in found.items()} if found is not None else None

    def record(self, host: WritableHost, one: Nic, value: Value) -> Optional[bytes]:
        names = facts.feature_names(host, one.name)
        present = self.ask(host, one)
        if not isinstance(present, dict) or not isinstance(value, dict):
            return None
        change: Dict[str, bool] = {name: bool(on) for name, on in value.items() if present.get(name) != on}
        unknown = [name for name in change if name not in names]
        if unknown:
            raise NearmetalError(f"{one.name} has no offload {unknown[0]}")
        return ethtool.features_change(names, change)


def _table(
    host: WritableHost, one: Nic, value: Value, commands: "tuple[int, int]", names: "tuple[str, ...]"
) -> Optional[bytes]:
    present = host.ethtool(one.name, ethtool.question(commands[0], len(names)))
    if present is None or not isinstance(value, dict):
        return None
    unknown = [name for name in value if not name or name not in names]
    if unknown:
        raise NearmetalError(f"{unknown[0]!r} is nothing that a driver has")
    return ethtool.changed(present, commands[1], names, value)


class Sysfs(Lever):
    """A number in the interface's directory of /sys: mtu, tx_queue_len."""

    def __init__(self, what: str, file: str) -> None:
        super().__init__(what)
        self.file = file

    def check(self, where: str, value: Value) -> None:
        if not nic.PLACE.fullmatch(where):
            raise NearmetalError(f"{self.what} has no place {where!r}")
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MOST:
            raise NearmetalError(f"{self.what} can't be {value!r}")

    def read(self, host: WritableHost, where: str) -> Value:
        found = nic_at(host, where)
        text = host.line(f"{found.folder}/{self.file}") if found is not None else None
        return int(text) if text is not None and text.isdigit() else None

    def write(self, host: WritableHost, where: str, value: Value) -> None:
        found = demand_nic(host, where)
        try:
            host.write_value(f"{found.folder}/{self.file}", f"{value}\n")
        except OSError as error:
            raise refused(error, f"{value} as {self.file} of {found.name}") from None

    def obstacle(self, host: WritableHost, where: str) -> str:
        found = nic_at(host, where)
        if found is None:
            return f"no network interface is at {where} any more"
        path = f"{found.folder}/{self.file}"
        return "" if host.writable(path) else f"{path} can't be written here: run on the host itself"
