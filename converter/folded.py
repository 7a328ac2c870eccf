"""What a folded stream lacks of the resource that it stands for: streams leave out what a plain answer always has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import Raw

from converter import ids
from converter.answers_into_responses import ECHO_DEFAULTS, echoed_text
from converter.outcome import Account
from converter.reading import Members, elements_of, encode, kind, members_of, text_of, without_nulls
from converter.settings import CHAT_TIERS, EFFORTS

NULL: Final = Raw(b"null")


def completed(kind_name: str, text: bytes, account: Account) -> bytes:
    """The folded value with the fields that its envelope requires; made ids derive from the value alone."""
    complete = _COMPLETE.get(kind_name)
    return encode(complete(members_of(encode(without_nulls(Raw(text)))), text, account)) if complete else text


def _named(members: Members, key: str, value: Any, account: Account) -> dict[str, Any]:
    if key in members and kind(members[key]) != "null":
        return {}
    account.notice("filled", f"/{key}", "the stream names none")
    return {key: value}


def _completion(members: Members, text: bytes, account: Account) -> dict[str, Any]:
    made = {
        **_made_id(members, "chatcmpl-", text),
        "object": "chat.completion",
        **_named(members, "created", 0, account),
        **_named(members, "model", "", account),
        "choices": [_choice(members_of(choice)) for choice in elements_of(members["choices"])],
    }
    whole = {**members, **made}
    if "service_tier" in members and text_of(members["service_tier"]) not in CHAT_TIERS:
        account.notice("dropped", "/service_tier")
        del whole["service_tier"]
    return whole


def _made_id(members: Members, prefix: str, text: bytes) -> dict[str, str]:
    present = "id" in members and kind(members["id"]) == "a string" and bytes(members["id"]) != b'""'
    return {} if present else {"id": prefix + ids.digest(text.decode())}


def _choice(members: Members) -> dict[str, Any]:
    message = members.get("message")
    if message is None or kind(message) != "an object":
        return {**members}
    spoken: dict[str, Any] = {"role": Raw(b'"assistant"'), "content": NULL, "refusal": NULL, **members_of(message)}
    if "tool_calls" in spoken:  # Mistral leaves out the type
        calls = elements_of(spoken["tool_calls"])
        spoken["tool_calls"] = [{"type": Raw(b'"function"'), **members_of(call)} for call in calls]
    held = members.get("logprobs")
    if held is not None and kind(held) == "an object":
        return {
            "index": 0,
            **members,
            "logprobs": {"content": NULL, "refusal": NULL, **members_of(held)},
            "message": spoken,
        }
    return {"index": 0, "logprobs": NULL, **members, "message": spoken}


def _response(members: Members, text: bytes, account: Account) -> dict[str, Any]:
    present = {key: value for key, value in members.items() if kind(value) != "null" or key not in ECHO_DEFAULTS}
    times = {"created_at": _seconds(members, account), "completed_at": NULL, "incomplete_details": NULL, "usage": NULL}
    made = {
        **_made_id(members, "resp_", text),
        "object": "response",
        **_named(members, "model", "", account),
    }
    whole = {**times, "status": "completed", **ECHO_DEFAULTS, **present, **made, "created_at": times["created_at"]}
    if "reasoning" in present:
        asked = members_of(present["reasoning"])
        whole["reasoning"] = {"effort": NULL, "summary": NULL, **asked} if asked else NULL
        if "effort" in asked and text_of(asked["effort"]) not in EFFORTS:
            account.notice("dropped", "/reasoning/effort")
            whole["reasoning"]["effort"] = NULL
    if "text" in present:
        whole["text"] = _text(present["text"], account)
    if "tools" in present and kind(present["tools"]) == "an array":
        whole["tools"] = _tools(elements_of(present["tools"]), account)
    identity = ids.digest(text.decode())
    output = [_item(members_of(item), f"{identity}{at}") for at, item in enumerate(elements_of(members["output"]))]
    return {**whole, "output": output}


def _text(raw: Raw, account: Account) -> Any:
    """The released schema wants a null schema in the echo of a JSON Schema format."""
    text = echoed_text(raw)
    before = members_of(raw).get("format")
    schema = members_of(before).get("schema") if before is not None and kind(before) == "an object" else None
    if schema is not None and kind(schema) != "null":
        account.notice("echo", "/text/format/schema", "null in the echo, as the released schema wants it")
    return text


def _tools(tools: list[Raw], account: Account) -> list[dict[str, Any]]:
    """The echo of function tools is whole; hosted tools have no place in the released schema's echo."""
    whole = []
    for number, tool in enumerate(tools):
        members = members_of(tool)
        if bytes(members.get("type", NULL)) == b'"function"':
            whole.append({**dict.fromkeys(("name", "description", "parameters", "strict"), NULL), **members})
        else:
            account.notice("echo", f"/tools/{number}", "a hosted tool")
    return whole


def _seconds(members: Members, account: Account) -> Raw:
    return ids.seconds(members["created_at"], "/created_at", account) if "created_at" in members else Raw(b"0")


_ITEM: Final[dict[bytes, dict[str, Any]]] = {
    b'"message"': {"status": "completed", "role": "assistant", "content": []},
    b'"function_call"': {"status": "completed"},
    b'"reasoning"': {"summary": []},
}


def _item(members: Members, identity: str) -> dict[str, Any]:
    name = bytes(members.get("type", NULL))
    defaults = _ITEM.get(name)
    if defaults is None:
        return {**members}
    prefix = {b'"message"': "msg_", b'"function_call"': "fc_", b'"reasoning"': "rs_"}[name]
    return {"type": members["type"], "id": prefix + identity, **defaults, **members}


_COMPLETE: Final[dict[str, Callable[[Members, bytes, Account], dict[str, Any]]]] = {
    "completion": _completion,
    "response": _response,
}
