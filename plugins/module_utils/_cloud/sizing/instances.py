# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module sizing: what is given, and what CloudWatch measured of instances. AWS is asked only for these. PRIVATE."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Dict, Iterable, List, Mapping, Optional, Set, Tuple

from ..._error import NearmetalError
from ..._plan import Finding, Plan
from ..._planning.knob import Knob
from ..accounts import Target, deadline
from ..api import VOLUMES, Cloud, Series, ask, pages
from ..observe import Observation, observe
from ..result import contract
from ..types.facts import TypeFacts
from ..volume_facts import volume_facts
from .advice import Question, answer, fits_of, proposals, question
from .need import figure, need_of

CONCERN = "sizing"
_SECONDS = 300  # of one value of CloudWatch
# CloudWatch keeps values of 5 minutes for 63 days.
_LONGEST = 63 * 24
_METRICS = {
    "CPUUtilization": "Average",
    "NetworkIn": "Sum",
    "NetworkOut": "Sum",
    "EBSReadOps": "Sum",
    "EBSWriteOps": "Sum",
    "EBSReadBytes": "Sum",
    "EBSWriteBytes": "Sum",
}
# What distinguishes the plain price from those with licenses, for reserved capacity, or on dedicated hardware.
_PLAIN = {"operatingSystem": "Linux", "tenancy": "Shared", "preInstalledSw": "NA", "capacitystatus": "Used"}


def measured(kind: TypeFacts, highest: Mapping[str, float], hours: int) -> Tuple[Dict[str, float], List[str]]:
    """The need in the highest values of CloudWatch, and how it follows from them.

    Reads and writes may have been highest at different times, so their sum is what EBS needs at most.
    """
    need: Dict[str, float] = {}
    parts = []
    if "CPUUtilization" in highest and kind.vcpus:
        need["vcpus"] = round(highest["CPUUtilization"] / 100 * kind.vcpus, 3)
        cpu = f"CPU {figure(highest['CPUUtilization'])} % × {kind.vcpus} vCPUs = {figure(need['vcpus'])} vCPUs"
        parts.append(cpu)
    both_ways = [highest[name] for name in ("NetworkIn", "NetworkOut") if name in highest]
    if both_ways:
        need["network_gbps"] = round(max(both_ways) * 8 / _SECONDS / 1e9, 6)
        parts.append(f"network {max(both_ways):,.0f} bytes × 8 ÷ 300 s = {figure(need['network_gbps'])} Gbit/s")
    for name, first, second, scale, words, unit in (
        ("ebs_iops", "EBSReadOps", "EBSWriteOps", 1.0, "operations", "IOPS"),
        ("ebs_mb_s", "EBSReadBytes", "EBSWriteBytes", 1e6, "bytes", "MB/s"),
    ):
        if first in highest and second in highest:
            need[name] = round((highest[first] + highest[second]) / _SECONDS / scale, 3)
            both = f"({highest[first]:,.0f} + {highest[second]:,.0f}) {words}"
            parts.append(f"EBS {both} ÷ 300 s = {figure(need[name])} {unit} at most")
    if not parts:
        return {}, []
    return need, [f"CloudWatch's highest 5 minutes of {hours} h: {'; '.join(parts)}"]


def module_answer(options: Mapping[str, Any]) -> Dict[str, Any]:
    """The module's result."""
    if not 1 <= options["hours"] <= _LONGEST:
        raise NearmetalError(f"hours: {options['hours']} is not allowed: it must be from 1 to {_LONGEST}")
    if options["instance_ids"] is None and options["filters"] is None:
        return _given(options)
    return _instances(options)


def _given(options: Mapping[str, Any]) -> Dict[str, Any]:
    query = question(options)
    if options["ask_prices"]:
        with deadline(options["timeout"]):
            cloud = Cloud(options)
            if not cloud.targets:
                raise NearmetalError(cloud.errors[0])
            prices_by_type, trouble = ask_prices(cloud.targets[0], _priced(query))
        if trouble:
            raise NearmetalError(f"{trouble}. Prices that you give need no permission: set prices")
        query = replace(query, prices={**prices_by_type, **query.prices})
    result = answer(query)
    where = query.today.instance_type if query.today else ""
    findings = [
        Finding(CONCERN, name, use["status"], use["line"], reference=use["reference"], where=where).as_dict()
        for name, use in result["uses"].items()
    ]
    names = ", ".join(entry["instance_type"] for entry in result["proposed"])
    enough = f"{result['sufficient']} of {result['candidates']} types would do"
    msg = f"{enough}: {names}" if names else enough if query.need else "; ".join(result["arithmetic"][:1])
    return {"changed": False, "msg": f"{CONCERN}: {msg}", "sizing": result, "findings": findings}


def _instances(options: Mapping[str, Any]) -> Dict[str, Any]:
    given = need_of(options["need"])
    # Wrong options fail before AWS is asked.
    question({**options, "instance_type": None, "volumes": None, "need": given or {"vcpus": 0}})
    with deadline(options["timeout"]):
        observation = observe(options)
        volumes = observation.keep_failures(ask(VOLUMES, observation.located))
        series = {
            instance_id: [Series("AWS/EC2", name, "InstanceId", instance_id, how) for name, how in _METRICS.items()]
            for instance_id in observation.located
        }
        values = observation.metrics(options, series, options["hours"])
        queries: Dict[str, Question] = {}
        origin: Dict[str, List[str]] = {}
        for instance_id in observation.instances:
            kind = observation.type_of(observation.instances[instance_id])
            of_instance = values.by_id.get(instance_id, ())
            highest = {metric["name"]: max(metric["values"]) for metric in of_instance if metric["values"]}
            need, origin[instance_id] = measured(kind, highest, options["hours"])
            query = _question(options, {**need, **given}, kind, volumes.by_id.get(instance_id, ()), instance_id)
            if query:
                queries[instance_id] = query
        if options["ask_prices"]:
            queries = _with_prices(options, observation, queries)
    plans, details = {}, {}
    for instance_id in observation.instances:
        if instance_id not in queries:
            reason = "nothing to size it by: give need, or set metrics: true"
            knob = Knob(CONCERN, "bigger_size", reference="AWS, 2017", place=instance_id)
            plans[instance_id] = knob.says("unknown", reason)
            continue
        result = answer(queries[instance_id])
        result["arithmetic"] = origin[instance_id] + result["arithmetic"]
        plans[instance_id] = Plan(
            findings=tuple(
                Knob(CONCERN, name, reference=use["reference"], place=instance_id).finding(use["status"], use["line"])
                for name, use in result["uses"].items()
            )
        )
        details[instance_id] = {CONCERN: result}
    return contract(CONCERN, observation, plans, details)


def _question(
    options: Mapping[str, Any], need: Mapping[str, float], kind: TypeFacts, volumes: Iterable[Any], instance_id: str
) -> Optional[Question]:
    """The question for one instance; None when there is nothing to calculate with."""
    attached = [volume_facts(volume, instance_id) for volume in volumes]
    if kind.source == "name" or not (need or attached):
        return None
    able = [{"iops": volume.iops, "mb_s": volume.mb_s} for volume in attached]
    return question({**options, "instance_type": None, "need": need, "volumes": able or None}, today=kind)


def _priced(query: Question) -> List[str]:
    """The types whose price is to be asked: the one in use, the proposed ones by size, and those that were measured."""
    names = [each.kind.instance_type for each in proposals(query, fits_of(query))]
    names += [query.today.instance_type] if query.today else []
    return sorted({*names, *query.work} - set(query.prices))


def _with_prices(
    options: Mapping[str, Any], observation: Observation, queries: Mapping[str, Question]
) -> Dict[str, Question]:
    by_region: Dict[str, Tuple[Target, List[str]]] = {}
    for instance_id, each in queries.items():
        target = observation.located[instance_id].target
        by_region.setdefault(target.region, (target, []))[1].extend(_priced(each))
    known: Dict[str, Mapping[str, float]] = {}
    for region, (target, names) in by_region.items():
        known[region], trouble = ask_prices(target, sorted(set(names)))
        observation.cloud.errors += [trouble] if trouble else []
    return {
        instance_id: replace(each, prices={**known[observation.located[instance_id].target.region], **each.prices})
        for instance_id, each in queries.items()
    }


def ask_prices(target: Target, names: Iterable[str]) -> Tuple[Dict[str, float], str]:
    """US dollars per hour of types in the target's region, and the API's error; else an empty text.

    A type without exactly one price is left out.
    """
    prices: Dict[str, float] = {}
    for name in names:
        wanted = {**_PLAIN, "instanceType": name, "regionCode": target.region}
        request = {
            "ServiceCode": "AmazonEC2",
            "Filters": [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()],
        }
        products, error = pages(target, "pricing", "get_products", "PriceList", request)
        if error:
            return prices, error[1]
        hourly: Set[float] = set()
        for product in products:
            hourly |= _hourly(product)
        if len(hourly) == 1:
            prices[name] = hourly.pop()
    return prices, ""


def _hourly(product: Any) -> Set[float]:
    """The hourly prices above zero in one entry of the price list, which is JSON in a text."""
    try:
        terms = json.loads(product)["terms"].get("OnDemand", {}).values()
        dimensions = [dimension for term in terms for dimension in term["priceDimensions"].values()]
        amounts = {float(each["pricePerUnit"].get("USD", 0)) for each in dimensions if each["unit"] == "Hrs"}
    except (KeyError, TypeError, ValueError, AttributeError):
        return set()
    return {price for price in amounts if price > 0}
