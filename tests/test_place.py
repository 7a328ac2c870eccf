"""A value is found by its pointer where it stands in the text, whatever stands around it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from converter import Refused, place

KEYS = st.sampled_from(["a", "b", "é", "a/b", "~", "", '"q', "\\", "x y", "0"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", "é😀", '}{][,:"', "\\"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)
SPACING = st.sampled_from([(",", ":"), (" , ", " : "), (",\n\t", ":\r\n")])


def pointers(value, path=""):
    """Every value with its pointer."""
    yield path, value
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from pointers(one, f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}")


@given(VALUES, SPACING, st.booleans(), st.sampled_from(["", " ", "\n"]))
def test_every_value_is_found_where_it_stands(value, spacing, ascii_only, around):
    text = (around + json.dumps(value, ensure_ascii=ascii_only, separators=spacing) + around).encode()
    for pointer, expected in pointers(value):
        start, end = place.find(text, pointer)
        found = json.loads(text[start:end])
        assert found == expected
        assert type(found) is type(expected)
        replaced = place.replaced(text, [((start, end), b'"new"')])
        assert json.loads(replaced) == _with(value, pointer, "new")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"n":12,"n":1,"b":{"c":3}}', '{"c":3}'),
        ('{"n":1.5 , "b":{"c":3},"n":1}', '{"c":3}'),
        ('{"n":"x\\"y","n":"x","b":{"c":3}}', '{"c":3}'),
        ('{"é":"é","é":"","b":{"c":3}}', '{"c":3}'),
        ('{"b":1,"n":12,"b":2,"n":1}', None),
    ],
)
def test_a_key_that_stands_twice_hides_none_behind_it(text, found):
    if found is None:
        with pytest.raises(Refused, match="duplicate_key"):
            place.find(text.encode(), "/b")
    else:
        assert text.encode()[slice(*place.find(text.encode(), "/b"))] == found.encode()


def test_a_key_that_stands_many_times_takes_no_time_squared(may_not_hang):
    text = b"{" + b'"n":10,' * 200_000 + b'"n":1,"b":1}'
    assert text[slice(*place.find(text, "/b"))] == b"1"


def _with(value, pointer, new):
    if not pointer:
        return new
    copy = json.loads(json.dumps(value))
    at = copy
    *steps, last = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    for step in steps:
        at = at[int(step) if isinstance(at, list) else step]
    at[int(last) if isinstance(at, list) else last] = new
    return copy


@pytest.mark.parametrize("pointer", ["/b", "/a/2", "/a/01", "/a/-", "/a/x", "/a/0/0", "a"])
def test_a_pointer_that_leads_nowhere_finds_nothing(pointer):
    assert place.look(b'{"a": [1, 2]}', pointer) is None


@pytest.mark.parametrize(
    "text", [b'{"a": 1, "b": [2], "a": 33}', b'{"\\u0061": "x", "b": 0, "a": "x"}', b'{"a": 1, "a": 1}']
)
def test_a_key_on_the_way_that_stands_twice_is_refused(text):
    with pytest.raises(Refused, match="duplicate_key"):
        place.look(text, "/a")


@pytest.mark.parametrize(
    "text", [b'{"b": 1, "a": [2], "b": [1, "}"]}', b'{"b": "a", "\\u0062": {"a": 1}, "a":[2], "b": 0}']
)
def test_a_key_beside_the_way_may_stand_twice(text):
    start, end = place.find(text, "/a")
    assert text[start:end] == b"[2]"
