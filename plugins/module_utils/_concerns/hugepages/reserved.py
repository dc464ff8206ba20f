# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""hugepages: reserved pages, guarded so that no host starves. Pure. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

from ..._error import NearmetalError
from ..._facts.facts import Facts
from ..._plan import Plan, Wanted, joined
from ..._planning.boot_argument import plan_argument
from ..._planning.gate import host_class
from ..._planning.knob import Knob, boot_argument

NAME = "hugepages"
REFERENCE = "AWS, 2017"
GIB = 1024**3

# An instance of 4 GiB shows about 3.7 GiB of MemTotal.
SMALLEST = int(3.5 * GIB)
# Percent of MemTotal that all reserved pages together may take, whoever reserved them.
SHARE = 80
# Bytes and percent of MemTotal, of which the larger stays available: a login, a package manager and this collection's
# next run need memory, and running programs' memory grows with the host's. Chosen, not measured.
RESERVE = 512 * 1024 * 1024
RESERVE_SHARE = 5
# KiB. Larger pages need contiguous memory, which is available only at boot.
LARGEST_AT_RUNTIME = 512 * 1024
# Linux b5389086ad7b; older kernels stop reading the number at the colon.
NODES_AT_BOOT = (5, 16)

PAGES = Knob(
    NAME,
    "pages",
    "hugepages.pages",
    REFERENCE,
    {
        "type": "list",
        "elements": "dict",
        "options": {
            "size": {"type": "str", "required": True},
            "count": {"type": "int", "range": (0, 1 << 30)},
            "percent_of_memory": {"type": "int", "range": (0, SHARE)},
            "nodes": {"type": "str", "default": "spread"},
        },
    },
    takes_effect="new_memory",
    kubelet=True,
)
# A knob of its own, so that a run with another method takes it back.
_ARGUMENT = boot_argument(NAME, "method", "hugepages", REFERENCE, option="pages")
KNOBS = (PAGES, _ARGUMENT)

_SIZE = r"([0-9]{1,7})\s*(k|m|g)(?:i?b)?"
_UNITS = {"k": 1, "m": 1024, "g": 1024 * 1024}

# Size → place → pages.
_Table = Mapping[str, Mapping[str, int]]


class _Request(NamedTuple):
    """How many pages of a size, per place: one entry of `pages`, or several that each name nodes."""

    size: str  # as the kernel names it: 2048kB
    now: Mapping[str, int]
    after: Dict[str, int]
    nodes: Tuple[str, ...]  # the places that the user chose; empty: spread

    @property
    def kib(self) -> int:
        return int(self.size[:-2])

    @property
    def total(self) -> int:
        return sum(self.after.values())

    @property
    def bytes(self) -> int:
        return self.total * self.kib * 1024

    @property
    def additional_bytes(self) -> int:
        """Bytes beyond what is reserved already."""
        return (self.total - sum(self.now.values())) * self.kib * 1024

    @property
    def only_at_boot(self) -> bool:
        """Whether it needs contiguous memory, which is available only at boot."""
        return self.kib > LARGEST_AT_RUNTIME and self.additional_bytes > 0

    @property
    def lacking(self) -> bool:
        """Whether pages are missing where they are wanted; without chosen nodes the kernel spreads them as it can."""
        if self.nodes:
            return any(self.now[place] < count for place, count in self.after.items())
        return self.additional_bytes > 0


def plan(facts: Facts, wanted: Wanted) -> Plan:
    """The plan for `pages`.

    Raises NearmetalError when an entry makes no sense, or names a size that this kernel lacks.
    """
    entries, pages, method = PAGES.value(wanted), facts.hugepages, wanted.get("method")
    if entries is None:
        return Plan()
    if not pages.pages or pages.memory is None:
        return PAGES.says("not_applicable", "this kernel has no reserved huge pages")
    by_size: Dict[str, _Request] = {}
    names: Dict[str, str] = {}
    for number, entry in enumerate(entries):
        name = f"hugepages.pages[{number}]"
        request = _request(facts, name, entry, wanted)
        if isinstance(request, Plan):
            return request
        earlier = by_size.get(request.size)
        entry_names = f"{names.setdefault(request.size, name)} and {name}"
        by_size[request.size] = _merge(entry_names, earlier, request) if earlier is not None else request
    requests = list(by_size.values())
    refusal = _starving(facts, requests, wanted)
    if refusal is None and method != "boot" and any(request.additional_bytes > 0 for request in requests):
        reason = PAGES.earlier(wanted)
        refusal = PAGES.says("refused", reason) if reason else None
    if refusal is not None:
        return refusal
    now = [request for request in requests if method == "runtime" or (method == "both" and not request.only_at_boot)]
    runtime = joined(*(_runtime(request, wanted) for request in now))
    at_boot = _at_boot(facts, requests, wanted) if method != "runtime" else Plan()
    changed = any(finding.status in ("ok", "would_change") for finding in runtime.findings)
    # A count that suits this host could starve a smaller one, so no file has it: the unit plans it again at boot.
    return joined(runtime, at_boot, Plan(replan=changed and method == "runtime"))


def size_of(text: str) -> str:
    """A size such as 2M or 1 GiB as the kernel names it, 2048kB; empty when it is none."""
    match = re.fullmatch(_SIZE, text.strip(), re.ASCII | re.IGNORECASE)
    return f"{int(match.group(1)) * _UNITS[match.group(2).lower()]}kB" if match else ""


def short(kib: int) -> str:
    """A size as kernel arguments and mount options have it: 2M, 1G."""
    for unit, factor in (("G", 1024 * 1024), ("M", 1024)):
        if kib % factor == 0:
            return f"{kib // factor}{unit}"
    return f"{kib}K"


def _request(facts: Facts, name: str, entry: Mapping[str, Any], wanted: Wanted) -> "_Request | Plan":
    pages = facts.hugepages
    size = size_of(str(entry["size"]))
    if size not in pages.pages:
        sentence = f"{name}.size: this kernel has no huge pages of {entry['size']}; it has {' '.join(pages.pages)}"
        if size:
            return PAGES.impossible(wanted, sentence)
        raise NearmetalError(sentence)
    count, percent = entry.get("count"), entry.get("percent_of_memory")
    if (count is None) == (percent is None):
        raise NearmetalError(f"{name}: give either count or percent_of_memory")
    if percent is not None and wanted.get("method") != "runtime":
        raise NearmetalError(
            f"{name}.percent_of_memory: a kernel argument can't carry a number that depends on the size of"
            " the host; give count, or use method: runtime"
        )
    if percent is not None:
        count = (pages.memory or 0) * percent // 100 // (int(size[:-2]) * 1024)
    amount = int(count or 0)
    now = pages.pages[size]
    nodes = str(entry.get("nodes") or "spread")
    named = _places(name, nodes) if nodes != "spread" else ()
    absent = [place for place in named if place not in now]
    if absent:
        sentence = f"{name}.nodes: this host has no {absent[0]}; it has {' '.join(now)}; write 0,1 or spread"
        return PAGES.impossible(wanted, sentence)
    chosen = named or _with_memory(facts, now)
    share, remainder = divmod(amount, len(chosen))
    after = dict.fromkeys(now, 0)
    after.update({place: share + (number < remainder) for number, place in enumerate(chosen)})
    return _Request(size, now, after, named)


def _merge(names: str, earlier: _Request, request: _Request) -> _Request:
    """Merge two entries of one size, each on nodes of its own."""
    if not earlier.nodes or not request.nodes or set(earlier.nodes) & set(request.nodes):
        raise NearmetalError(
            f"{names} both ask for pages of {request.size}: entries of the same size must each name"
            " nodes, and no node twice"
        )
    after = {place: count + request.after[place] for place, count in earlier.after.items()}
    return earlier._replace(after=after, nodes=earlier.nodes + request.nodes)


def _with_memory(facts: Facts, now: Mapping[str, int]) -> List[str]:
    """The nodes that pages are spread over: those with memory."""
    empty = {f"node{node.id}" for node in facts.nodes if node.memory == 0}
    return [place for place in now if place not in empty] or list(now)


def _places(name: str, nodes: str) -> Tuple[str, ...]:
    chosen = tuple(f"node{number.strip()}" for number in nodes.split(","))
    for place in chosen:
        if chosen.count(place) > 1:
            raise NearmetalError(f"{name}.nodes: {place} is named twice")
    return chosen


def _starving(facts: Facts, requests: List[_Request], wanted: Wanted) -> Optional[Plan]:
    """The refusal of pages that would starve the host; None where they fit.

    What programs and pages of other sizes take is remembered: at a boot they aren't there yet.
    """
    memory, available = facts.hugepages.memory or 0, facts.hugepages.available
    if memory < SMALLEST and any(request.total for request in requests):
        return PAGES.says("refused", f"this host has {_gib(memory)}: below 4 GiB every page is needed")
    other_sizes = _other_sizes(facts, requests, wanted)
    other_bytes = _bytes(other_sizes)
    total = sum(request.bytes for request in requests) + other_bytes
    sizes = " and ".join(f"{request.total} pages of {request.size}" for request in requests)
    sizes = f"{sizes} beside {_gib(other_bytes)} reserved in other sizes" if other_bytes else sizes
    more = sum(request.additional_bytes for request in requests)
    # Even a full host may reserve fewer pages than now.
    if total * 100 > memory * SHARE and (more > 0 or wanted.get("method") != "runtime"):
        return _refused(
            f"{sizes} are {_gib(total)}: more than {SHARE} % of this host's {_gib(memory)}", other_bytes > 0
        )
    crowded = _crowded_node(facts, requests, other_sizes, wanted)
    if crowded:
        return _refused(crowded, other_bytes > 0)
    reserve = max(RESERVE, memory * RESERVE_SHARE // 100)
    if wanted.get("method") != "boot" and more > 0 and (available is None or more + reserve > available):
        available_words = (
            f"the available memory is unknown, and {_gib(reserve)}"
            if available is None
            else f"only {_gib(available)} are available, of which {_gib(reserve)}"
        )
        reason = (
            f"{sizes} are {_gib(total)}, {_gib(more)} more than now, but {available_words} must stay free for"
            " programs that start later"
        )
        return _refused(reason, True)
    if (host_class(facts, wanted) == "xen_pv" or facts.burstable) and more > 0 and not wanted.get("allow_unverified"):
        reason = (
            "on burstable types and on Xen PV memory is small, or the hypervisor moves it;"
            " allow_unverified: true reserves pages anyway"
        )
        return PAGES.says("refused", reason)
    return None


def _refused(reason: str, by_others: bool) -> Plan:
    return PAGES.says("refused", reason)._replace(remember={(PAGES.name, ""): reason} if by_others else {})


def _crowded_node(facts: Facts, requests: List[_Request], other_sizes: _Table, wanted: Wanted) -> str:
    """Why a node's own memory can't hold so many pages; empty where they fit."""
    # Without chosen nodes the kernel itself spreads them at boot, and skips nodes that are full.
    placed = {request.size: request.after for request in requests if request.nodes or wanted.get("method") != "boot"}
    for node in facts.nodes:
        place = f"node{node.id}"
        after = _bytes({**other_sizes, **placed}, place)
        more = after > _bytes(facts.hugepages.pages, place) or wanted.get("method") != "runtime"
        if node.memory is None or not more or after * 100 <= node.memory * (100 - RESERVE_SHARE):
            continue
        return (
            f"{place} has {_gib(node.memory)}, of which {_gib(node.memory * RESERVE_SHARE // 100)} must"
            f" stay free for programs, but {_gib(after)} would be reserved there: ask for fewer pages, or"
            " name other nodes"
        )
    return ""


def _other_sizes(facts: Facts, requests: List[_Request], wanted: Wanted) -> _Table:
    """Size → place → pages for sizes that no entry names, without what nearmetal's present kernel argument reserves."""
    named = {request.size for request in requests}
    recorded = facts.boot.arguments.get("hugepages") if wanted.get("method") == "boot" else None
    removed_tokens = str(recorded or "").split()
    return {
        size: counts
        for size, counts in facts.hugepages.pages.items()
        if size not in named and f"hugepagesz={short(int(size[:-2]))}" not in removed_tokens
    }


def _bytes(table: _Table, place: str = "") -> int:
    """Bytes of the pages of all sizes, at one place or on the whole host."""
    return sum(
        count * int(size[:-2]) * 1024
        for size, counts in table.items()
        for where, count in counts.items()
        if place in ("", where)
    )


def _runtime(request: _Request, wanted: Wanted) -> Plan:
    knob, now = PAGES.at(request.size), dict(request.now)
    reason = f"{request.total} pages of {request.size} are {_gib(request.bytes)}"
    if now != request.after and request.only_at_boot:
        reason = f"pages of {request.size} need contiguous memory, which is available only at boot: use method: boot"
        return knob.says("refused", reason, now, request.after)
    return knob.change(wanted, now, request.after, reason)


def _at_boot(facts: Facts, requests: List[_Request], wanted: Wanted) -> Plan:
    version = facts.platform.kernel_version
    tokens: List[str] = []
    for request in requests:
        counts = str(request.total)
        if request.nodes and request.total:
            counts = ",".join(f"{place[4:]}:{count}" for place, count in request.after.items() if count)
            if version is not None and version < NODES_AT_BOOT:
                return _no_nodes(f"hugepages={counts}", version, wanted)
        tokens += [f"hugepagesz={short(request.kib)}", f"hugepages={counts}"]
    text = " ".join(tokens) if requests else None
    reason = "memory is contiguous only at boot"
    return joined(plan_argument(facts, wanted, _ARGUMENT, text, reason), _missing_pages(facts, requests, text))


def _no_nodes(argument: str, version: Tuple[int, ...], wanted: Wanted) -> Plan:
    reason = (
        f"{argument} names a node, which Linux understands from {'.'.join(map(str, NODES_AT_BOOT))}"
        f" on; this is Linux {'.'.join(map(str, version))}, which would read the node's number as the"
        " count: leave nodes out, or use method: runtime"
    )
    return _ARGUMENT.at("").says("refused", reason, None, wanted.get("method"))


def _missing_pages(facts: Facts, requests: List[_Request], text: Optional[str]) -> Plan:
    """The findings for pages that the kernel was asked for at boot and had no memory for."""
    if text is None or not facts.boot.booted(text):
        return Plan()
    plans = []
    for request in requests:
        if request.lacking:
            reason = (
                f"booted with {text}, the kernel has {sum(request.now.values())} of {request.total} pages of"
                f" {request.size}: at boot there was no contiguous memory for more; ask for fewer"
            )
            plans.append(PAGES.at(request.size).says("unchangeable", reason, dict(request.now), request.after))
    return joined(*plans)


def _gib(amount: int) -> str:
    return f"{amount / GIB:.1f} GiB"
