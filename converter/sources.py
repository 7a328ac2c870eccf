"""Where logs come from: for each source that is known by name, where it keeps its bodies, and what comes out.

A source that is a row here is read exactly, or a record of it is refused with a sentence. The two halves of an exchange
stand at two pointers, and what becomes of them is put back in their places; where the request has to be put together
from several fields, both are written under ``request`` and ``response``, before all else that the record holds. What a
source does to the data is never mended unasked: the repairs that help are named beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Raw, Struct

from converter.reading import Members, kind, members_of, text_of

Tell = Callable[[Members], bool]


def keys(*names: str) -> Tell:
    """Whether an object has all of these keys."""
    wanted = frozenset(names)
    return lambda members: wanted <= members.keys()


class Source(Struct, frozen=True, kw_only=True):
    """One kind of log whose records can be read.

    - ``request``, ``response``: where the halves stand.
    - ``parts``: for a request that is put together, where each of its members stands; ``*`` is an object of which every
      member belongs to the request. ``messages`` is called ``input`` where the answer is a response resource.
    - ``wrap``: the answer is the value of this member, as Braintrust logs ``choices`` alone.
    - ``lone``: a half may be one message instead of a list.
    - ``status``: where the HTTP status stands.
    - ``cuts``: a text in the halves that shows that something was cut out, and a sentence that says so.
    - ``unfit``: why a record of this source is not to be read, or None.
    - ``tell``: what shows that a record is of this source, for one whose source was not said.
    """

    label: str
    reads: str
    gives: str
    quirks: str = ""
    request: str | None = None
    response: str | None = None
    parts: dict[str, str] = {}
    wrap: str | None = None
    lone: bool = False
    status: str | None = None
    cuts: dict[bytes, str] = {}
    unfit: Callable[[Members], str | None] | None = None
    tell: Tell | None = None


class Unreadable(Struct, frozen=True, kw_only=True):
    """A kind of log that cannot be read exactly: its name in a sentence, why, and what to do instead."""

    label: str
    why: str
    tell: Tell | None = None


# ---------------------------------------------------------------- records that are not to be read


def object_of(raw: Raw | None) -> Members:
    """The members of an object; none where the value is no object."""
    return members_of(raw) if raw is not None and kind(raw) == "an object" else {}


def _word(members: Members, key: str) -> str:
    return text_of(members.get(key)) or ""


LITELLM_CALLS: Final = frozenset(["completion", "acompletion", "responses", "aresponses"])


def _not_a_chat_call(members: Members) -> str | None:
    call = _word(members, "call_type")
    if call and call not in LITELLM_CALLS:
        return "a call of another API (call_type), expected completion or responses"
    if _word(members, "messages") == "redacted-by-litellm":
        return "the messages were redacted before they were logged"
    return None


def _not_a_generation(members: Members) -> str | None:
    row = _word(members, "type")
    return "a row of another type than GENERATION" if row and row != "GENERATION" else None


def _not_an_llm_run(members: Members) -> str | None:
    if _word(members, "run_type") not in ("", "llm"):
        return "a run of another type than llm"
    inputs = bytes(members.get("inputs", Raw(b""))).replace(b" ", b"")
    return LANGCHAIN_WHY if b'"lc":' in inputs else None


def _not_an_llm_span(members: Members) -> str | None:
    span = _word(object_of(members.get("span_attributes")), "type")
    return "a span of another type than llm" if span not in ("", "llm") else None


def _later_row(members: Members) -> str | None:
    number = members.get("SequenceNumber")
    if number is not None and bytes(number) not in (b"0", b"null"):
        return "a later piece of an exchange: join the rows of one CorrelationId by SequenceNumber first"
    return None


def _mocked_calls(members: Members) -> str | None:
    if "fncall_messages" in members:
        return "the calls stand in the text of the messages, since the model was given no tools"
    return None


def _not_a_model_event(members: Members) -> str | None:
    return "an event of another kind than model" if _word(members, "event") not in ("", "model") else None


LANGCHAIN_WHY: Final = (
    "LangChain's own messages (lc, kwargs) hold parsed arguments: log the requests themselves, as wrap_openai does"
)


# ---------------------------------------------------------------- what tells a source


def _langfuse(members: Members) -> bool:
    return bool({"traceId", "trace_id"} & members.keys()) and _word(members, "type") in LANGFUSE_TYPES


LANGFUSE_TYPES: Final = frozenset(["GENERATION", "SPAN", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EMBEDDING"])


def _helicone(members: Members) -> bool:
    return "request_body" in members and bool({"response_body", "request_id"} & members.keys())


def _braintrust(members: Members) -> bool:
    return "input" in members and ("span_attributes" in members or "root_span_id" in members)


def _openhands(members: Members) -> bool:
    return {"messages", "response"} <= members.keys() and bool({"kwargs", "fncall_messages"} & members.keys())


def _apim(members: Members) -> bool:
    return bool({"RequestMessages", "ResponseMessages"} & members.keys())


def _model_event(members: Members) -> bool:
    return _word(members, "event") == "model" and "call" in members


IN_PLACE: Final = "the record, with both bodies converted where they stand"
TOGETHER: Final = "`request` and `response`, then what else the record holds"
ONE: Final = "the request"

SOURCES: Final[dict[str, Source]] = {
    "litellm": Source(
        label="a log record of LiteLLM",
        reads="`StandardLoggingPayload` (S3, GCS, callbacks): `messages`, `model`, `model_parameters`; `response`",
        gives=TOGETHER,
        quirks="calls of other APIs (`call_type`), redacted and truncated ones are refused",
        parts={"messages": "/messages", "model": "/model", "*": "/model_parameters"},
        response="/response",
        cuts={b"(litellm_truncated ": "LiteLLM cut a text out of the middle: log to a bucket, which keeps all of it"},
        unfit=_not_a_chat_call,
        tell=keys("messages", "model_parameters", "call_type"),
    ),
    "langfuse": Source(
        label="a row of Langfuse",
        reads="rows of type `GENERATION`: `input`, `output`, each JSON or JSON as a string",
        gives="the row, with both converted where they stand; an answer logged as one message becomes a list",
        quirks="old SDKs joined the arguments of parallel calls of a stream (`{…}{…}`): `arguments_parse`",
        request="/input",
        response="/output",
        lone=True,
        unfit=_not_a_generation,
        tell=_langfuse,
    ),
    "langsmith": Source(
        label="a run of LangSmith",
        reads="runs of type `llm` that `wrap_openai` logged: `inputs`, `outputs`",
        gives=IN_PLACE,
        quirks="`usage_metadata` is a name of its own: `dropped`; LangChain's messages are refused",
        request="/inputs",
        response="/outputs",
        unfit=_not_an_llm_run,
        tell=keys("inputs", "run_type"),
    ),
    "helicone": Source(
        label="a row of Helicone",
        reads="`request_body`, `response_body` (exported with `--include-body`)",
        gives=IN_PLACE,
        request="/request_body",
        response="/response_body",
        tell=_helicone,
    ),
    "braintrust": Source(
        label="a span of Braintrust",
        reads="spans of type `llm`: `input` (messages), `metadata` (model, tools, settings), `output` (choices)",
        gives=TOGETHER,
        quirks="streams were logged without finish_reason, and with the first call alone; attachments are refused",
        parts={"messages": "/input", "*": "/metadata"},
        response="/output",
        wrap="choices",
        cuts={b'"braintrust_attachment"': "an attachment stands in the place of a URL, and its bytes are elsewhere"},
        unfit=_not_an_llm_span,
        tell=_braintrust,
    ),
    "databricks": Source(
        label="a row of an inference table of Databricks",
        reads="`request`, `response`, both JSON as strings; `status_code`",
        gives="the row, with both converted where they stand, as strings",
        quirks="rows of failed calls are refused (`not_finished`)",
        request="/request",
        response="/response",
        status="/status_code",
    ),
    "weave": Source(
        label="a call of W&B Weave",
        reads="`inputs` (messages, model, tools), `output` (choices)",
        gives=IN_PLACE,
        quirks="references (`weave:///…`) in the place of objects are refused",
        request="/inputs",
        response="/output",
        cuts={b'"weave:///': "a reference stands in the place of a value: export with the references resolved"},
        tell=keys("op_name", "inputs"),
    ),
    "azure-apim": Source(
        label="a row of Azure API Management",
        reads="`RequestMessages`, `ResponseMessages` (table ApiManagementGatewayLlmLog)",
        gives="the row, with both lists converted where they stand",
        quirks="messages over 32 KB are cut into rows: join them by `CorrelationId` and `SequenceNumber` first",
        request="/RequestMessages",
        response="/ResponseMessages",
        lone=True,
        unfit=_later_row,
        tell=_apim,
    ),
    "openhands": Source(
        label="a completion log of OpenHands",
        reads="`messages`, `tools`, `kwargs`; `response`",
        gives=TOGETHER,
        quirks="models that were given their tools as text (`fncall_messages`) are refused",
        parts={"messages": "/messages", "tools": "/tools", "*": "/kwargs"},
        response="/response",
        unfit=_mocked_calls,
        tell=_openhands,
    ),
    "inspect": Source(
        label="a model event of Inspect AI",
        reads="events of kind `model`: `call.request`, `call.response`, which hold what went to the provider",
        gives="the event, with both converted where they stand",
        quirks="references (`attachment://…`) are refused: resolve them first",
        request="/call/request",
        response="/call/response",
        cuts={
            b"attachment://": "a reference stands in the place of a text: read the log with its attachments resolved"
        },
        unfit=_not_a_model_event,
        tell=_model_event,
    ),
    "nemo-gym": Source(
        label="a row of NeMo Gym",
        reads="`responses_create_params`, and in rollouts `response`",
        gives=IN_PLACE,
        quirks="rollouts hold tool outputs among the output items: towards Chat use `--at /response/output`",
        request="/responses_create_params",
        response="/response",
        tell=keys("responses_create_params"),
    ),
    "tau-bench": Source(
        label="a row of tau-bench",
        reads="`traj`, a message list",
        gives="the row, with the list converted where it stands",
        quirks="call ids repeat: `--repair rename-call-ids` makes them unique",
        request="/traj",
        tell=keys("traj", "reward"),
    ),
    "vcr": Source(
        label="an interaction of a VCR cassette",
        reads="cassettes written as JSON: `request.body`, `response.body.string`; streams are folded",
        gives="the interaction, with both converted where they stand, as strings",
        request="/request/body",
        response="/response/body/string",
        status="/response/status/code",
    ),
    "fine-tuning": Source(
        label="a row for fine-tuning",
        reads="`messages`, `tools`, `parallel_tool_calls`, or the older `functions`",
        gives=ONE,
        quirks="`weight` is `dropped`",
        parts={"*": ""},
    ),
    "huggingface": Source(
        label="a row of a data set",
        reads="columns `messages` and `tools`, each JSON or JSON as a string",
        gives=ONE,
        quirks="`--repair null-padding`, `stringify-arguments`, `fill-call-ids` for what table formats do to calls",
        parts={"*": ""},
    ),
    "openpipe": Source(
        label="a row of OpenPipe",
        reads="`messages`, `tools`",
        gives=ONE,
        quirks="every call id is empty: `--repair fill-call-ids` pairs by order",
        parts={"*": ""},
    ),
}
"""The sources that are told by where their bodies stand. Others are shapes of their own, in `converter.shapes`."""


# ---------------------------------------------------------------- sources that cannot be read exactly


def _span(members: Members) -> bool:
    if {"resourceSpans", "scopeSpans"} & members.keys():
        return True
    return "attributes" in members and bool({"span_id", "spanId", "kind", "trace_id", "traceId"} & members.keys())


def _spend_log(members: Members) -> bool:
    return {"request_id", "spend", "call_type"} <= members.keys()


def _datadog(members: Members) -> bool:
    meta = object_of(members.get("meta"))
    return bool({"input", "output"} & meta.keys()) and bool({"span_id", "ml_app", "kind"} & {*members, *meta})


def _inspect_log(members: Members) -> bool:
    return {"eval", "samples"} <= members.keys() or {"messages", "events", "scores"} <= members.keys()


UNREADABLE: Final[dict[str, Unreadable]] = {
    "litellm-spend": Unreadable(
        label="a row of LiteLLM's spend log",
        why="its texts are cut at 2,048 characters, arguments too: log to a bucket and use --from litellm",
        tell=_spend_log,
    ),
    "datadog": Unreadable(
        label="a span of Datadog",
        why="it holds parsed arguments and Python's spelling of the contents, not what was sent: log the requests",
        tell=_datadog,
    ),
    "opentelemetry": Unreadable(
        label="an OpenTelemetry span",
        why="its messages are taken apart into attributes, and may be cut: log the requests themselves",
        tell=_span,
    ),
    "openinference": Unreadable(
        label="a span of OpenInference (Phoenix)",
        why="its messages are taken apart into numbered attributes: log the requests themselves",
    ),
    "openllmetry": Unreadable(
        label="a span of OpenLLMetry",
        why="its messages are taken apart into numbered attributes: log the requests themselves",
    ),
    "vercel-ai": Unreadable(
        label="a span of the Vercel AI SDK",
        why="it holds the SDK's own messages with parsed arguments, not what was sent: log the requests themselves",
    ),
    "openrouter": Unreadable(
        label="a broadcast of OpenRouter",
        why="it is made of spans, one for each attempt of a provider: log the requests themselves",
    ),
    "langchain": Unreadable(label="a trace of LangChain", why=LANGCHAIN_WHY),
    "inspect-log": Unreadable(
        label="a log of Inspect AI",
        why="its messages hold parsed arguments; the model events hold what was sent: "
        "jq -c '.samples[].events[] | select(.event == \"model\")', then --from inspect",
        tell=_inspect_log,
    ),
    "openai-evals": Unreadable(
        label="a line of an evals log",
        why="it holds sampled texts alone, without calls",
        tell=keys("run_id", "event_id", "sample_id", "data"),
    ),
    "tensorzero": Unreadable(
        label="a row of TensorZero",
        why="its input and output are TensorZero's own blocks: log the requests themselves",
        tell=keys("inference_params", "input", "output"),
    ),
    "sharegpt": Unreadable(
        label="a ShareGPT row",
        why="its calls are text inside a turn, without ids",
    ),
}
"""Sources that are known by name only to be refused."""

_SIGNS: Final = """
    call_type traceId trace_id run_type request_body span_attributes root_span_id op_name RequestMessages
    ResponseMessages kwargs fncall_messages event responses_create_params traj spend meta resourceSpans scopeSpans
    attributes eval events run_id inference_params
"""
SIGNS: Final = frozenset(_SIGNS.split())
"""Keys of which every record that tells its source has one: most records are of none, and are asked no further."""
