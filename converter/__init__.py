"""Offline converter between Chat Completions tool-call logs and Open Responses items.

`to_responses` and `to_chat` convert one record; `convert_lines` converts many and never raises; `replay_gate` judges
one item. All are pure functions: no input or output, no logging, and the record is never changed.
"""

from converter.convert import convert_lines, to_chat, to_responses
from converter.gate import replay_gate
from converter.options import Options
from converter.outcome import Converted, Notice, Reason, Refused, Rejected, Verdict

__version__ = "0.1.0"
SPECIFICATION = "2026-04-24"

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
