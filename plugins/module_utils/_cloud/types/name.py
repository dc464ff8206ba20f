# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of an instance type's name. Pure. PRIVATE to the collection."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any, Dict, Optional, Tuple

from ..._error import NearmetalError

# u-6tb1: the memory stands before the generation, unlike u7i-12tb.
_HIGH_MEMORY = re.compile("(?P<series>u)-(?P<memory>[0-9]{1,4})tb(?P<generation>[0-9]{1,3})")
_FAMILY = re.compile(
    "(?P<series>[a-z]{1,8})(?P<generation>[0-9]{1,3})(?P<attributes>[a-z]{0,8})(-(?P<variant>[a-z0-9]{1,16}))?"
)
_NO_GENERATION = re.compile("(?P<series>[a-z]{1,8})-(?P<variant>[a-z0-9]{1,16})")
_SIZE = re.compile(
    "(?P<word>nano|micro|small|medium|large)|(?P<times>[1-9][0-9]{0,3})?xlarge|metal(-(?P<slice>[1-9][0-9]{0,3})xl)?"
)
_MEMORY = re.compile("([0-9]{1,4})tb")

# AWS's normalization factor of a size: small is 1, and an Nxlarge counts 8 N.
_FACTORS = {"nano": 0.25, "micro": 0.5, "small": 1.0, "medium": 2.0, "large": 4.0}
_LONGEST_NAME = 64


@dataclass(frozen=True)
class TypeName:
    """An instance type's name, taken apart: `c7gn.16xlarge`."""

    instance_type: str
    family: str  # c7gn
    size: str  # 16xlarge
    series: str  # c
    generation: Optional[int]  # 7; None where the name has none (mac-m4)
    attributes: Tuple[str, ...]  # g, n: one letter each
    variant: Optional[str]  # what follows the hyphen: flex, m2pro, b200
    architecture: str  # arm64 | x86_64 | arm64_mac | x86_64_mac, by AWS's naming rule
    bare_metal: bool
    memory_tb: Optional[int]  # 6 in u-6tb1 and u7i-6tb
    size_factor: Optional[float]  # large 4, xlarge 8, 16xlarge 128; None for a whole metal host

    def as_dict(self) -> Dict[str, Any]:
        """The parts as plain JSON data."""
        parts = asdict(self)
        parts["attributes"] = list(self.attributes)
        return parts


def parse_instance_type(name: Any) -> TypeName:
    """Split the name of an instance type. Raises NearmetalError for any other text."""
    if not isinstance(name, str) or len(name) > _LONGEST_NAME:
        raise NearmetalError(f"an instance type is a name such as c7gn.16xlarge, not {str(name)[:_LONGEST_NAME]!r}")
    family, dot, size = name.partition(".")
    sized = _SIZE.fullmatch(size)
    matched = _HIGH_MEMORY.fullmatch(family) or _FAMILY.fullmatch(family) or _NO_GENERATION.fullmatch(family)
    if not dot or not sized or not matched:
        raise NearmetalError(
            f"{name!r} isn't an instance type: expected family.size, such as c7gn.16xlarge or u-6tb1.metal"
        )
    parts = matched.groupdict()
    attributes = tuple(parts.get("attributes") or "")
    variant = parts.get("variant")
    in_variant = _MEMORY.fullmatch(variant or "")
    memory = parts.get("memory") or (in_variant[1] if in_variant else None)
    return TypeName(
        instance_type=name,
        family=family,
        size=size,
        series=parts["series"],
        generation=int(parts["generation"]) if parts.get("generation") else None,
        attributes=attributes,
        variant=variant,
        architecture=_architecture(parts["series"], parts.get("generation"), attributes, variant),
        bare_metal=size.startswith("metal"),
        memory_tb=int(memory) if memory else None,
        size_factor=_factor(sized),
    )


def _architecture(series: str, generation: Optional[str], attributes: Tuple[str, ...], variant: Optional[str]) -> str:
    if series == "mac":
        return "x86_64_mac" if generation == "1" else "arm64_mac"
    # p6e-gb200: the accelerator GB200 brings its own Arm processor.
    arm = series == "a" or "g" in attributes or (variant or "").startswith("gb")
    return "arm64" if arm else "x86_64"


def _factor(sized: "re.Match[str]") -> Optional[float]:
    if sized.group() == "metal":
        return None
    if sized.group("word"):
        return _FACTORS[sized.group("word")]
    return 8.0 * int(sized.group("times") or sized.group("slice") or 1)
