# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The instance type of a host on Xen that neither the host nor an option names. PRIVATE to the collection."""

from __future__ import annotations

from typing import List, Optional, Sequence

from .._facts.host import Host
from .._facts.platform import PlatformFacts
from .._memory.stored import Stored
from .planning import Request, Tune
from .session import Known, Session

OPTION = "instance_type"


def with_learnt_type(session: Session, requests: Sequence[Request], known: Known) -> List[Request]:
    """The requests, with the type from the metadata service, else with the type that an earlier run had from it.

    The type becomes an option, so it is stored with the others: the unit, which has no network, reads it there.
    A type that an earlier run was given as an option isn't used again.
    """
    platform = session.platform
    on_xen = platform is not None and platform.host_class in ("xen_pv", "xen_hvm") and platform.instance_type is None
    typeless = [request for request in requests if _is_typeless(request)]
    if platform is None or not on_xen or not typeless or not session.learns:
        return list(requests)
    served = _from_service(session.host, platform)
    return [
        _with_type(request, served, known.get(request.name))
        if isinstance(request, Tune) and request in typeless
        else request
        for request in requests
    ]


def _is_typeless(request: Request) -> bool:
    return isinstance(request, Tune) and request.stored is None and not request.wanted.get(OPTION)


def _from_service(host: Host, platform: PlatformFacts) -> Optional[str]:
    if host.metadata_service is None:
        return None
    # These imports are a third of what a small run costs, and only a run on Xen needs them.
    from .._facts import imds

    return imds.instance_type(platform, host.metadata_service)


def _with_type(request: Tune, served: Optional[str], stored: Optional[Stored]) -> Request:
    learnt = served or (stored.options.get(OPTION) if stored is not None and OPTION in stored.learnt else None)
    if not learnt:
        return request
    options, by = {**request.wanted.options, OPTION: learnt}, {**request.wanted.by, OPTION: "auto"}
    return request._replace(wanted=request.wanted._replace(options=options, by=by))
