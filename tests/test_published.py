"""The published JSON Schemas: in step with the structs, valid, and true to what the converter reads and writes."""

import copy
import json
from pathlib import Path

import msgspec
import pytest
from jsonschema import Draft202012Validator

from converter import chat, published, responses
from converter.files import from_bytes
from converter.options import REPAIRS
from converter.outcome import ALLOWABLE, NOTICES, REASONS, Converted, Notice, Reason, Rejected
from converter.report import Ledger, Speaker, notice_row, reject_row

CODES = [code for family in REASONS.values() for code in family]

ARGUMENTS = '{"region":"apac"}'
TOOL = json.loads((published.folder() / "tools" / "get_latest_sales_report.json").read_bytes())


def document(name):
    return json.loads(published.schema(name))


def accepts(name, value):
    return Draft202012Validator(document(name)).is_valid(value)


def changed(value, path, new):
    """A copy of the value with another value at the path; ``...`` takes the key away."""
    value = copy.deepcopy(value)
    *way, last = path
    inner = value
    for step in way:
        inner = inner[step]
    if new is ...:
        del inner[last]
    else:
        inner[last] = new
    return value


# ---------------------------------------------------------------- the files


@pytest.mark.parametrize("name", published.DOCUMENTS)
def test_a_document_is_in_step_with_the_structs(name):
    assert published.schema(name) == published.documents()[f"{name}.schema.json"], "run python -m converter.published"


def test_the_folder_holds_the_documents_and_no_others():
    shipped = {entry.name for entry in published.folder().iterdir() if entry.name.endswith(".schema.json")}
    assert shipped == set(published.documents())


@pytest.mark.parametrize("name", published.DOCUMENTS)
def test_a_document_is_valid_and_says_what_it_is(name):
    schema = document(name)
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    assert schema["$id"] == f"urn:open-responses-converter:schema:{name}"
    assert schema["title"]
    assert "2026-0" in schema["description"]
    assert "python -m converter.published" in schema["description"]


@pytest.mark.parametrize("name", published.DOCUMENTS)
def test_every_reference_leads_to_a_definition(name):
    schema = document(name)

    def references(value):
        if isinstance(value, dict):
            if isinstance(value.get("$ref"), str):
                yield value["$ref"]
            value = list(value.values())
        if isinstance(value, list):
            for one in value:
                yield from references(one)

    assert {reference.removeprefix("#/$defs/") for reference in references(schema)} <= schema["$defs"].keys()


@pytest.mark.parametrize("name", published.DOCUMENTS)
def test_a_document_is_stable_text(name):
    text = published.schema(name)
    assert text == json.dumps(json.loads(text), ensure_ascii=False, indent=2).encode() + b"\n"


def test_an_unknown_name_is_told_the_known_ones():
    with pytest.raises(ValueError, match="no schema named 'chat'; there are chat-completions, open-responses"):
        published.schema("chat")


def test_the_packaged_folder_is_found_first(monkeypatch, tmp_path):
    monkeypatch.setattr(published, "files", lambda package: tmp_path)
    assert published.folder() == Path(published.__file__).resolve().parent.parent / "schemas"
    (tmp_path / "schemas_data").mkdir()
    (tmp_path / "schemas_data" / "report.schema.json").write_bytes(b"{}")
    assert published.schema("report") == b"{}"


# ---------------------------------------------------------------- the command


@pytest.fixture
def checkout(monkeypatch, tmp_path):
    place = tmp_path / "schemas"
    monkeypatch.setattr(published, "files", lambda package: tmp_path / "package")
    monkeypatch.setattr(published, "_CHECKOUT", place)
    return place


def test_the_command_writes_what_is_out_of_step(checkout, capsys):
    assert published.main(["--check"]) == 1
    assert not checkout.exists()
    assert published.main([]) == 0
    assert {file.name: file.read_bytes() for file in checkout.iterdir()} == published.documents()
    assert published.main(["--check"]) == 0
    (checkout / "report.schema.json").write_bytes(b"{}\n")
    capsys.readouterr()
    assert published.main(["--check"]) == 1
    assert capsys.readouterr().err == "report.schema.json is out of step\n"
    assert (checkout / "report.schema.json").read_bytes() == b"{}\n"
    assert published.main([]) == 0
    assert capsys.readouterr().err == "report.schema.json written\n"


def test_an_installed_package_is_not_rewritten(checkout, tmp_path, capsys):
    (tmp_path / "package" / "schemas_data").mkdir(parents=True)
    assert published.main([]) == 1
    assert "checkout" in capsys.readouterr().err
    assert not checkout.exists()
    assert list((tmp_path / "package" / "schemas_data").iterdir()) == []


# ---------------------------------------------------------------- closed lists


def test_codes_are_the_closed_lists():
    assert document("rejects")["$defs"]["Reason"]["properties"]["code"]["enum"] == CODES
    assert document("notices")["$defs"]["NoticeRow"]["properties"]["code"]["enum"] == list(NOTICES)
    for name in ("Report", "Sums"):
        fields = document("report")["$defs"][name]["properties"]
        assert fields["reasons"]["propertyNames"]["enum"] == CODES
        assert fields["notices"]["propertyNames"]["enum"] == list(NOTICES)
        assert fields["repaired"]["propertyNames"]["enum"] == list(REPAIRS)
        assert set(fields["allowed"]["propertyNames"]["enum"]) == ALLOWABLE


@pytest.mark.parametrize(
    ("name", "union", "structs", "tag"),
    [
        ("chat-completions", "Message", chat.Message, "role"),
        ("chat-completions", "Part", chat.Part, "type"),
        ("chat-completions", "ToolCall", chat.ToolCall, "type"),
        ("chat-completions", "Tool", chat.Tool, "type"),
        ("open-responses", "Item", responses.Item, "type"),
        ("open-responses", "Part", responses.Part, "type"),
        ("open-responses", "Tool", responses.Tool, "type"),
    ],
)
def test_unions_are_told_apart_by_constants(name, union, structs, tag):
    defs = document(name)["$defs"]
    branches = [one["$ref"].removeprefix("#/$defs/") for one in defs[union]["anyOf"]]
    tags = {struct.__name__: struct.__struct_config__.tag for struct in structs.__args__}
    assert {branch: defs[branch]["properties"][tag]["const"] for branch in branches} == tags
    assert all(tag in defs[branch]["required"] for branch in branches)


@pytest.mark.parametrize(
    ("name", "module"), [("chat-completions", chat), ("open-responses", responses)], ids=["chat", "responses"]
)
def test_every_struct_of_an_envelope_is_there_with_all_its_fields(name, module):
    defs = document(name)["$defs"]
    structs = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, msgspec.Struct) and value.__module__ == module.__name__
    ]
    for struct in structs:
        if struct is not chat.Base:
            fields = set(struct.__struct_encode_fields__) | {struct.__struct_config__.tag_field} - {None}
            assert defs[struct.__name__]["properties"].keys() == fields


# ---------------------------------------------------------------- samples

CALL = {"id": "call_1", "type": "function", "function": {"name": "get_latest_sales_report", "arguments": ARGUMENTS}}
MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Sales in APAC?"}]},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "12"},
    {"role": "assistant", "content": "Twelve."},
]
CHAT_REQUEST = {
    "model": "m",
    "messages": MESSAGES,
    "tools": [{"type": "function", "function": {"name": "get_latest_sales_report", "parameters": TOOL}}],
    "temperature": 0.5,
    "stop": None,
}
COMPLETION = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": None, "refusal": None, "tool_calls": [CALL]},
            "logprobs": None,
            "finish_reason": "tool_calls",
        }
    ],
    "usage": {
        "prompt_tokens": 1,
        "completion_tokens": 2,
        "total_tokens": 3,
        "prompt_tokens_details": {"cached_tokens": 0},
    },
}
ITEMS = [
    {"type": "message", "role": "user", "content": "Sales in APAC?"},
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Ask the tool."}]},
    {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "get_latest_sales_report",
        "arguments": ARGUMENTS,
        "status": "completed",
    },
    {"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "12"}]},
    {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Twelve.", "annotations": []}],
    },
]
RESPONSES_REQUEST = {"model": "m", "input": ITEMS, "instructions": "Be brief.", "store": False, "top_p": 1}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "completed_at": 2,
    "status": "completed",
    "incomplete_details": None,
    "model": "m",
    "previous_response_id": None,
    "output": [ITEMS[1], ITEMS[2]],
    "error": None,
    "tools": [],
    "tool_choice": "auto",
    "text": {"format": {"type": "text"}},
    "usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
}


@pytest.mark.parametrize(
    ("name", "type_", "value"),
    [
        ("chat-completions", chat.Request, CHAT_REQUEST),
        ("chat-completions", list[chat.Message], MESSAGES),
        ("chat-completions", list[chat.Message], []),
        ("chat-completions", chat.Completion, COMPLETION),
        ("open-responses", responses.Request, RESPONSES_REQUEST),
        ("open-responses", responses.Request, {"input": "Hello"}),
        ("open-responses", responses.Request, {"previous_response_id": "resp_0"}),
        ("open-responses", list[responses.Item], ITEMS),
        ("open-responses", responses.Response, RESPONSE),
    ],
)
def test_what_the_structs_read_is_accepted(name, type_, value):
    msgspec.json.decode(json.dumps(value), type=type_)
    Draft202012Validator(document(name)).validate(value)


@pytest.mark.parametrize(
    ("name", "value", "path", "new"),
    [
        ("chat-completions", CHAT_REQUEST, ("messages",), ...),
        ("chat-completions", CHAT_REQUEST, ("messages",), "hello"),
        ("chat-completions", CHAT_REQUEST, ("temperature",), "warm"),
        ("chat-completions", CHAT_REQUEST, ("messages", 3, "tool_call_id"), ...),
        ("chat-completions", CHAT_REQUEST, ("messages", 2, "tool_calls", 0, "id"), ...),
        (
            "chat-completions",
            CHAT_REQUEST,
            ("messages", 2, "tool_calls", 0, "function", "arguments"),
            {"region": "apac"},
        ),
        ("chat-completions", MESSAGES, (0, "role"), "critic"),
        ("chat-completions", MESSAGES, (0, "role"), ...),
        ("chat-completions", MESSAGES, (1, "content", 0, "type"), "input_text"),
        ("chat-completions", COMPLETION, ("choices",), ...),
        ("chat-completions", COMPLETION, ("choices", 0, "message"), ...),
        ("chat-completions", COMPLETION, ("choices", 0, "message", "role"), "user"),
        ("chat-completions", COMPLETION, ("object",), "chat.completion.chunk"),
        ("chat-completions", COMPLETION, ("usage", "prompt_tokens"), "1"),
        ("open-responses", RESPONSES_REQUEST, ("input",), ...),
        ("open-responses", RESPONSES_REQUEST, ("input", 0, "role"), "tool"),
        ("open-responses", ITEMS, (2, "call_id"), ...),
        ("open-responses", ITEMS, (3, "call_id"), ...),
        ("open-responses", ITEMS, (3, "call_id"), None),
        ("open-responses", ITEMS, (2, "arguments"), {"region": "apac"}),
        ("open-responses", ITEMS, (0, "content"), 7),
        ("open-responses", ITEMS, (4, "content", 0, "type"), "image_url"),
        ("open-responses", RESPONSE, ("output",), ...),
        ("open-responses", RESPONSE, ("output",), "text"),
        ("open-responses", RESPONSE, ("output", 1, "call_id"), ...),
        ("open-responses", RESPONSE, ("usage", "total_tokens"), "3"),
    ],
)
def test_what_the_structs_do_not_read_is_not_accepted(name, value, path, new):
    assert accepts(name, value)
    assert not accepts(name, changed(value, path, new))


@pytest.mark.parametrize("name", ["chat-completions", "open-responses"])
@pytest.mark.parametrize("value", [None, 1, "text", {}, {"object": "response"}, [1]], ids=repr)
def test_what_is_no_record_is_not_accepted(name, value):
    assert not accepts(name, value)


def test_one_envelope_is_not_the_other():
    for value in (CHAT_REQUEST, MESSAGES, COMPLETION):
        assert not accepts("open-responses", value)
    for value in (RESPONSES_REQUEST, ITEMS, RESPONSE):
        assert not accepts("chat-completions", value)


def test_unknown_keys_are_allowed_because_they_are_read():
    assert accepts("chat-completions", changed(CHAT_REQUEST, ("messages", 0, "x_vendor"), 1))
    assert accepts("open-responses", changed(ITEMS, (2, "x_vendor"), 1))


# ---------------------------------------------------------------- rows and the report


@pytest.mark.parametrize("text", [b'{"messages": []}', b"{cut", b"", b"[1,\n2]", b"\xff"])
def test_a_rejects_row_is_accepted(text):
    row = json.loads(reject_row("a.jsonl", Rejected(3, [Reason(code, "/x", "a sentence") for code in CODES], text)))
    Draft202012Validator(document("rejects")).validate(row)


def test_a_notices_row_is_accepted():
    for code in NOTICES:
        row = json.loads(notice_row("a.jsonl", 3, Notice(code, ["/messages/0/name"])))
        Draft202012Validator(document("notices")).validate(row)


@pytest.fixture(params=["to-responses", "to-chat", "check", "inspect"])
def report(request):
    ledger = Ledger(Speaker(quiet=True, refusals=False), None, None, None)
    notices = [
        Notice("dropped", ["/messages/0/x", "/messages/1/x"]),
        Notice("repaired", ["/messages/2"], "stringify-arguments"),
        Notice("allowed", ["/2"], "status: not completed"),
        Notice("unchecked", ["/2"], "sum"),
    ]
    outcomes = [Converted(1, b"[]", notices), Rejected(2, [Reason("status", "", "a sentence")], b"{}")]
    ledger.take(from_bytes(b"", "a.jsonl"), iter(outcomes), lambda text: None)
    return json.loads(ledger.report(request.param, 0.25, True, ["b.jsonl"]).json())


def test_a_report_is_accepted(report):
    for sums in (report, report["files"][0]):
        assert sums["repaired"] == {"stringify-arguments": 1}
        assert sums["allowed"] == {"status": 1}
    Draft202012Validator(document("report")).validate(report)


REJECT = json.loads(reject_row("a.jsonl", Rejected(3, [Reason("status", "/0", "a sentence")], b"{}")))
NOTICE = json.loads(notice_row("a.jsonl", 3, Notice("dropped", ["/0"])))


@pytest.mark.parametrize(
    ("name", "value", "path", "new"),
    [
        ("rejects", REJECT, ("reasons", 0, "code"), "because"),
        ("rejects", REJECT, ("reasons", 0, "path"), ...),
        ("rejects", REJECT, ("reasons",), "status"),
        ("rejects", REJECT, ("line",), "3"),
        ("rejects", REJECT, ("record",), ...),
        ("notices", NOTICE, ("code",), "status"),
        ("notices", NOTICE, ("paths",), "/0"),
        ("notices", NOTICE, ("detail",), ...),
    ],
)
def test_a_broken_row_is_not_accepted(name, value, path, new):
    assert accepts(name, value)
    assert not accepts(name, changed(value, path, new))


@pytest.mark.parametrize(
    ("path", "new"),
    [
        (("reasons", "because"), 1),
        (("notices", "status"), 1),
        (("repaired", "magic"), 1),
        (("allowed", "loss"), 1),
        (("command",), "convert"),
        (("read",), "1"),
        (("files", 0, "read"), ...),
        (("files", 0, "reasons", "because"), 1),
        (("skipped",), ...),
    ],
)
def test_a_broken_report_is_not_accepted(report, path, new):
    assert not accepts("report", changed(report, path, new))


# ---------------------------------------------------------------- the worked example's tool


def test_the_tool_of_the_worked_example():
    Draft202012Validator.check_schema(TOOL)
    accepts_arguments = Draft202012Validator(TOOL).is_valid
    assert accepts_arguments(json.loads(ARGUMENTS))
    for wrong in ({}, {"region": "mars"}, {"region": "apac", "year": 2026}, {"region": None}, []):
        assert not accepts_arguments(wrong)
