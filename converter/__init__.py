"""Offline converter between Chat Completions tool-call logs and Open Responses items.

`to_responses` and `to_chat` convert one record; `convert_lines` converts many and never raises; `replay_gate` judges
one item. All are pure functions: no input or output, no logging, and the record is never changed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from converter.convert import convert_lines, to_chat, to_responses
    from converter.gate import replay_gate
    from converter.options import Options
    from converter.outcome import Converted, Notice, Reason, Refused, Rejected, Verdict

__version__ = "0.1.0"
SPECIFICATION = "2026-04-24"
VERSIONS = f"converter {__version__} (Open Responses specification {SPECIFICATION})"

__all__ = [
    "SPECIFICATION",
    "Converted",
    "Notice",
    "Options",
    "Reason",
    "Refused",
    "Rejected",
    "Verdict",
    "convert_lines",
    "replay_gate",
    "to_chat",
    "to_responses",
]

_ROOMS = {
    **dict.fromkeys(("convert_lines", "to_chat", "to_responses"), "converter.convert"),
    **dict.fromkeys(("Converted", "Notice", "Reason", "Refused", "Rejected", "Verdict"), "converter.outcome"),
    "Options": "converter.options",
    "replay_gate": "converter.gate",
}


if not TYPE_CHECKING:  # a type checker shall see the names above, and no others

    def __getattr__(name: str) -> Any:
        # A room is entered when something of it is asked for: `converter --version` needs none of them.
        if name not in _ROOMS:
            raise AttributeError(f"module 'converter' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_ROOMS[name]), name)
        return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
