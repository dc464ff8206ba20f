# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Caddy, and Traefik, which has the same library for HTTP/3. PRIVATE to the collection."""

from __future__ import annotations

from .program import Page, Program, Wish

_PAGE = Page(reference="quic-go, UDP buffer sizes", read="2026-11-27", again="2027-11-27")

CADDY = Program(
    "Caddy",
    "web",
    (
        Wish(
            "network_stack.rmem_max",
            7500000,
            "its library for HTTP/3 asks for receive buffers of 7 MiB, and says at its start when it doesn't get them",
            _PAGE,
            checked=True,
        ),
        Wish(
            "network_stack.wmem_max",
            7500000,
            "its library for HTTP/3 asks for send buffers of 7 MiB, and says at its start when it doesn't get them",
            _PAGE,
            checked=True,
        ),
    ),
    processes=("caddy",),
    packages=("caddy",),
)
TRAEFIK = CADDY._replace(title="Traefik", processes=("traefik",), packages=("traefik",))
