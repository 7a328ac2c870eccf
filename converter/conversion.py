"""What one conversion holds: the options, the tools it has seen, and what is said of the body that is passing."""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET, Struct

from converter import chat, gate, outline, responses, settings, settings_into_chat, settings_into_responses, tools
from converter.entry import Entered
from converter.kinds import Envelope
from converter.options import Options, Verb
from converter.outcome import Account
from converter.reading import kind, text_of
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

    def settings(self, body: Any) -> tuple[Tools, Settings]:
        """What the tools and settings of a request's outline become, found again where the same bytes come again."""
        made = self.toolbox.of(body.tools) if body.tools is not UNSET else self.toolbox.none
        key = outline.key(body)
        known: Settings | None = made.settings.get(key)
        return made, known or made.settings.keep(key, self._settings(body, made, key), len(key) + 512)

    def _settings(self, body: Any, made: Tools, key: bytes) -> Settings:
        utf8(key)
        said = Account(self.options.allow)
        source = outline.settings(body)
        instructions = source.pop("instructions", outline.NOTHING)
        allowed = settings.names_of(source["tool_choice"]) if "tool_choice" in source else None
        template: Any = self.converted(source, made, said, self.options)
        template.tools = made.written
        readable = instructions is outline.NOTHING or kind(instructions) in ("a string", "null")
        lead = text_of(instructions) if readable and instructions is not outline.NOTHING else None
        return Settings(
            template=template,
            lead=[] if lead is None else [chat.SystemMessage(lead)],
            said=said,
            spoken=bool(said.found or made.notices),
            usable=readable and made.certain and allowed is None and not said.reasons and not made.reasons,
        )


class Settings(Struct, gc=False, kw_only=True):
    """What the settings and tools of a request became: the target's request, whose history is still to come.

    It does not hold the tools, which hold it: no collector would see that circle.

    ``usable``: nothing has to be asked of them for each record, no reason for a refusal, no list of allowed tools.
    """

    template: Any
    lead: list[Any]
    said: Account
    spoken: bool
    usable: bool


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
