# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Range queries of a server that answers as Prometheus does."""

from __future__ import annotations

import json
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.options import validate
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._rollout import prometheus
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._rollout.metrics import Place

PLACES = [Place("web-1", "10.0.0.1"), Place("web-2", "10.0.0.2"), Place("web-3", "10.0.0.3")]
QUERY = 'rate(requests{instance=~"{address}:.*"}[1m])'
SERIES = [
    {"metric": {"instance": "10.0.0.1:9100"}, "values": [[100, "10"], [115, "20"], [130, "NaN"]]},
    {"metric": {"instance": "web-2"}, "values": [[100, "5"]]},
    {"metric": {"instance": "10.0.0.9:9100"}, "values": [[100, "7"]]},
]


class Server(HTTPServer):
    """What was asked, and what is answered."""

    asked: List[Dict[str, List[str]]]
    series: List[Any] = SERIES
    allowed = ""
    code = 200


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.asked.append(urllib.parse.parse_qs(data))
        refused = self.server.allowed and self.headers.get("Authorization") != self.server.allowed
        self.send_response(401 if refused else self.server.code)
        self.end_headers()
        content = {"status": "success", "data": {"resultType": "matrix", "result": self.server.series}}
        self.wfile.write(b"who are you?" if refused else json.dumps(content).encode())

    def log_message(self, *_words: Any) -> None:
        """Nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    """A server of its own port."""
    with Server(("127.0.0.1", 0), _Handler) as found:
        found.asked = []
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def ask(server: Server, places: List[Place], **options: Any) -> Any:
    """The values of these hosts."""
    url = f"http://127.0.0.1:{server.server_port}/"
    checked = validate("rollout.prometheus", prometheus.PROMETHEUS, {"url": url, **options})
    return prometheus.ask(checked, QUERY, places, 100.0, 160.0, 15.0)


def test_each_host_has_the_mean_of_its_series(server: Server) -> None:
    assert ask(server, PLACES) == {"web-1": 15.0, "web-2": 5.0}
    (asked,) = server.asked
    assert (asked["start"], asked["end"], asked["step"]) == (["100.0"], ["160.0"], ["15.0"])
    assert asked["query"][0].startswith(r'rate(requests{instance=~"(?:web\\-1|10\\.0\\.0\\.1|web\\-2|10')


def test_a_thousand_hosts_are_ten_queries(server: Server) -> None:
    ask(server, [Place(f"h{number}", f"h{number}") for number in range(1000)])
    assert len(server.asked) == 10


def test_secrets_are_read_from_files(server: Server, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hunter2\n")
    server.allowed = "Bearer hunter2"
    assert ask(server, PLACES, token_file=str(tmp_path / "secret"))["web-1"] == 15.0
    server.allowed = "Basic bWU6aHVudGVyMg=="
    assert ask(server, PLACES, user="me", password_file=str(tmp_path / "secret"))["web-1"] == 15.0


def test_a_server_that_refuses_or_is_down_is_said(server: Server) -> None:
    server.allowed = "Bearer other"
    with pytest.raises(NearmetalError, match="401 who are you"):
        ask(server, PLACES)
    checked = validate("rollout.prometheus", prometheus.PROMETHEUS, {"url": "http://127.0.0.1:1"})
    with pytest.raises(NearmetalError, match="Connection refused"):
        prometheus.ask(checked, QUERY, PLACES, 100.0, 160.0, 15.0)


def test_a_token_of_two_lines_is_refused_without_showing_it(server: Server, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("hunter2\nsecond\n")
    with pytest.raises(NearmetalError, match="more than one line") as refused:
        ask(server, PLACES, token_file=str(token))
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "series", ["up", {"metric": [], "values": []}, {"metric": {}, "values": [[1, "x"]]}, {"metric": {}, "values": [1]}]
)
def test_an_answer_of_something_else_is_said(series: Any, server: Server) -> None:
    server.series = [series]
    with pytest.raises(NearmetalError, match="/api/v1/query_range: "):
        ask(server, PLACES)


def test_what_is_no_number_moves_no_mean(server: Server) -> None:
    server.series = [{"metric": {"instance": "web-1"}, "values": [[1, "+Inf"], [2, "3"]]}]
    assert ask(server, PLACES) == {"web-1": 3.0}


def test_a_quotation_mark_in_a_name_ends_no_string_of_the_query(server: Server) -> None:
    ask(server, [Place('a"b', "10.0.0.1")])
    assert 'a\\"b' in server.asked[0]["query"][0]
