# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The few paths of the instance metadata that amazon-ec2-net-utils needs for a second interface, ens6."""

import http.server
import pathlib

MAC = {name: pathlib.Path(f"/sys/class/net/{name}/address").read_text().strip() for name in ("ens5", "ens6")}
ENI = f"/latest/meta-data/network/interfaces/macs/{MAC['ens6']}/"
ANSWERS = {
    "/latest/meta-data/mac": MAC["ens5"],
    f"{ENI}device-number": "1",
    f"{ENI}interface-id": "eni-0da7a0da7a0da7a06",
    f"{ENI}local-ipv4s": "10.0.3.15",
}


class Answer(http.server.BaseHTTPRequestHandler):
    """Gives every client a token, and the text of each path."""

    def do_PUT(self):
        self.answer("token")

    def do_GET(self):
        self.answer(ANSWERS.get(self.path))

    def answer(self, text):
        self.send_response(200 if text else 404)
        self.send_header("Content-Length", str(len(text or "")))
        self.end_headers()
        self.wfile.write((text or "").encode())


http.server.HTTPServer(("169.254.169.254", 80), Answer).serve_forever()
