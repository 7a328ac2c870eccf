"""What one conversion holds: the options, the tools it has seen, and what is said of the body that is passing."""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET, Struct

from converter import gate, plain, responses, settings, settings_into_chat, settings_into_responses, tools
from converter.arguments import Memo
from converter.entry import Entered
from converter.kinds import Envelope
from converter.options import Options, Verb
from converter.outcome import Account
from converter.schemas import SCHEMA_BYTES
from converter.text import utf8
from converter.tools import Schemas, Tools

_SETTINGS: Final = {"to-responses": settings_into_responses.request, "to-chat": settings_into_chat.request}
TARGET: Final[dict[str, Envelope]] = {"to-responses": "responses", "to-chat": "chat"}


class Conversion:
    """The options of one conversion, and what it remembers from record to record: only what saves time.

    Raises `ValueError` where the options' tools cannot be used.
    """

    def __init__(self, verb: Verb, options: Options) -> None:
        self.options = options
        self.target = TARGET[verb]
        self.converted = _SETTINGS[verb]
        self.toolbox = tools.Toolbox(verb, options)
        self.given = self.toolbox.given
        self.remembered: Memo[bytes, Settings] = Memo(SCHEMA_BYTES)
        self.mark: str | None = None  # stands in a text for a lone surrogate, while such a record is converted

    def gate(self, schemas: Schemas, tool_choice: Any, account: Account, where: gate.Where) -> gate.Gate:
        """A gate for one body."""
        allowed = settings.names_of(tool_choice) if tool_choice is not UNSET else None
        made = gate.Gate(schemas, allowed, self.options, account, where)
        if self.mark is not None:
            made.stand_in = self.mark
        return made

    def tools(self, body: Any, account: Account) -> Tools:
        """The body's tools, converted, and what is to be said of them."""
        made = self.toolbox.of(body.tools)
        if (legacy := getattr(body, "functions", UNSET)) is not UNSET:
            made = tools.joined(made, self.toolbox.of(legacy, "functions"))
        self.say(made, account)
        return made

    def say(self, made: Tools, account: Account) -> None:
        """Say here what was said of these tools when they were converted."""
        for notice in made.notices:
            for path in notice.paths:
                account.notice(notice.code, path, notice.detail)
        for reason in made.reasons:
            account.refuse(reason.code, reason.path, reason.message)

    def settings(self, body: plain.Request | plain.ResponsesRequest, made: Tools, account: Account) -> Any:
        """A target's request with the settings of a plain one: found again where the same bytes come again."""
        key = plain.settings_key(body)
        found = self.remembered.get(key)
        if found is None or found.tools is not made:
            utf8(key)
            said = Account()
            found = Settings(made, self.converted(plain.settings_of(body), made, said, self.options), said)
            self.remembered.keep(key, found, BESIDE)
        if found.said.found or found.said.reasons:
            account.join(found.said)
        return found.template.__copy__()


class Settings(Struct, gc=False):
    """What the settings of a request became: the target's request with nothing else in it, and what was said."""

    tools: Any
    template: Any
    said: Account


BESIDE: Final = 16 << 10
"""What settings take beside their text: no more than about a thousand are remembered."""


class Beside:
    """What the request of a pair says of its response: the schemas of the tools, and the values that it echoes."""

    __slots__ = ("request", "schemas", "tool_choice")

    def __init__(self) -> None:
        self.schemas: Schemas = {}
        self.tool_choice: Any = UNSET
        self.request: responses.Request | None = None


class Passage:
    """One body on its way: its text, what is said of it, the request beside it, and how it came in."""

    __slots__ = ("account", "beside", "entered", "left_out", "text")

    def __init__(self, text: bytes, account: Account, beside: Beside | None, entered: Entered) -> None:
        self.text = text
        self.account = account
        self.beside = beside
        self.entered = entered
        self.left_out = set(entered.left_out)
