# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the fake AWS has beside instances and interfaces: CloudWatch's alarms, and the price list."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Tuple

from tests.support.aws.fake_interfaces import FakeInterfaces

Raw = Dict[str, Any]


class FakeServices(FakeInterfaces):
    """Alarms by name, and prices by type and region; a region's owner is of no interest here."""

    def __init__(self) -> None:
        super().__init__()
        self.alarms: Dict[str, Raw] = {}
        self.prices: Dict[Tuple[str, str], List[float]] = {}

    def DescribeAlarms(self, request: Raw, _caller: Tuple[str, str]) -> Raw:
        """The alarms of these names."""
        assert len(request["AlarmNames"]) <= 100
        return {"MetricAlarms": [self.alarms[name] for name in request["AlarmNames"] if name in self.alarms]}

    def PutMetricAlarm(self, request: Raw, _caller: Tuple[str, str]) -> Raw:
        """A new alarm, or a changed one: nothing of the former remains."""
        self.alarms[request["AlarmName"]] = {"StateValue": "INSUFFICIENT_DATA", **request}
        return {}

    def DeleteAlarms(self, request: Raw, _caller: Tuple[str, str]) -> Raw:
        """Delete alarms; AWS takes at most a hundred names."""
        assert len(request["AlarmNames"]) <= 100
        for name in request["AlarmNames"]:
            self.alarms.pop(name, None)
        return {}

    def GetProducts(self, request: Raw, caller: Tuple[str, str]) -> Raw:
        """The entries of the price list that match, each as JSON in a text, as AWS gives them."""
        assert caller[1] in ("us-east-1", "eu-central-1", "ap-south-1"), "the price list has no endpoint elsewhere"
        fields = {wanted["Field"]: wanted["Value"] for wanted in request["Filters"]}
        plain = {"operatingSystem": "Linux", "tenancy": "Shared", "preInstalledSw": "NA", "capacitystatus": "Used"}
        assert {name: fields.pop(name, None) for name in plain} == plain
        found = self.prices.get((fields["instanceType"], fields["regionCode"]), [])
        return {"FormatVersion": "aws_v1", "PriceList": [json.dumps(_product(price)) for price in found]}


def _product(price: float) -> Raw:
    hourly = {"unit": "Hrs", "pricePerUnit": {"USD": f"{price:.10f}"}}
    term = {"priceDimensions": {"SKU.JRTCKXETXF.6YS6EN2CT7": hourly}, "offerTermCode": "JRTCKXETXF"}
    reserved = {"priceDimensions": {"x": {"unit": "Quantity", "pricePerUnit": {"USD": "999"}}}}
    return {"product": {"sku": "SKU"}, "terms": {"OnDemand": {"SKU.JRTCKXETXF": term}, "Reserved": {"y": reserved}}}
