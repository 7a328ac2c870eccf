"""``--verify``: read back what is about to be written, convert it back, and compare it with the source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from converter.kinds import KINDS, Kind
from converter.normal import apart, calls, normal, parsed, pruned
from converter.options import Options, Verb
from converter.outcome import ALLOWABLE, Account, Refused

Convert = Callable[[bytes], bytes]

BACK: Final[dict[str, Verb]] = {"to-responses": "to-chat", "to-chat": "to-responses"}
COUNTERPART: Final = {
    "chat-request": "responses-request",
    "message-list": "item-list",
    "completion": "response",
    "responses-request": "chat-request",
    "item-list": "message-list",
    "response": "completion",
}
ONE_WAY: Final = frozenset({"moved", "joined", "repaired", "allowed", "odd", "filled"})
"""Notices after which the way back cannot give the source again: then calls are compared, and nothing else."""


def options_back(options: Options) -> Options:
    """How to convert back: keeping what was kept, refusing nothing that was allowed, in the richest dialect."""
    return Options(allow=ALLOWABLE, reasoning="drop" if options.reasoning == "drop" else "keep", target="openai")


def hold(kind: Kind, text: bytes, written: bytes, account: Account, options: Options, back: Convert) -> None:
    """Refuse (``verify``) a body whose written form is not strictly valid, or does not lead back to its source."""
    try:
        KINDS[COUNTERPART[kind.name]].decode(written)
        returned = back(written)
    except (msgspec.DecodeError, Refused) as error:
        if isinstance(error, Refused) and {reason.code for reason in error.reasons} == {"limit"}:
            return  # an empty conversation, say: legal here, and not over there
        sentence = str(error) if isinstance(error, Refused) else "the strict structs do not read it"
        account.refuse("verify", "", f"what would be written does not lead back: {sentence}")
        return
    source, result = parsed(text), parsed(returned)
    legacy = account.found.keys() & ONE_WAY or account.layers
    if legacy:
        if not {"repaired", "allowed", "filled"} & account.found.keys() and calls(source) != calls(result):
            account.refuse("verify", "", "the calls that would be written are not those of the source")
        return
    lost = [path[len(account.base) :] for code in ("dropped", "echo") for path in account.found.get(code, {})]
    wanted = normal(pruned(source, lost))
    answer = kind.name in ("completion", "response")
    found = apart(wanted, normal(result), answer=answer)
    if found is not None:
        account.refuse("verify", found, "what would be written does not lead back to this value of the source")
