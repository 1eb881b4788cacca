"""Events of forges, in the shapes of their documentation; each is signed as its forge signs."""

from __future__ import annotations

import hashlib
import hmac
import json

import pytest

from fleet.domain.errors import Forbidden
from fleet.domain.forges.kinds import KINDS
from fleet.domain.forges.webhooks import Labelled, check, is_signed, labelled

SECRET, BODY = "s3cret", b'{"action": "labeled"}'
DIGEST = hmac.new(SECRET.encode(), BODY, hashlib.sha256).hexdigest()
HEADERS = {
    "github": {"x-hub-signature-256": f"sha256={DIGEST}"},
    "gitea": {"x-gitea-signature": DIGEST},
    "linear": {"linear-signature": DIGEST},
    "jira": {"x-hub-signature": f"sha256={DIGEST}"},
    "gitlab": {"x-gitlab-token": SECRET},
}
AT = 1_767_225_600.0  # 2026-01-01
WHEN = "2026-01-01T00:00:00Z"
ISSUE = {"html_url": "https://x/1", "updated_at": WHEN, "labels": [{"name": "fleet"}]}
EVENTS = {
    "github": {
        "action": "labeled", "issue": ISSUE, "label": {"name": "fleet"},
        "sender": {"login": "ada"}, "repository": {"full_name": "shop/web"},
    },
    "gitea": {"action": "label_updated", "issue": ISSUE, "sender": {"login": "ada"}},
    "gitlab": {
        "object_kind": "issue", "user": {"username": "ada"},
        "object_attributes": {"url": "https://x/1", "updated_at": "2026-01-01 00:00:00 UTC",
                              "action": "update"},
        "changes": {"labels": {"previous": [{"title": "ui"}],
                               "current": [{"title": "ui"}, {"title": "fleet"}]}},
    },
    "linear": {
        "action": "update", "type": "Issue", "url": "https://x/1", "webhookTimestamp": AT * 1000,
        "actor": {"name": "Ada", "email": "ada"}, "updatedFrom": {"labelIds": []},
        "data": {"labels": [{"name": "fleet"}]},
    },
    "jira": {
        "webhookEvent": "jira:issue_updated", "timestamp": AT * 1000,
        "user": {"displayName": "ada"},
        "issue": {"key": "ENG-1", "self": "https://x/rest/api/2/issue/1"},
        "changelog": {"items": [{"field": "labels", "fromString": "ui", "toString": "ui fleet"}]},
    },
}  # fmt: skip


@pytest.mark.parametrize("forge", KINDS)
def test_only_who_knows_the_secret_signs(forge):
    assert is_signed(forge, SECRET, HEADERS[forge], BODY)
    assert not is_signed(forge, "another", HEADERS[forge], BODY)
    assert not is_signed(forge, SECRET, {}, BODY)
    assert not is_signed(forge, "", HEADERS[forge], BODY)
    if forge != "gitlab":
        assert not is_signed(forge, SECRET, HEADERS[forge], BODY + b" ")


@pytest.mark.parametrize("forge", KINDS)
def test_a_ticket_that_was_labelled_is_read(forge):
    event = labelled(forge, json.loads(json.dumps(EVENTS[forge])))
    assert event is not None
    assert event.url == ("https://x/browse/ENG-1" if forge == "jira" else "https://x/1")
    assert event.labels == ("fleet",)
    assert "ada" in event.who
    assert event.at == AT


@pytest.mark.parametrize("forge", KINDS)
@pytest.mark.parametrize("payload", [{}, [], None, 7, {"action": "opened"}, {"action": "labeled"}])
def test_anything_else_is_passed_over(forge, payload):
    assert labelled(forge, payload) is None


EVENT = Labelled("https://x/1", ("fleet",), ("Ada",), AT)


def test_who_and_which_label_are_allowed_by_name():
    assert check(EVENT, people=["ada"], label="fleet", now=AT + 60)
    assert not check(EVENT, people=["ada"], label="other", now=AT)
    for people in ([], ["bob"], [""]):
        with pytest.raises(Forbidden) as caught:
            check(EVENT, people=people, label="fleet", now=AT)
        assert caught.value.code == "not_allowed"


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (AT + 13 * 3600, "older than 12 hours"),
        (AT - 13 * 3600, "ahead of this server's clock"),
        (float("nan"), "older than 12 hours"),
    ],
)
def test_an_event_of_another_day_is_refused(now, words):
    with pytest.raises(Forbidden, match=words) as caught:
        check(EVENT, people=["ada"], label="fleet", now=now)
    assert caught.value.code == "stale_hook"
