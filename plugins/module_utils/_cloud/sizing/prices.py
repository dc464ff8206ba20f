# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prices on demand, from AWS's Price List API. PRIVATE to the collection."""

from __future__ import annotations

import json
from typing import Any, Dict, Iterable, Mapping, Set, Tuple

from ..accounts import Target
from ..api import pages

# What distinguishes the plain price from those with licenses, for reserved capacity, or on dedicated hardware.
_PLAIN = {"operatingSystem": "Linux", "tenancy": "Shared", "preInstalledSw": "NA", "capacitystatus": "Used"}


def ask(target: Target, names: Iterable[str]) -> Tuple[Dict[str, float], str]:
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
    amounts = set()
    try:
        terms = json.loads(product)["terms"].get("OnDemand", {})
        for term in terms.values():
            for dimension in term["priceDimensions"].values():
                if dimension["unit"] == "Hrs":
                    amounts.add(_dollars(dimension["pricePerUnit"]))
    except (KeyError, TypeError, ValueError, AttributeError):
        return set()
    return {price for price in amounts if price > 0}


def _dollars(price: Mapping[str, str]) -> float:
    return float(price.get("USD", 0))
