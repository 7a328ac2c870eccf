"""Formats that look alike and are neither of the two envelopes: known by their keys, to be refused by name.

Each row is a name, as it stands in the refusal, and what tells the format. A name says in brackets what can be done.
None of them takes what a strict decoder of either envelope takes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Raw

from converter.habits import ANTHROPIC_PARTS
from converter.reading import Members, elements_of, kind, members_of, says_nothing, text_of
from converter.sources import SIGNS, SOURCES, UNREADABLE, object_of
from converter.text import shown

Tell = Callable[[Members], bool]


def holds(members: Members, key: str, *kinds: str) -> bool:
    """Whether a member is there, and is of one of these kinds."""
    return key in members and kind(members[key]) in kinds


def name_of(members: Members) -> str | None:
    """The name of the foreign format that an object is of, or None."""
    if not SIGNS.isdisjoint(members) and (name := _source(members)) is not None:
        return name
    for name, fits in OBJECTS:
        if fits(members):
            return name
    return _resource(members) or _together(members)


def _source(members: Members) -> str | None:
    for name, source in SOURCES.items():
        if source.tell is not None and source.tell(members):
            return f"{source.label} (--from {name} reads it)"
    for refused in UNREADABLE.values():
        if refused.tell is not None and refused.tell(members):
            return f"{refused.label} ({refused.why})"
    return None


def name_of_elements(objects: list[Members]) -> str | None:
    """The name of the foreign format of the objects in an array, or None."""
    for name, fits in ELEMENTS:
        if any(fits(one) for one in objects):
            return name
    return None


def name_of_frames(frames: list[Raw]) -> str | None:
    """The name of the foreign stream that these frames spell, or None."""
    for frame in frames[:4]:
        members = object_of(frame)
        for name, fits in FRAMES:
            if fits(members):
                return name
    return None


def _first(members: Members, key: str) -> Members:
    return object_of(next(iter(_elements(members, key)), None))


def _elements(members: Members, key: str) -> list[Raw]:
    return elements_of(members[key]) if holds(members, key, "an array") else []


def _word(members: Members, key: str) -> str:
    return text_of(members.get(key)) or ""


# ---------------------------------------------------------------- answers of any API, and what is around a body


def _error(members: Members) -> bool:
    """``{"error": …}``, or nothing but a message or a detail and their codes."""
    if holds(members, "error", "an object", "a string"):
        return not {"output", "choices", "messages", "input"} & members.keys()
    said = holds(members, "message", "a string") or "detail" in members
    return said and members.keys() <= ERROR_KEYS


ERROR_KEYS: Final = frozenset(
    [
        "message",
        "detail",
        "code",
        "type",
        "id",
        "object",
        "param",
        "status",
        "status_code",
        "raw_status_code",
        "request_id",
        "title",
    ]
)


def _http_message(members: Members) -> bool:
    return "body" in members and bool({"headers", "method", "uri", "status"} & members.keys())


def _list_page(members: Members) -> bool:
    return text_of(members.get("object")) in ("list", "page") and holds(members, "data", "an array")


def _item_page(members: Members) -> bool:
    return _list_page(members) and ("type" in (first := _first(members, "data")) or "role" in first)


def _items_alone(members: Members) -> bool:
    return holds(members, "items", "an array") and "type" in _first(members, "items")


def _single(members: Members) -> bool:
    """One message or one item: what a list holds."""
    if {"messages", "input", "choices", "output"} & members.keys() and "call_id" not in members:
        return False
    return ("role" in members and "content" in members) or _word(members, "type") in SINGLE


SINGLE: Final = frozenset({"message", "reasoning", "function_call", "function_call_output", "item_reference"})


def _log_line(members: Members) -> bool:
    return {"timestamp", "type", "payload"} <= members.keys()


def _event(members: Members) -> bool:
    return _word(members, "type").startswith("response.")


def is_chunk(members: Members) -> bool:
    """Perplexity has a delta beside the message of a whole answer; Helicone lets an answer call itself a chunk."""
    first = _first(members, "choices")
    return "message" not in first and ("delta" in first or _word(members, "object") == "chat.completion.chunk")


def _resource(members: Members) -> str | None:
    """``object`` says what it is, and it is no completion and no response."""
    name = _word(members, "object")
    if not name or name.startswith("chat.completion") or name == "response":
        return None
    if {"choices", "output", "messages", "input"} & members.keys():
        return None
    return f"an API resource of type {shown(name)}"


# ---------------------------------------------------------------- a conversation beside its answer


CONVERSATIONS: Final = ("messages", "input", "prompt", "instruction", "prompt_messages", "inputs")
HISTORIES: Final = ("messages", "input")
ANSWERS: Final = (
    "response",
    "responses",
    "output",
    "outputs",
    "answer",
    "completion",
    "completions",
    "choices",
    "generation",
    "generations",
    "reply",
    "chunks",
    "events",
    "sse",
)


def _together(members: Members) -> str | None:
    """Reading the one as the whole would leave out the other."""
    answers = _word(members, "object") in ("chat.completion", "response")
    # An answer that says so may repeat a prompt that it was asked with; a whole conversation is more than that.
    asked = next((key for key in (HISTORIES if answers else CONVERSATIONS) if speaks(members, key)), None)
    said = next((key for key in ANSWERS if speaks(members, key)), None)
    if asked is None or said is None or (asked, said) == ("prompt", "choices"):
        return None
    if said == "choices":  # the record is that answer, and no pointer leads to it alone
        return f"a conversation beside its answer (--at /{asked} converts the conversation alone)"
    return (
        f"a conversation beside its answer (--request-at /{asked} --response-at /{said} converts both, --at /{asked} "
        "the one alone)"
    )


def speaks(members: Members, key: str) -> bool:
    """Whether a member is there, and holds something that can be said."""
    return key in members and kind(members[key]) in _SPOKEN and not says_nothing(members[key])


_SPOKEN: Final = ("a string", "an array", "an object")


# ---------------------------------------------------------------- Anthropic, Amazon Bedrock


def _parts(members: Members, mark: re.Pattern[bytes]) -> list[Members]:
    """The content parts of all messages, where a mark shows that it is worth looking at them."""
    if not mark.search(members["messages"]):
        return []
    contents = [_elements(object_of(message), "content") for message in _elements(members, "messages")]
    return [object_of(part) for content in contents for part in content]


def _anthropic_request(members: Members) -> bool:
    if "messages" not in members:
        return False
    if {"anthropic_version", "anthropic_beta", "stop_sequences", "system"} & members.keys():
        return True
    if "input_schema" in _first(members, "tools"):
        return True
    return any(_anthropic_part(part) for part in _parts(members, ANTHROPIC_MARK))


def _anthropic_part(part: Members) -> bool:
    name = _word(part, "type")
    return name in ANTHROPIC_PARTS - {"thinking"} or (name in ("image", "document") and "source" in part)


def _anthropic_response(members: Members) -> bool:
    answered = {"stop_reason", "stop_sequence"} & members.keys()
    return _word(members, "type") == "message" and holds(members, "content", "an array") and bool(answered)


def _anthropic_batch(members: Members) -> bool:
    result = object_of(members.get("result")) if "custom_id" in members else members
    name = _word(result, "type")
    return name in ("succeeded", "errored", "canceled", "expired") and ("message" in result or "custom_id" in members)


ANTHROPIC_MARK: Final = re.compile(rb'"(?:tool_use|tool_result|redacted_thinking|server_tool_use|source)"')
CONVERSE_MARK: Final = re.compile(rb'[\[,]\s*\{\s*"(?:text|image|document|video|[a-z]+[A-Z][A-Za-z]+)"\s*:')
CONVERSE_PARTS: Final = frozenset(
    ["text", "image", "document", "video", "toolUse", "toolResult", "guardContent", "reasoningContent"]
)


def _converse_request(members: Members) -> bool:
    if "messages" not in members:
        return False
    if {"inferenceConfig", "toolConfig", "guardrailConfig", "additionalModelRequestFields"} & members.keys():
        return True
    return any(part and "type" not in part and part.keys() <= CONVERSE_PARTS for part in _parts(members, CONVERSE_MARK))


def _invoke_request(members: Members) -> bool:
    return "inputText" in members or ("prompt" in members and bool(_INVOKE & members.keys()))


_INVOKE: Final = frozenset({"max_gen_len", "max_tokens_to_sample", "maxTokens", "topP"})


def _invoke_response(members: Members) -> bool:
    return (
        "inputTextTokenCount" in members
        or {"generation", "stop_reason"} <= members.keys()
        or ("stop_reason" in members and holds(members, "completion", "a string"))
        or ("text" in (first := _first(members, "outputs")) and "stop_reason" in first)
    )


# ---------------------------------------------------------------- Gemini, Cohere, Ollama


def _gemini_interactions(members: Members) -> bool:
    if "input" not in members:
        return False
    if {"system_instruction", "generation_config"} & members.keys():
        return True
    return any(_word(object_of(one), "type") in INTERACTION_TYPES for one in _elements(members, "input"))


INTERACTION_TYPES: Final = frozenset({"user_input", "model_output", "text", "thought", "function_result"})


def _cohere_request(members: Members) -> bool:
    if {"message", "chat_history"} <= members.keys():
        return True
    if "messages" not in members:
        return False
    if holds(members, "documents", "an array") or {"safety_mode", "citation_options", "chat_history"} & members.keys():
        return True
    planned = b'"tool_plan"' in bytes(members["messages"])
    return planned and any("tool_plan" in object_of(message) for message in _elements(members, "messages"))


def _cohere_response(members: Members) -> bool:
    if {"generation_id", "text"} <= members.keys():
        return True
    return "finish_reason" in members and holds(members, "message", "an object") and "choices" not in members


def _ollama_response(members: Members) -> bool:
    return {"done", "message"} <= members.keys() or {"done", "response"} <= members.keys()


def _ollama_lines(members: Members) -> bool:
    """NDJSON, kept as one string."""
    text = _word(members, "ndjson").split("\n", 1)[0]
    try:
        return bool(text) and _ollama_response(members_of(text))
    except msgspec.DecodeError:
        return False


# ---------------------------------------------------------------- OpenAI's other APIs


def _legacy_request(members: Members) -> bool:
    """Together repeats an empty ``prompt`` in its chat answers."""
    return holds(members, "prompt", "a string", "an array") and not {"messages", "input", *ANSWERS} & members.keys()


def _prompt_row(members: Members) -> bool:
    if not holds(members, "prompt", "a string") or {"choices", "object"} & members.keys():
        return False
    return any(holds(members, key, "a string") for key in ANSWERS)


def _embeddings_request(members: Members) -> bool:
    if "input" not in members:
        return False
    inputs = _elements(members, "input")
    plain = bool(inputs) and all(kind(one) in ("a string", "a number", "an array") for one in inputs)
    return plain or bool({"encoding_format", "dimensions", "input_type"} & members.keys())


def _embeddings_answer(members: Members) -> bool:
    return _list_page(members) and _word(_first(members, "data"), "object") == "embedding"


def _assistants_request(members: Members) -> bool:
    if "assistant_id" in members:
        return "object" not in members
    said = {"messages", "input", "choices", "output", "prompt", "previous_response_id", "conversation"} & members.keys()
    return "model" in members and "object" not in members and not said and bool({"name", "tools"} & members.keys())


def _batch_job(members: Members) -> bool:
    return {"input_file_id", "completion_window"} <= members.keys()


# ---------------------------------------------------------------- rows of data sets, traces


def _langchain(members: Members) -> bool:
    messages = bytes(members.get("messages", Raw(b"")))[:32].replace(b" ", b"")
    return messages.startswith((b'[{"lc":', b'[[{"lc":'))


def _preference(members: Members) -> bool:
    keys = members.keys()
    return (
        {"chosen", "rejected"} <= keys or {"chosen_messages", "rejected_messages"} <= keys or "preferred_output" in keys
    )


def _alpaca(members: Members) -> bool:
    return {"instruction", "output"} <= members.keys()


def _crewai(members: Members) -> bool:
    event = _first(members, "events")
    return "execution_type" in members or "final_event_count" in members or {"event_data", "event_id"} <= event.keys()


OBJECTS: Final[tuple[tuple[str, Tell], ...]] = (
    ("an API error body", _error),
    (f"{UNREADABLE['langchain'].label} ({UNREADABLE['langchain'].why})", _langchain),
    ("a batch result of Anthropic", _anthropic_batch),
    ("an HTTP answer around a body (--at /body converts it)", lambda m: {"status_code", "body"} <= m.keys()),
    ("an HTTP message around a body (--at, --request-at and --response-at say where it stands)", _http_message),
    ("one line of a session log (the lines of one file are one record; --from session-log reads them)", _log_line),
    ("one chunk of a stream (a file whose first line is one is read as its streams)", is_chunk),
    ("one event of a stream (a file whose first line is one is read as its streams)", _event),
    ("a Bedrock Converse request", _converse_request),
    ("a Bedrock Converse response", lambda m: holds(m, "output", "an object") and "stopReason" in m),
    ("a Bedrock Invoke request", _invoke_request),
    ("a Bedrock Invoke response", _invoke_response),
    ("a Cohere request", _cohere_request),
    ("a Cohere response", _cohere_response),
    ("an Anthropic Messages request", _anthropic_request),
    ("an Anthropic Messages response", _anthropic_response),
    ("a Gemini request", lambda m: holds(m, "contents", "an array", "an object")),
    ("a Gemini response", lambda m: holds(m, "candidates", "an array")),
    ("a Gemini Interactions request", _gemini_interactions),
    ("an Ollama request", lambda m: "messages" in m and bool({"options", "keep_alive"} & m.keys())),
    ("an Ollama generate request", lambda m: "prompt" in m and bool({"options", "keep_alive"} & m.keys())),
    ("an Ollama response", _ollama_response),
    ("an Ollama stream", _ollama_lines),
    ("a ShareGPT row", lambda m: holds(m, "conversations", "an array")),
    ("a preference row", _preference),
    ("an instruction row (instruction, input, output)", _alpaca),
    ("a row of a prompt and its answer", _prompt_row),
    ("a row of a text and its label", lambda m: {"text", "label"} <= m.keys()),
    ("a legacy completions request", _legacy_request),
    ("a legacy completions answer", lambda m: _word(m, "object") == "text_completion"),
    ("an embeddings request", _embeddings_request),
    ("an embeddings answer", _embeddings_answer),
    ("a speech request", lambda m: "voice" in m and "input" in m),
    ("a trace of MLflow (--from mlflow reads it)", lambda m: "spans" in object_of(m.get("data"))),
    ("a HAR file (its entries are one record each)", lambda m: "entries" in object_of(m.get("log"))),
    ("a VCR cassette (its interactions are one record each)", lambda m: holds(m, "interactions", "an array")),
    ("an Agents SDK run state", lambda m: {"$schemaVersion", "current_agent"} <= m.keys()),
    ("a trace of CrewAI", _crewai),
    ("a batch state file", lambda m: {"stage", "batch", "results"} <= m.keys()),
    ("a batch job", _batch_job),
    ("an Assistants request", _assistants_request),
    ("a page of items (--at /data converts them)", _item_page),
    ("a list of items under a key (--at /items converts it)", _items_alone),
    ("a page of a list (one record each: its elements)", _list_page),
    ("a single message or item, expected a list of them", _single),
)
"""Objects, in the order in which they are looked at."""

ELEMENTS: Final[tuple[tuple[str, Tell], ...]] = (
    ("a list of ShareGPT turns", lambda m: {"from", "value"} <= m.keys() and "role" not in m),
    ("a list of Gemini contents", lambda m: holds(m, "parts", "an array") and "content" not in m),
    ("a list of LangChain messages", lambda m: {"lc", "kwargs"} <= m.keys()),
    ("a list of OpenTelemetry messages", lambda m: "role" in m and holds(m, "parts", "an array")),
    ("a session log without items (no line of type response_item)", _log_line),
)
"""Objects inside an array."""

FRAMES: Final[tuple[tuple[str, Tell], ...]] = (
    ("a stream of Anthropic Messages", lambda m: _word(m, "type") in ("message_start", "content_block_start")),
    ("a stream of Gemini", lambda m: holds(m, "candidates", "an array")),
    ("a stream of Ollama", _ollama_response),
    ("a stream of Bedrock Converse", lambda m: bool({"messageStart", "contentBlockDelta"} & m.keys())),
    ("a stream of Cohere", lambda m: _word(m, "type") in ("message-start", "content-delta")),
    ("a trace of CrewAI", lambda m: {"event_data", "event_id"} <= m.keys()),
    ("an OpenTelemetry span", lambda m: "attributes" in m and "name" in m),
)
"""Objects inside a stream."""
