"""What one conversion holds: the options, the tools it has seen, and what is said of the body that is passing."""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET

from converter import gate, responses, settings, tools
from converter.kinds import Envelope
from converter.options import Options, Verb
from converter.outcome import Account

TARGET: Final[dict[str, Envelope]] = {"to-responses": "responses", "to-chat": "chat"}


class Conversion:
    """The options of one conversion, and what it remembers from record to record: only what saves time.

    Raises `ValueError` where the options' tools cannot be used.
    """

    def __init__(self, verb: Verb, options: Options) -> None:
        self.options = options
        self.target = TARGET[verb]
        self.toolbox = tools.Toolbox(verb, options)
        self.given = self.toolbox.given

    def gate(self, schemas: tools.Schemas, tool_choice: Any, account: Account, where: gate.Where) -> gate.Gate:
        """A gate for one body."""
        allowed = settings.names_of(tool_choice) if tool_choice is not UNSET else None
        return gate.Gate(schemas, allowed, self.options, account, where)

    def tools(self, body: Any, account: Account) -> tools.Tools:
        """The body's tools, converted, and what is to be said of them."""
        made = self.toolbox.of(body.tools)
        if (legacy := getattr(body, "functions", UNSET)) is not UNSET:
            made = tools.joined(made, self.toolbox.of(legacy, "functions"))
        for notice in made.notices:
            for path in notice.paths:
                account.notice(notice.code, path, notice.detail)
        for reason in made.reasons:
            account.refuse(reason.code, reason.path, reason.message)
        return made


class Beside:
    """What the request of a pair says of its response: the schemas of the tools, and the values that it echoes."""

    __slots__ = ("request", "schemas", "tool_choice")

    def __init__(self) -> None:
        self.schemas: tools.Schemas = {}
        self.tool_choice: Any = UNSET
        self.request: responses.Request | None = None


class Passage:
    """One body on its way: its text, what is said of it, the calls that were left out, the request beside it."""

    __slots__ = ("account", "beside", "left_out", "text")

    def __init__(self, text: bytes, account: Account, beside: Beside | None, left_out: set[str] | None = None) -> None:
        self.text = text
        self.account = account
        self.beside = beside
        self.left_out: set[str] = set() if left_out is None else left_out
