# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Traefik, which has Caddy's library for HTTP/3. PRIVATE to the collection."""

from __future__ import annotations

from . import caddy

PROGRAM = caddy.PROGRAM._replace(title="Traefik", processes=("traefik",), packages=("traefik",))
