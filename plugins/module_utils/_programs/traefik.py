# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Traefik, which has Caddy's library for HTTP/3. PRIVATE to the collection."""

from __future__ import annotations

from . import caddy

PROGRAM = caddy.PROGRAM._replace(title="Traefik", processes=("traefik",), packages=("traefik",))
