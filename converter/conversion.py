"""What one conversion holds: the options, the tools it has seen, and what is said of the body that is passing."""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET, Raw, Struct

from converter import chat, gate, outline, responses, settings, settings_into_chat, settings_into_responses, tools
from converter.entry import Entered
from converter.kinds import Envelope
from converter.options import Options, Verb
from converter.outcome import Account, Notice
from converter.reading import encode, kind, text_of
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
        self.last: tuple[bytes, Any, Settings] = (b"", (), self.bare())
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
            account.repeat(notice)
        for reason in made.reasons:
            account.refuse(reason.code, reason.path, reason.message)

    def settings(self, body: Any) -> Settings:
        """What the tools and settings of a request's outline become, found again where the same bytes come again."""
        names, stand = body.__class__.names, outline.stand(body)
        if names is self.last[0] and stand == self.last[1]:
            return self.last[2]  # most often the next record has the same ones, which costs no hash to see
        made = self.toolbox.of(body.tools)
        key = outline.key(names, stand)
        known: Settings | None = made.settings.get(key)
        found = known or made.settings.keep(key, self._settings(body, made, key), len(key) + 1024)
        self.last = (names, stand, found)
        return found

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
        around = split(template, HISTORY[self.target])
        head, tail = around or (b"", b"")
        if lead is not None:
            head += encode(chat.SystemMessage(lead)) + b","
        return Settings(
            head=head,
            tail=tail,
            schemas=made.schemas,
            tools=made.serial,
            of_tools=made.notices,
            said=said,
            spoken=bool(said.found or made.notices),
            usable=bool(around)
            and readable
            and made.certain
            and allowed is None
            and not said.reasons
            and not made.reasons,
        )

    def bare(self) -> Settings:
        """What stands for settings where a body is a list alone."""
        said = Account(self.options.allow)
        return Settings(
            head=b"[",
            tail=b"]",
            frame=2,
            schemas=self.given,
            tools=self.toolbox.none.serial,
            of_tools=[],
            said=said,
            spoken=False,
            usable=True,
        )


class Settings(Struct, gc=False, kw_only=True):
    """What the settings and tools of a request became: the target's request before and behind its history.

    It does not hold the tools, which hold it: no collector would see that circle. ``tools`` is their serial number.

    ``frame`` is how many bytes of the source stand around its history at least, -1 while nobody asked. ``usable``:
    nothing has to be asked of them for each record, no reason for a refusal, no list of allowed tools.
    """

    head: bytes
    tail: bytes
    frame: int = -1
    schemas: Schemas
    tools: int
    of_tools: list[Notice]
    said: Account
    spoken: bool
    usable: bool

    def frame_of(self, body: Any) -> int:
        """The frame of a request's outline that has these settings."""
        if self.frame < 0:
            self.frame = outline.frame(body)
        return self.frame

    def say(self, account: Account) -> None:
        """Say what was said of the tools, and of the settings."""
        for notice in self.of_tools:
            account.repeat(notice)
        if self.said.found:
            account.join(self.said)


HISTORY: Final = {"responses": "input", "chat": "messages"}
"""The list of a request that holds its history, by the envelope."""


HOLE: Final = Raw(b'"\\u0000hole\\u0000"')
"""Stands where a history will stand. A log may hold anything, this too."""


def split(value: Any, name: str) -> tuple[bytes, bytes] | None:
    """The JSON text of a struct, before and behind the elements of the list of this name.

    None where its place is not to be told.
    """
    setattr(value, name, [HOLE])
    text = encode(value)
    head, _, tail = text.partition(HOLE)
    return (head, tail) if text.count(HOLE) == 1 else None


class Beside:
    """What the request of a pair says of its response: the schemas of the tools, and the values that it echoes.

    ``item_ids`` are those of its items, which no item of the response may have.
    """

    __slots__ = ("item_ids", "request", "schemas", "tool_choice")

    def __init__(self) -> None:
        self.schemas: Schemas = {}
        self.tool_choice: Any = UNSET
        self.request: responses.Request | None = None
        self.item_ids: set[str] = set()

    def remember(self, items: Any) -> None:
        """The ids of the items of the request."""
        for item in items if isinstance(items, list) else ():
            if isinstance(made := getattr(item, "id", None), str):
                self.item_ids.add(made)


class Passage:
    """One body on its way: its text, what is said of it, the request beside it, and how it came in."""

    __slots__ = ("account", "beside", "entered", "left_out", "text")

    def __init__(self, text: bytes, account: Account, beside: Beside | None, entered: Entered) -> None:
        self.text = text
        self.account = account
        self.beside = beside
        self.entered = entered
        self.left_out = set(entered.left_out)
