"""Every reason for a refusal: a record that gives it, and the whole sentence that a user reads."""

import json

import pytest
from strategies import USER, USER_ITEM, asks, call, completion, function_call, output, response, said, tool

from converter import Options, Refused, convert_lines, to_chat, to_responses
from converter.outcome import ALLOWABLE, REASONS

R, C = "to-responses", "to-chat"
VERBS = {R: to_responses, C: to_chat}
KNOWN = {"tools": {"f": True}}
SALES = {
    "tools": {
        "f": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"region": {"enum": ["apac", "emea"]}},
            "required": ["region"],
        }
    }
}
TWO = [{"index": at, "finish_reason": "stop", "message": said("y")} for at in (0, 1)]
NO_ID = {"type": "function", "function": {"name": "f", "arguments": "{}"}}
AUDIO = {"type": "input_audio", "input_audio": {"data": "QQ==", "format": "wav"}}
IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,QQ=="}
DEEP = b'{"messages":[{"role":"user","content":"x"}],"metadata":' + b'{"a":' * 5000 + b"1" + b"}" * 5001


def tools(parameters):
    return [{"type": "function", "function": {"name": "f", "parameters": parameters}}]


# A sentence that ends in … goes on; where a row has several, they are all the reasons of that record.
ROWS = [
    # text
    (R, {}, b'{"messages": [', "invalid_json at the top: the text ends in the middle of a value (a cut line?)"),
    (
        R,
        {},
        b'{"messages": []} {}',
        "invalid_json at the top: more text behind the first value, at byte 18 (two records on one line?)",
    ),
    (
        R,
        {},
        b'{"messages": [], "temperature": NaN}',
        "invalid_json at the top: NaN is not JSON, expected a number or null (it was written by a lenient encoder)",
    ),
    (R, {}, b'{"messages": nope}', "invalid_json at the top: not JSON, at byte 17, expected one JSON value a line"),
    (
        R,
        {},
        completion(said(None, audio={"id": "a", "data": "QQ==", "transcript": "y"})),
        "unsupported_content at /choices/0/message/audio: an answer that is audio alone, which has no place here "
        "(--allow unsupported_content leaves it out)",
    ),
    (
        R,
        {},
        completion(said("y"), "MALFORMED_FUNCTION_CALL"),
        "not_finished at /choices/0/finish_reason: the answer ended in an error, so it is no whole answer",
    ),
    (
        C,
        KNOWN,
        response(
            function_call(),
            {"type": "message", "role": "assistant", "content": "y", "status": "incomplete"},
            status="incomplete",
        ),
        "status at /status: the answer was cut off behind its calls; in Chat the last of them would look cut off "
        "(--allow status writes it all the same)",
    ),
    (
        R,
        KNOWN,
        completion(asks(call()), "model_length"),
        "status at /choices/0/finish_reason: the call is not completed, so nothing may be run with its arguments "
        "(--allow status writes it all the same)",
    ),
    (
        R,
        KNOWN,
        [USER, {**asks(call(id="a")), "function_call": {"name": "f", "arguments": "{"}}],
        "arguments_parse at /1/function_call/arguments: not JSON at character 2 (a cut call? --allow "
        "arguments_parse writes it as it is)",
    ),
    (R, {}, b"", "invalid_json at the top: an empty text, expected one JSON value"),
    (R, {}, b"\0\0\0\0", "invalid_json at the top: NUL bytes, expected one JSON value (the log was cut by a crash?)"),
    (
        R,
        {},
        b'[{"role":"user","content":"\xff"}]',
        "invalid_utf8 at the top: byte 27 is not UTF-8 (convert the file to UTF-8 first)",
    ),
    (
        R,
        {},
        '[{"role":"user"}]'.encode("utf-16"),
        "invalid_utf8 at the top: UTF-16 text, expected UTF-8 (convert the file to UTF-8 first)",
    ),
    (R, {}, b"[" * 100_000, "too_deep at the top: nested deeper than any real record; expected a few dozen levels"),
    (R, {}, DEEP, "too_deep at the top: nested deeper than any real record; expected a few dozen levels"),
    (R, {}, 12, "not_a_record at the top: a number, expected an object or an array"),
    (C, {}, b'"text"', "not_a_record at the top: a string, expected an object or an array"),
    (C, {}, None, "not_a_record at the top: null, expected an object or an array"),
    # shape
    (
        R,
        {},
        {"question": "x", "answer": "y"},
        "unknown_shape at the top: an object with the keys question, answer; known are chat-request, …",
    ),
    (R, {}, [1, 2], "unknown_shape at the top: an array of numbers; known are …"),
    (
        R,
        {},
        {"conversations": [{"from": "human", "value": "x"}]},
        "unknown_shape at the top: a ShareGPT row; known are …",
    ),
    (R, {}, {"chosen": [], "rejected": []}, "unknown_shape at the top: a preference row; known are …"),
    (
        R,
        {},
        {"system": "s", "messages": [USER], "max_tokens": 9},
        "unknown_shape at the top: an Anthropic Messages request; known are …",
    ),
    (
        R,
        {},
        {"messages": [USER], "anthropic_version": "v"},
        "unknown_shape at the top: an Anthropic Messages request; known are …",
    ),
    (
        R,
        {},
        {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]}]},
        "unknown_shape at the top: an Anthropic Messages request; known are …",
    ),
    (R, {}, {"messages": [USER], "options": {"seed": 1}}, "unknown_shape at the top: an Ollama request; known are …"),
    (C, {}, {"input": "x", "encoding_format": "float"}, "unknown_shape at the top: an embeddings request; known are …"),
    (R, {}, {"contents": [{"parts": [{"text": "x"}]}]}, "unknown_shape at the top: a Gemini request; known are …"),
    (
        R,
        {},
        [{"role": "user", "content": [{"type": "text", "value": "x"}]}],
        "unknown_shape at /0/content/0: a text part whose text stands in value, expected it in text",
    ),
    (
        R,
        {},
        [{"role": "user", "content": [{"type": "text", "content": "x"}]}],
        "unknown_shape at /0/content/0: a text part whose text stands in content, expected it in text",
    ),
    (
        R,
        {},
        [asks(call()), output()],
        "mixed_envelopes at the top: messages with tool calls and typed items in one array, expected one envelope",
    ),
    (
        R,
        {},
        [USER, said([{"type": "text", "text": "y"}, {"type": "redacted_thinking", "data": "x"}])],
        "unknown_shape at /1/content/1: an Anthropic Messages part (redacted_thinking), expected Chat Completions or "
        "Open Responses",
    ),
    (
        R,
        {},
        {"messages": [USER, {"from": "human", "value": "x"}]},
        "unknown_shape at /messages/1: a ShareGPT turn (from, value), expected a message with a role",
    ),
    (
        R,
        {},
        {**completion(said("y")), "choices": [{"index": 0, "message": None, "finish_reason": "stop"}]},
        "missing_field at /choices/0: no message, which is required here",
    ),
    (
        R,
        {},
        {"messages": [USER], "input": "x"},
        "mixed_envelopes at the top: both messages and input, expected one envelope",
    ),
    (
        R,
        KNOWN,
        [asks(call()), {"role": "tool", "tool_call_id": "call_1"}],
        "missing_field at /1: no content, which is required here",
    ),
    (
        R,
        KNOWN,
        [asks(NO_ID), {"role": "tool", "content": "x"}],
        "missing_field at /0/tool_calls/0: no id, so its output cannot be found (--repair fill-call-ids pairs by "
        "order)",
        "orphan_output at /1: no tool_call_id, so the call that it answers is not known (--repair fill-call-ids "
        "pairs by order)",
    ),
    (
        C,
        KNOWN,
        [{"type": "function_call", "name": "f", "arguments": "{}"}],
        "missing_field at /0: no call_id, so call and output cannot be paired (--repair fill-call-ids pairs by order)",
    ),
    (
        C,
        {},
        [{"type": "function_call", "call_id": "call_1", "arguments": "{}"}],
        "missing_field at /0: no name, which is required here",
    ),
    (R, {}, {"messages": "x"}, "wrong_type at /messages: a string, expected an array"),
    (
        R,
        {"target": "openai"},
        [{"role": "user", "content": [{"type": "input_audio", "input_audio": []}]}],
        "wrong_type at /0/content/0/input_audio: an array, expected an object",
    ),
    (
        R,
        {},
        [USER, {"role": "user", "content": 1}],
        "wrong_type at /1/content: a number, expected a string or an array",
    ),
    (
        R,
        {},
        {"messages": [{"role": "user", "content": None}]},
        "wrong_type at /messages/0/content: null, expected a string or an array",
    ),
    (
        R,
        {},
        [{"role": "narrator", "content": "x"}],
        "wrong_type at /0/role: role narrator, expected system, developer, user, assistant, tool or function",
    ),
    (
        R,
        {},
        completion({"role": "user", "content": "x"}),
        "wrong_type at /choices/0/message/role: …",
    ),
    (
        C,
        KNOWN,
        [function_call(), output(output={"a": 1})],
        "wrong_type at /1/output: an object, expected a string or an array",
    ),
    # gate
    (
        C,
        {},
        [USER_ITEM, {"type": "openai:web_search_call", "id": "ws_1"}],
        "namespaced at /1: item type openai:web_search_call belongs to one provider and is not portable (--allow "
        "namespaced leaves it out)",
    ),
    (
        R,
        {},
        [USER_ITEM, {"type": "acme:lookup", "id": "l_1"}],
        "namespaced at /1: item type acme:lookup belongs to one provider and is not portable (--allow namespaced "
        "leaves it out)",
    ),
    (
        C,
        KNOWN,
        [USER_ITEM, function_call(status="in_progress"), output()],
        "status at /1/status: the call is not completed, and Chat could not say so (--allow status writes it all "
        "the same)",
    ),
    (
        R,
        KNOWN,
        [USER_ITEM, function_call(status="failed"), output()],
        "status at /1/status: the call is not completed, so nothing may be run with its arguments (--allow "
        "status writes it all the same)",
    ),
    (
        R,
        KNOWN,
        completion(asks(call()), "length"),
        "status at /choices/0/finish_reason: the call is not completed, so nothing may be run with its arguments "
        "(--allow status writes it all the same)",
    ),
    (
        R,
        KNOWN,
        {"messages": [USER, USER, USER, asks(call({"a": 1})), tool()]},
        "arguments_type at /messages/3/tool_calls/0/function/arguments: an object, not a JSON string (--repair "
        "stringify-arguments writes it as one)",
    ),
    (
        R,
        KNOWN,
        [asks({**NO_ID, "id": "call_1", "function": {"name": "f"}}), tool()],
        "missing_field at /0/tool_calls/0/function: no arguments, which are required here (--repair empty-arguments "
        'writes "{}")',
    ),
    (
        R,
        KNOWN,
        [asks(call(None)), tool()],
        "arguments_type at /0/tool_calls/0/function/arguments: null, not a JSON string (--repair empty-arguments "
        'writes "{}")',
    ),
    (C, KNOWN, [function_call([1]), output()], "arguments_type at /0/arguments: an array, not a JSON string"),
    (
        R,
        KNOWN,
        [asks(call('{"a":')), tool()],
        "arguments_parse at /0/tool_calls/0/function/arguments: not JSON at character 6 (a cut call? --allow arguments_parse writes it as it is)",
    ),
    (
        R,
        {},
        [asks(call('{"a":')), tool()],
        "arguments_parse at /0/tool_calls/0/function/arguments: not JSON at character 6 (a cut call? --allow arguments_parse writes it as it is)",
    ),
    (
        R,
        KNOWN,
        [asks(call("")), tool()],
        "arguments_parse at /0/tool_calls/0/function/arguments: the arguments are empty (--repair "
        'empty-arguments writes "{}")',
    ),
    (
        R,
        KNOWN,
        [asks(call('{"a":1}{"a":2}')), tool()],
        "arguments_parse at /0/tool_calls/0/function/arguments: a second value stands at character 8; several "
        "objects are glued, as some stream recorders do with parallel calls",
    ),
    (
        R,
        KNOWN,
        [asks(call('{"a":NaN}')), tool()],
        "arguments_parse at /0/tool_calls/0/function/arguments: NaN and Infinity are not JSON (--allow arguments_parse writes it as it is)",
    ),
    (
        C,
        KNOWN,
        [function_call('{"a":1,"a":2}'), output()],
        "arguments_parse at /0/arguments: a key stands twice in one object (--allow arguments_parse writes it as it is)",
    ),
    (
        R,
        SALES,
        [asks(call('{"region":"global"}')), tool()],
        "arguments_schema at /0/tool_calls/0/function/arguments: 'enum' of the schema is not met at /region (--tools gives another schema, --allow arguments_schema writes the call as it is)",
    ),
    (
        C,
        SALES,
        [function_call("{}"), output()],
        "arguments_schema at /0/arguments: 'required' of the schema is not met at the top: missing 'region' (--tools gives another schema, --allow arguments_schema writes the call as it is)",
    ),
    (
        C,
        SALES,
        [function_call('{"region":"apac","x":1}'), output()],
        "arguments_schema at /0/arguments: 'additionalProperties' of the schema is not met at the top (--tools gives another schema, --allow arguments_schema writes the call as it is)",
    ),
    (
        R,
        {"require_schema": True},
        [asks(call()), tool()],
        "schema_missing at /0/tool_calls/0/function/name: no schema is known for the called tool (--tools gives one)",
    ),
    (
        R,
        {},
        {"messages": [USER, asks(call()), tool()], "tools": tools({"type": "nonsense"})},
        "invalid_tool_schema at /messages/1/tool_calls/0/function/name: the called tool's schema cannot be used: "
        "the schema is invalid under the metaschema of Draft202012 (--tools gives another)",
    ),
    (
        R,
        {},
        {"messages": [USER, asks(call()), tool()], "tools": tools({"$ref": "https://example.test/s.json"})},
        "invalid_tool_schema at /messages/1/tool_calls/0/function/name: the called tool's schema cannot be used: "
        "the schema refers to something outside itself (--tools gives another)",
    ),
    # pairing
    (
        R,
        KNOWN,
        [USER, tool()],
        "orphan_output at /1: no call in the record bears the id of this output (--repair drop-orphans leaves it out)",
    ),
    (
        C,
        KNOWN,
        [function_call(), output("call_9")],
        "orphan_output at /1: no call in the record bears the id of this output; the only open call is at /0 "
        "(--repair drop-orphans leaves it out)",
    ),
    (
        R,
        KNOWN,
        [USER, {"role": "tool", "content": "x"}],
        "orphan_output at /1: no tool_call_id, so the call that it answers is not known (--repair fill-call-ids "
        "pairs by order)",
    ),
    (
        R,
        KNOWN,
        [USER, tool(name="f")],
        "orphan_output at /1: no call in the record bears the id of this output (--repair drop-orphans leaves it out)",
    ),
    (
        R,
        KNOWN,
        [USER, {"role": "function", "name": "f", "content": "x"}],
        "orphan_output at /1: a function message whose name no earlier unanswered call bears",
    ),
    (R, KNOWN, [tool(), asks(call())], "early_output at /0: the output stands before its call"),
    (C, KNOWN, [output(), function_call()], "early_output at /0: the output stands before its call"),
    (
        R,
        KNOWN,
        [asks(call()), tool(), tool()],
        "duplicate_output at /2: a second output for a call that is already answered (--repair drop-orphans leaves it out)",
    ),
    (
        C,
        KNOWN,
        [function_call(), output(), output()],
        "duplicate_output at /2: a second output for a call that is already answered (--repair drop-orphans leaves it out)",
    ),
    (
        R,
        KNOWN,
        [asks(call(), call()), tool()],
        "ambiguous_call_id at /0/tool_calls/1/id: two calls are open at once with one id, the other at "
        "/0/tool_calls/0, so their outputs cannot be told apart (--repair rename-call-ids makes them unique)",
    ),
    (
        C,
        KNOWN,
        [function_call(), function_call(), output()],
        "ambiguous_call_id at /1/call_id: two calls are open at once with one id, the other at /0, so their "
        "outputs cannot be told apart (--repair rename-call-ids makes them unique)",
    ),
    (
        R,
        KNOWN,
        [asks(call()), USER],
        "unanswered_call at /0/tool_calls/0: the call is never answered although the conversation goes on "
        "(--repair drop-orphans leaves it out)",
    ),
    (
        R,
        KNOWN,
        [asks(call()), said("y")],
        "unanswered_call at /0/tool_calls/0: the call is never answered although the conversation goes on "
        "(--repair drop-orphans leaves it out)",
    ),
    (
        C,
        KNOWN,
        [function_call(), USER_ITEM],
        "unanswered_call at /0: the call is never answered although the conversation goes on (--repair "
        "drop-orphans leaves it out)",
    ),
    (
        C,
        KNOWN,
        [function_call(), function_call(id="call_2"), output("call_2"), function_call(id="call_3")],
        "unanswered_call at /0: the call is never answered although the conversation goes on (--repair "
        "drop-orphans leaves it out)",
    ),
    # no counterpart
    (
        R,
        {},
        [asks({"id": "c", "type": "custom", "custom": {"name": "s", "input": "i"}})],
        "unsupported_item at /0/tool_calls/0: a custom tool call, which is outside the portable set (--target "
        "openai keeps it)",
    ),
    (
        C,
        {},
        [USER_ITEM, {"type": "web_search_call", "id": "ws"}],
        "unsupported_item at /1: item type web_search_call is outside the portable set (--allow unsupported_item "
        "leaves it out)",
    ),
    (
        R,
        {},
        [USER_ITEM, {"type": "custom_tool_call", "call_id": "c", "name": "s", "input": "i"}],
        "unsupported_item at /1: OpenAI's own custom tool call, which is outside the portable set (--target "
        "openai takes it)",
    ),
    (
        C,
        {},
        [USER_ITEM, {"type": "item_reference", "id": "msg"}],
        "unsupported_item at /1: an item_reference, which only its provider can resolve (--allow unsupported_item leaves it "
        "out)",
    ),
    (
        C,
        {},
        [USER_ITEM, {"type": "compaction", "encrypted_content": "e"}],
        "unsupported_item at /1: a compaction item: its content is opaque and has no Chat form (--allow unsupported_item "
        "leaves it out)",
    ),
    (
        C,
        KNOWN,
        [USER_ITEM, function_call(namespace="n")],
        "unsupported_item at /1: a call with a namespace: it changes which tool was called, and Chat "
        "has no place for it (--allow unsupported_item leaves it out)",
    ),
    (
        C,
        {},
        [
            {"type": "custom_tool_call", "call_id": "c", "name": "s", "input": "i", "status": "in_progress"},
            {"type": "custom_tool_call", "call_id": "d", "name": "s", "input": "i", "namespace": "n"},
        ],
        "status at /0/status: the call is not completed (--allow status writes it all the same)",
        "unsupported_item at /1/namespace: a call with a namespace",
    ),
    (
        C,
        KNOWN,
        response(function_call(), output()),
        "unsupported_item at /output/1: the output holds more than one answer (--at /output converts it as an "
        "item list)",
    ),
    (
        R,
        {},
        [{"role": "user", "content": [AUDIO]}],
        "unsupported_content at /0/content/0: an audio part, which Open Responses does not have (--target openai "
        "keeps it, --allow unsupported_content leaves it out)",
    ),
    (
        R,
        {},
        [{"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]}],
        "unsupported_content at /0/content/0/file/file_id: a file known by its id alone stands at its provider "
        "(--target openai keeps the id)",
    ),
    (
        R,
        {},
        [{"role": "user", "content": [{"type": "hologram"}]}],
        "unsupported_content at /0/content/0: a part of type hologram, which has no counterpart (--allow "
        "unsupported_content leaves it out)",
    ),
    (
        C,
        KNOWN,
        [function_call(), output(output=[IMAGE])],
        "unsupported_content at /1/output/0: media in an output, which a Chat tool message cannot hold (--repair "
        "lift-media puts it into a user message)",
    ),
    (
        C,
        {},
        [{"type": "message", "role": "user", "content": [{"type": "input_image", "file_id": "file-1"}]}],
        "unsupported_content at /0/content/0: an image without a URL or data, which a Chat image part needs "
        "(--allow unsupported_content leaves it out)",
    ),
    (
        C,
        {},
        [
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_file", "file_url": "https://example.test/a"}],
            }
        ],
        "unsupported_content at /0/content/0: a file without data, and Chat file parts hold no URL (--allow "
        "unsupported_content leaves it out)",
    ),
    (
        C,
        {},
        [
            {
                "type": "message",
                "role": "user",
                "content": [{**AUDIO, "input_audio": {"data": "QQ==", "format": "flac"}}],
            }
        ],
        "unsupported_content at /0/content/0: audio without data in wav or mp3 (--allow unsupported_content leaves it "
        "out)",
    ),
    (
        C,
        {},
        [
            {
                "type": "message",
                "role": "user",
                "content": [{**AUDIO, "input_audio": "QQ=="}],
            }
        ],
        "unsupported_content at /0/content/0: audio without data in wav or mp3 (--allow unsupported_content leaves it "
        "out)",
    ),
    (
        R,
        {},
        [said([{"type": "text", "text": "x"}, AUDIO])],
        "unsupported_content at /0/content/1: a part that a message of this role cannot hold (--allow "
        "unsupported_content leaves it out)",
    ),
    (
        R,
        {},
        [said([AUDIO], name="n"), USER, said([AUDIO], refusal="no")],
        "unsupported_content at /0/content/0: …",
        "unsupported_content at /2/content/0: …",
    ),
    (
        C,
        {},
        [{"type": "message", "role": "system", "content": [IMAGE]}],
        "unsupported_content at /0/content/0: a part that a Chat message of this role cannot hold (--allow "
        "unsupported_content leaves it out)",
    ),
    (
        C,
        {},
        {"input": "x", "tools": [{"type": "acme:lookup"}]},
        "unsupported_tool at /tools/0: a tool of type acme:lookup, which only its provider runs (--allow "
        "unsupported_tool leaves it out)",
    ),
    (
        R,
        {},
        {"messages": [USER], "tools": [{"type": "custom", "custom": {"name": "s"}}]},
        "unsupported_tool at /tools/0: a custom tool, which Open Responses does not have (--target openai keeps it)",
    ),
    (
        R,
        {},
        {**completion(said("y")), "choices": TWO},
        "several_choices at /choices: 2 choices; a response holds one answer (--choice N picks one by its index)",
    ),
    (
        R,
        {"choice": 3},
        {**completion(said("y")), "choices": TWO},
        "several_choices at /choices: no choice has the index 3 (--choice)",
    ),
    (
        C,
        {},
        {"previous_response_id": "resp_1", "input": "x"},
        "incomplete_history at /previous_response_id: the record continues a response whose content is not in it "
        "(--allow incomplete_history converts the rest)",
    ),
    (
        C,
        {},
        {"conversation": {"id": "conv_1"}, "input": "x"},
        "incomplete_history at /conversation: the record continues a conversation whose content is not in it "
        "(--allow incomplete_history converts the rest)",
    ),
    (
        C,
        {},
        {"prompt": {"id": "pmpt_1"}, "input": "x"},
        "incomplete_history at /prompt: the record uses a prompt template whose text is not in it (--allow "
        "incomplete_history converts the rest)",
    ),
    (
        C,
        {},
        response(status="failed", error={"code": "c", "message": "m"}),
        "not_finished at /error: the response failed, so there is no whole answer to convert",
    ),
    (C, {}, response(status="queued"), "not_finished at /status: the response is neither completed nor incomplete"),
    (C, {}, response(status="cancelled"), "not_finished at /status: the response is neither completed nor incomplete"),
    (
        R,
        {},
        completion(said("y"), "error"),
        "not_finished at /choices/0/finish_reason: the answer ended in an error, so it is no whole answer",
    ),
    (
        R,
        {},
        {**completion(said("y")), "choices": []},
        "missing_field at /choices: no choice in it, expected at least one",
    ),
    # limits
    (
        R,
        KNOWN,
        [asks(call(id="c" * 65)), tool("c" * 65)],
        "limit at /0/tool_calls/0/id: a call id of 65 characters, expected 1 to 64 (--repair rename-call-ids "
        "shortens it on call and output alike)",
    ),
    (
        R,
        {},
        [asks(call(name="a.b")), tool()],
        "limit at /0/tool_calls/0/function/name: a tool name outside ^[a-zA-Z0-9_-]{1,64}$ (rename the tool and its calls before converting)",
    ),
    (
        C,
        {},
        [function_call(name="n" * 65), output()],
        "limit at /0/name: a tool name outside ^[a-zA-Z0-9_-]{1,64}$ (rename the tool and its calls before converting)",
    ),
    (
        R,
        {},
        {"messages": [USER], "tools": [{"type": "function", "function": {"name": "a.b"}}]},
        "limit at /tools/0/function/name: a tool name outside ^[a-zA-Z0-9_-]{1,64}$ (rename the tool and its "
        "calls before converting)",
    ),
    (C, {}, {"input": ""}, "limit at /input: an empty conversation; Chat wants at least one message"),
    (C, {}, {"input": []}, "limit at /input: an empty conversation; Chat wants at least one message"),
    (
        R,
        {},
        [USER, {"role": "user", "content": "x" * 10_485_761}],
        "limit at /1: a text longer than the specification's 10485760 characters",
    ),
    # asked for
    (
        R,
        {"strict": True},
        b'[{"role":"user","content":"x","content":"y"}]',
        "duplicate_key at /0/content: a key stands twice in one object, expected once",
    ),
    (
        R,
        {"strict": True},
        {"messages": [USER], "seed": 7},
        "loss at /seed: dropped: no place in the target (--accept-loss lets it)",
    ),
    (
        C,
        {"strict": True, **KNOWN},
        [function_call(), {"type": "message", "role": "developer", "content": "d"}, output()],
        "loss at /2: moved: an output up to its call (--accept-loss lets it)",
    ),
]

ELSEWHERE = {"too_long": "files", "stream_conflict": "streams", "verify": "--verify"}
"""Reasons that no record of these shapes gives: what they belong to."""


def reasons_of(verb, record, options):
    with pytest.raises(Refused) as refused:
        VERBS[verb](record, Options(**options))
    return refused.value.reasons


@pytest.mark.parametrize(
    ("verb", "options", "record", "sentences"),
    [(*row[:3], row[3:]) for row in ROWS],
    ids=[f"{at}-{row[3].split()[0]}" for at, row in enumerate(ROWS)],
)
def test_sentence(verb, options, record, sentences):
    got = [str(reason) for reason in reasons_of(verb, record, options)]
    assert [
        one.startswith(whole[:-1]) if whole.endswith("…") else one == whole
        for one, whole in zip(got, sentences, strict=True)
    ] == [True] * len(sentences), got


def test_every_reason_has_a_row():
    shown = {sentence.split()[0] for row in ROWS for sentence in row[3:]}
    closed = {code for family in REASONS.values() for code in family}
    assert closed == shown | ELSEWHERE.keys()
    assert not shown & ELSEWHERE.keys()


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_the_command_line_would_keep_the_record(row):
    verb, options, record = row[:3]
    text = record if isinstance(record, bytes) else json.dumps(record).encode()
    outcomes = list(convert_lines([text], verb, Options(**options)))
    if text:
        assert [reason.code for reason in outcomes[0].reasons] == [sentence.split()[0] for sentence in row[3:]]
        assert outcomes[0].text == text
    else:
        assert outcomes == []


# ---------------------------------------------------------------- all faults, each once


def codes(verb, record, **options):
    return [(reason.code, reason.path) for reason in reasons_of(verb, record, options)]


def test_all_faults_of_a_request_are_reported():
    record = {
        "messages": [
            {"role": "user", "content": [AUDIO, {"type": "file", "file": {"file_id": "file-1"}}]},
            asks(call('{"region":"global"}'), call("{", id="call_2"), call('{"region":"apac"}', id="c" * 70)),
            tool(),
            tool("call_2"),
            tool("c" * 70),
            tool("call_3"),
        ],
        "tools": [{"type": "custom", "custom": {"name": "s"}}],
    }
    assert sorted(codes(R, record, **SALES)) == [
        ("arguments_parse", "/messages/1/tool_calls/1/function/arguments"),
        ("arguments_schema", "/messages/1/tool_calls/0/function/arguments"),
        ("limit", "/messages/1/tool_calls/2/id"),
        ("orphan_output", "/messages/5"),
        ("unsupported_content", "/messages/0/content/0"),
        ("unsupported_content", "/messages/0/content/1/file/file_id"),
        ("unsupported_tool", "/tools/0"),
    ]


def test_all_faults_of_reading_are_reported():
    record = [
        {"role": "user", "content": 1},
        {"role": "narrator", "content": "x"},
        asks(call({"a": 1}), {"type": "function", "id": "call_2"}),
        {"role": "tool", "tool_call_id": "call_1"},
    ]
    assert sorted(codes(R, record, **KNOWN)) == [
        ("arguments_type", "/2/tool_calls/0/function/arguments"),
        ("missing_field", "/2/tool_calls/1"),
        ("missing_field", "/3"),
        ("wrong_type", "/0/content"),
        ("wrong_type", "/1/role"),
    ]


def test_all_faults_of_items_are_reported():
    items = [
        USER_ITEM,
        function_call(status="incomplete"),
        output(),
        function_call('{"region":1}', id="call_2"),
        output("call_2"),
        output("call_2"),
        {"type": "item_reference", "id": "msg_1"},
        output("call_3"),
    ]
    assert sorted(codes(C, items, **SALES)) == [
        ("arguments_schema", "/3/arguments"),
        ("duplicate_output", "/5"),
        ("orphan_output", "/7"),
        ("status", "/1/status"),
        ("unsupported_item", "/6"),
    ]


FAULTY_CALLS = [
    (R, KNOWN, [asks(call({"a": 1})), tool(), USER], "arguments_type"),
    (R, KNOWN, [asks(call("{")), tool(), USER], "arguments_parse"),
    (R, SALES, [asks(call()), tool(), USER], "arguments_schema"),
    (R, KNOWN, [asks(call(name="a.b")), tool(), USER], "limit"),
    (R, KNOWN, [asks(call(id="c" * 65)), tool("c" * 65), USER], "limit"),
    (
        R,
        {},
        [asks({"id": "call_1", "type": "custom", "custom": {"name": "s", "input": "i"}}), tool(), USER],
        "unsupported_item",
    ),
    (C, KNOWN, [function_call(status="incomplete"), output(), USER_ITEM], "status"),
    (C, KNOWN, [function_call('{"a":', status="incomplete"), output(), USER_ITEM], "status"),
    (C, SALES, [function_call(status="incomplete"), output(), USER_ITEM], "status"),
    (R, KNOWN, [function_call('{"a":', status="incomplete"), output(), USER_ITEM], "status"),
    (C, KNOWN, [function_call(namespace="n"), output(), USER_ITEM], "unsupported_item"),
    (C, KNOWN, [{"type": "acme:call", "call_id": "call_1"}, output(), USER_ITEM], "namespaced"),
    (C, KNOWN, [function_call(), output(output=[IMAGE]), USER_ITEM], "unsupported_content"),
    (C, KNOWN, [function_call(), function_call(), output(), output()], "ambiguous_call_id"),
    (R, KNOWN, [asks(call(), call()), tool(), tool()], "ambiguous_call_id"),
    (R, {}, {"messages": [USER, asks(call()), tool()], "tools": tools({"type": "nonsense"})}, "invalid_tool_schema"),
    (C, {}, {"previous_response_id": "resp_1", "input": [output()]}, "incomplete_history"),
]


@pytest.mark.parametrize(("verb", "options", "record", "code"), FAULTY_CALLS, ids=range(len(FAULTY_CALLS)))
def test_one_fault_is_reported_once(verb, options, record, code):
    assert [code for code, _ in codes(verb, record, **options)] == [code]


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_pointers_lead_into_the_record(row):
    verb, options, record = row[:3]
    if isinstance(record, bytes):
        return
    for reason in reasons_of(verb, record, options):
        value = record
        for part in reason.path.split("/")[1:]:
            value = value[int(part)] if isinstance(value, list) else value[part]


@pytest.mark.parametrize("record", [b"", b"{", 1, [1], {"a": 1}, [asks(call()), output()]], ids=str)
def test_the_root_is_an_empty_pointer(record):
    [reason] = reasons_of(R, record, {})
    assert reason.path == ""


# ---------------------------------------------------------------- nothing of the record in a sentence

SECRET = "SECRET-4711"
SECRETS = [
    (R, SALES, [asks(call(json.dumps({"region": SECRET}))), tool(content=SECRET)]),
    (R, SALES, [asks(call(json.dumps({"region": "apac", SECRET: 1}))), tool()]),
    (
        R,
        {"tools": {"f": {"additionalProperties": {"type": "integer"}}}},
        [asks(call(json.dumps({SECRET: "x"}))), tool()],
    ),
    (R, {"tools": {"f": {"propertyNames": {"maxLength": 3}}}}, [asks(call(json.dumps({SECRET: "x"}))), tool()]),
    (R, {"tools": {"f": {"properties": {"a": {"pattern": "^x"}}}}}, [asks(call(json.dumps({"a": SECRET}))), tool()]),
    (R, {"tools": {"f": {"not": {}}}}, [asks(call(json.dumps({"a": SECRET}))), tool()]),
    (
        R,
        {"tools": {"f": {"anyOf": [{"required": ["q"]}, {"maxProperties": 0}]}}},
        [asks(call(json.dumps({"a": SECRET}))), tool()],
    ),
    (R, KNOWN, [asks(call("{" + SECRET)), tool()]),
    (R, KNOWN, [asks(call({"a": SECRET})), tool()]),
    (R, KNOWN, [asks(call(id=SECRET), call(id=SECRET)), tool(SECRET)]),
    (R, KNOWN, [USER, tool(SECRET, SECRET)]),
    (R, {}, [asks(call(name=f"{SECRET}.x")), tool()]),
    (
        R,
        {},
        {
            "messages": [{"role": "user", "content": SECRET}],
            "tools": [{"type": "function", "function": {"name": f"{SECRET}.x"}}],
        },
    ),
    (R, {"require_schema": True}, [asks(call(name=SECRET)), tool()]),
    (R, {}, f'{{"messages": [{{"role": "user", "content": "{SECRET}'.encode()),
    (R, {}, f'{{"messages": {SECRET}}}'.encode()),
    (R, {}, json.dumps(SECRET).encode()),
    (R, {}, [SECRET]),
    (R, {}, {"messages": SECRET}),
    (R, {}, [{"role": "user", "content": {"text": SECRET}}]),
    (R, {}, {"conversations": [{"from": "human", "value": SECRET}]}),
    (R, {}, completion(said(SECRET), "error")),
    (
        R,
        {},
        {
            "messages": [USER, asks(call(name=SECRET)), tool()],
            "tools": [{"type": "function", "function": {"name": SECRET, "parameters": {"type": SECRET}}}],
        },
    ),
    (R, {"strict": True}, {"messages": [{"role": "user", "content": "x", "name": SECRET}], "seed": SECRET}),
    (R, {"strict": True}, {"messages": [USER, asks(call(name=SECRET, extra_content={"a": SECRET})), tool()]}),
    (R, {"strict": True}, f'[{{"role":"user","{SECRET}":1,"{SECRET}":2}}]'.encode()),
    (C, KNOWN, [function_call(id=SECRET), {"type": "message", "role": "user", "content": SECRET}]),
    (C, KNOWN, [function_call(namespace=SECRET)]),
    (C, KNOWN, [function_call(), output(output=[{"type": "input_image", "image_url": SECRET}])]),
    (C, {}, response(status="failed", error={"code": SECRET, "message": SECRET})),
    (C, {}, response(status=SECRET)),
    (C, {}, {"previous_response_id": SECRET, "input": SECRET}),
]


@pytest.mark.parametrize(("verb", "options", "record"), SECRETS, ids=range(len(SECRETS)))
def test_no_sentence_holds_content(verb, options, record):
    reasons = reasons_of(verb, record, options)
    assert SECRET not in "".join(reason.message for reason in reasons)


# ---------------------------------------------------------------- --allow

ALLOWED = {
    "namespaced": (C, {}, [USER_ITEM, {"type": "acme:lookup", "call_id": "c"}, output("c")], [USER]),
    "status": (C, KNOWN, [function_call(status="incomplete"), output()], [asks(call()), tool()]),
    "arguments_parse": (C, KNOWN, [function_call('{"a":'), output()], [asks(call('{"a":')), tool()]),
    "arguments_schema": (C, SALES, [function_call('{"region":1}'), output()], [asks(call('{"region":1}')), tool()]),
    "schema_missing": (C, {"require_schema": True}, [function_call(), output()], [asks(call()), tool()]),
    "invalid_tool_schema": (
        C,
        {},
        {
            "input": [function_call(), output()],
            "tools": [{"type": "function", "name": "f", "parameters": {"type": "nonsense"}, "strict": False}],
        },
        {"messages": [asks(call()), tool()], "tools": tools({"type": "nonsense"})},
    ),
    "unsupported_item": (C, {}, [USER_ITEM, {"type": "item_reference", "id": "msg_1"}], [USER]),
    "unsupported_content": (
        R,
        {},
        [{"role": "user", "content": [{"type": "text", "text": "x"}, AUDIO]}],
        [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]}],
    ),
    "unsupported_tool": (C, {}, {"input": "x", "tools": [{"type": "web_search"}]}, {"messages": [USER]}),
    "incomplete_history": (C, {}, {"input": "x", "previous_response_id": "resp_1"}, {"messages": [USER]}),
    "not_finished": (
        C,
        {},
        response(
            {
                "type": "message",
                "id": "msg_1",
                "status": "completed",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "y", "annotations": []}],
            },
            status="cancelled",
        ),
        None,
    ),
}


def test_each_reason_that_may_be_allowed_has_a_row():
    assert ALLOWED.keys() == ALLOWABLE


@pytest.mark.parametrize("code", sorted(ALLOWED))
def test_allowed(code):
    verb, options, record, expected = ALLOWED[code]
    assert code in {reason.code for reason in reasons_of(verb, record, options)}
    result = VERBS[verb](record, Options(**options, allow={code}))
    [notice] = [notice for notice in result.notices if notice.code == "allowed"]
    assert notice.detail.startswith(f"{code}: ")
    if expected is None:
        [choice] = result.body["choices"]
        assert choice["message"] == {"role": "assistant", "content": "y", "refusal": None}
    else:
        assert result.body == expected


@pytest.mark.parametrize("code", sorted({code for family in REASONS.values() for code in family} - ALLOWABLE))
def test_what_would_be_invalid_cannot_be_allowed(code):
    with pytest.raises(ValueError, match=rf"allow does not know {code}; it knows arguments_parse, "):
        Options(allow={code})


MAY_BE_ALLOWED = [row for row in ROWS if {sentence.split()[0] for sentence in row[3:]} <= ALLOWABLE]


@pytest.mark.parametrize(
    "row", MAY_BE_ALLOWED, ids=[f"{at}-{row[3].split()[0]}" for at, row in enumerate(MAY_BE_ALLOWED)]
)
def test_whatever_is_allowed_is_written(row):
    verb, options, record = row[:3]
    result = VERBS[verb](record, Options(**options, allow={sentence.split()[0] for sentence in row[3:]}))
    assert type(result.body) is type(record)
    assert "allowed" in {notice.code for notice in result.notices}


def test_a_cut_call_that_is_allowed_keeps_its_arguments():
    record = [function_call('{"a":', status="incomplete"), output()]
    assert to_chat(record, Options(allow={"status"}, **KNOWN)).body == [asks(call('{"a":')), tool()]


def test_an_empty_id_is_told_alike_with_and_without_unknown_fields():
    record = [asks(call(id="")), tool("")]
    assert codes(R, record, **KNOWN) == codes(R, [{**record[0], "vendor": 1}, record[1]], **KNOWN)


def test_what_would_be_invalid_by_family():
    for family in ("text", "shape", "pairing", "limits"):
        assert not ALLOWABLE.intersection(REASONS[family])


def test_allowing_one_reason_keeps_the_others():
    items = [function_call('{"region":1}'), output(), output("call_2")]
    assert codes(C, items, **SALES, allow={"arguments_schema"}) == [("orphan_output", "/2")]


LEGACY_ANSWER = {"role": "function", "name": "f", "content": "ok"}


def legacy(arguments="{}", name="f"):
    return {"role": "assistant", "content": None, "function_call": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(
    ("options", "messages", "pointer"),
    [
        ({}, [legacy("{"), LEGACY_ANSWER], "arguments_parse at /0/function_call/arguments"),
        ({"tools": {"f": False}}, [legacy(), LEGACY_ANSWER], "arguments_schema at /0/function_call/arguments"),
        ({"require_schema": True}, [legacy(), LEGACY_ANSWER], "schema_missing at /0/function_call/name"),
        (
            {"allow": {"unsupported_item"}},
            [USER, asks({"id": "k", "type": "custom", "custom": {"name": "s", "input": "i"}}, call("{")), tool()],
            "arguments_parse at /1/tool_calls/1/function/arguments",
        ),
        (
            {},
            [legacy(), {**LEGACY_ANSWER, "content": [{"type": "file", "file": {"file_id": "f"}}]}],
            "unsupported_content at /1/content/0/file/file_id",
        ),
    ],
)
def test_a_reason_leads_to_the_field_of_the_call_in_its_message(options, messages, pointer):
    with pytest.raises(Refused) as refused:
        to_responses(messages, Options(**options))
    first, *_ = refused.value.reasons
    assert f"{first.code} at {first.path}" == pointer
