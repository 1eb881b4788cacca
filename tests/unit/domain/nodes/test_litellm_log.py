from __future__ import annotations

import json

import pytest

from fleet.domain.nodes.litellm_log import display_text, read


@pytest.mark.parametrize(
    ("line", "grave"),
    [
        ('INFO:     127.0.0.1:5 - "POST /v1/messages HTTP/1.1" 200 OK', "good"),
        ('INFO:     127.0.0.1:5 - "POST /v1/messages HTTP/1.1" 404 Not Found', "warning"),
        ('INFO:     127.0.0.1:5 - "POST /v1/messages HTTP/1.1" 500 Error', "error"),
        ("14:57:19 - LiteLLM Proxy:ERROR: proxy_server.py:1 - it broke", "error"),
        ("14:57:19 - LiteLLM Router:WARNING: router.py:1 - slow", "warning"),
        ("14:57:19 - LiteLLM:DEBUG: utils.py:1 - detail", "quiet"),
        ("CRITICAL: gone", "error"),
        ("an ERROR in the middle of words", "plain"),
        ('{"message": "ok", "level": "warning"}', "warning"),
        ('{"message": "no level"}', "plain"),
        ('{"no": "message"}', "plain"),
        ("[/v1/chat] [bold]", "plain"),
        ("", "plain"),
    ],
)
def test_how_grave_a_line_is(line, grave):
    assert read(line).grave == grave


def test_a_json_line_is_shown_with_its_time_level_words_and_traceback():
    line = {"message": "It broke.", "level": "ERROR", "timestamp": "2026-11-15T14:57:19.7"}
    assert display_text(read(json.dumps(line))) == "14:57:19 ERROR It broke."
    more = line | {"stacktrace": "Traceback:\n  here"}
    assert display_text(read(json.dumps(more))).splitlines()[1:] == ["    Traceback:", "      here"]


@pytest.mark.parametrize(
    "markup", ["\x1b[1;31m", "\x1b[0m", "\x1b[2J", "\x1b]0;title\x07", "\x1b]8;;x\x1b\\", "\x1bM"]
)
def test_what_a_terminal_would_obey_is_left_out(markup):
    assert read(f"a{markup}b").text == "ab"
    assert read(json.dumps({"message": f"a{markup}b"})).text == "ab"
