"""All kinds of forges, and of trackers, which have only tickets: one row for each kind.

To add a kind, add a row here and a module `fleet.adapters.forges.KIND` with `Client` and `headers`;
if the forge sends events, also a reader in `webhooks`.
"""

from __future__ import annotations

from fleet.domain.data import NamedTuple

ISSUE = r"/(?P<path>.+?)(?:/-)?/(?:issues|work_items)/(?P<name>\d{1,9})/?"


class Signature(NamedTuple):
    """How an event proves its sender: a header with `before` and the HMAC digest of the body."""

    header: str
    before: str = ""
    is_secret: bool = False  # the header has the secret itself


class ForgeKind(NamedTuple):
    title: str  # its name for people, with those of others that have the same API
    signature: Signature
    hosts: tuple[str, ...] = ()  # its public hosts; with a leading dot: all hosts below that domain
    api: str = ""  # the path of its API on a host
    public_api: str = ""  # the address of the API of the first of `hosts`, if it is another host
    has_code: bool = True  # False: a tracker
    ticket: str = ISSUE  # the path of a ticket's page
    token: str = "FLEET_FORGE_TOKEN"  # noqa: S105  # the name of a variable
    token_form: str = ""  # what the variable holds, if that is more than a token
    token_command: tuple[str, ...] = ()  # prints the token; the host is appended
    login: str = ""  # the command that logs that program in


KINDS = {
    "github": ForgeKind(
        "GitHub",
        Signature("x-hub-signature-256", before="sha256="),
        hosts=("github.com",),
        api="/api/v3",
        public_api="https://api.github.com",
        token_command=("gh", "auth", "token", "--hostname"),
        login="gh auth login",
    ),
    "gitlab": ForgeKind(
        "GitLab",
        Signature("x-gitlab-token", is_secret=True),
        hosts=("gitlab.com",),
        api="/api/v4",
        token_command=("glab", "config", "get", "token", "--host"),
        login="glab auth login",
    ),
    "gitea": ForgeKind(
        "Gitea, Forgejo",
        Signature("x-gitea-signature"),
        hosts=("codeberg.org", "gitea.com"),
        api="/api/v1",
    ),
    "linear": ForgeKind(
        "Linear",
        Signature("linear-signature"),
        hosts=("linear.app",),
        public_api="https://api.linear.app",
        has_code=False,
        ticket=r"(?:/[^/]+)?/issue/(?P<name>[A-Za-z0-9]+-\d{1,9})(?:/[^/]*)?/?",
        token="FLEET_LINEAR_TOKEN",  # noqa: S106  # the name of a variable
    ),
    "jira": ForgeKind(
        "Jira",
        Signature("x-hub-signature", before="sha256="),
        hosts=(".atlassian.net",),
        has_code=False,
        ticket=r"/browse/(?P<name>[A-Za-z][A-Za-z0-9_]*-\d{1,9})/?",
        token="FLEET_JIRA_TOKEN",  # noqa: S106  # the name of a variable
        token_form="for Jira Cloud it is EMAIL:TOKEN",  # noqa: S106  # a form
    ),
}
FORGES = tuple(kind for kind, row in KINDS.items() if row.has_code)
TRACKERS = tuple(kind for kind, row in KINDS.items() if not row.has_code)
TOKENS = tuple(dict.fromkeys(row.token for row in KINDS.values()))
*_FIRST, _LAST = ", ".join(row.title for row in KINDS.values()).split(", ")
TITLES = f"{', '.join(_FIRST)} or {_LAST}"
