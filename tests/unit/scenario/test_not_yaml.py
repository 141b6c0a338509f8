"""A mistake of YAML is located where it is, and explained with its remedy."""

from __future__ import annotations

import pytest

from plait.errors import ScenarioError
from plait.scenario import parse


@pytest.mark.parametrize(
    ("text", "place", "remedy"),
    [
        ("title: x\n  repeat: 3\n", "2:9", "align it with its field"),
        ("network:\n  hosts [a]\n  links: {}\n", "3:8", "write the `:` that is missing above"),
        (
            "hosts:\n  a: {}\n   b: {}\n",
            "3:4",
            "column 4, but its neighbours from line 2 on begin in column 3; align",
        ),
        ("hosts:\n  - a\n - b\n", "3:2", "its neighbours from line 1 on begin in column 1; align them"),
        ("  title: x\nrepeat: 3\n", "2:1", "the first field further right; align them"),
        ("title: x\n- b\n", "2:1", "indent these below the field to which they belong"),
        ("title: a: b\n", "1:9", "put a text that contains one in quotes"),
        ("links:\n  a {rate: 1mbit, delay: 1ms}\n  b: {}\n", "2:24", "write `name: {..}`"),
        ("title: [a, b\nnetwork: {}\n", "1:8", "the [ here is not closed; write ] at its end"),
        ("links: {a: {b: 1, c: 2}\nrepeat: 3\n", "1:8", "the { here is not closed; write } at its end"),
        ("links: {a: [b}\n", "1:14", "a comma is missing before this place, or ] for the [ before it"),
        ("routers:\n  a: {nat: 1}\n  lte {nat: [b]}\n", "3:16", "write `name: {..}`"),
        ("links:\n  a-b:{rate: 1mbit, delay: 2ms}\n", "2:26", "missing after `a-b:`; write `a-b: {..}`"),
        ("links:\n  a: b\n  c: }\n", "3:6", "a value is missing before this place"),
        ("links: {a: 1}}\n", "1:14", "check the `:` and the brackets before it"),
        ('title: "x" y\n', "1:12", "put the whole value in quotes, or remove this"),
        ('title: "x\nrepeat: 3\n', "1:8", 'write " at its end'),
        ("title: 'x\nrepeat: 3\n", "1:8", "write ' at its end"),
        ("title: x\nrepeat 3\nseed: 1\n", "2:1", "this line has no `:`; write `name: value`"),
        ("title: @x\n", "1:8", "a value cannot begin with @; put the value in quotes"),
        ("title: x\n\trepeat: 3\n", "2:1", "indent with spaces"),
    ],
)
def test_a_mistake_of_yaml_is_located_and_has_a_remedy(text: str, place: str, remedy: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        parse(text, "t.yaml")
    message = str(refused.value).splitlines()[0]
    assert message.startswith(f"t.yaml:{place}: ")
    assert remedy in message
    assert "<block" not in message
