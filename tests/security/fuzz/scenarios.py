"""The fuzzer mutates shipped scenarios as trees of values, as text and as bytes, and adds options of `--set`.

The input of a seed and a number is always the same.
"""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from plait.scenario.read import library
from plait.scenario.read.document import read

from . import words

ODD = ["\t", "\x00", "\x1b", "\u2028", "\ufeff", ":", ": ", "- ", "? ", "&a ", "*a", "!!map ", "|", ">", "%YAML 1.1",
       "---", "...", "{", "}", "[", "]", ",", '"', "'", "#", "<<: *a", "\r", "\n\n", " " * 40, "é",
       "\U0001f600"]  # fmt: skip


@dataclass(frozen=True)
class Input:
    """One input: the bytes of a scenario file, and options."""

    data: bytes
    overrides: tuple[str, ...]
    about: str
    """Of which scenario, and what was done to it."""


@cache
def _shipped() -> dict[str, str]:
    folder = library.folder()
    assert folder is not None
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.yaml"))}


@cache
def _tree(name: str) -> Any:
    return read(_shipped()[name]).value


def scenario_input(seed: int, number: int) -> Input:
    """Return the input of this number."""
    random = Random(f"scenario {seed} {number}")
    name = random.choice(list(_shipped()))
    way = random.choice(["tree", "tree", "tree", "text", "text", "bytes", "set"])
    text, overrides = _shipped()[name], ()
    if way == "tree":
        tree = deepcopy(_tree(name))
        for _ in range(random.choice([1, 1, 2, 3, 6])):
            tree = _changed(random, tree)
        text = (
            json.dumps(tree, indent=1, ensure_ascii=False).replace("NaN", ".nan").replace("Infinity", ".inf")
        )
    elif way == "text":
        for _ in range(random.choice([1, 1, 2, 4])):
            text = _edited(random, text)
    elif way == "set":
        overrides = tuple(_option(random, _tree(name)) for _ in range(random.choice([1, 1, 2, 3])))
    data = text.encode("utf-8", "surrogatepass")
    if way == "bytes":
        data = flipped(random, data)
    return Input(data, overrides, f"{name} {way}")


def flipped(random: Random, data: bytes) -> bytes:
    """Return some bytes changed, removed or put in, or the end cut off."""
    out = bytearray(data)
    for _ in range(random.choice([1, 2, 8])):
        at = random.randrange(len(out) + 1)
        kind = random.randrange(4)
        if kind == 0 and at < len(out):
            out[at] = random.randrange(256)
        elif kind == 1:
            out[at:at] = random.randbytes(random.choice([1, 4, 100]))
        elif kind == 2:
            del out[at : at + random.choice([1, 10, 200])]
        elif random.random() < 0.3:
            del out[at:]
    return bytes(out)


def places(tree: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value below `tree`."""
    entries = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [path for key, inner in entries for path in ((*at, key), *places(inner, (*at, key)))]


def value_at(tree: Any, path: tuple[Any, ...]) -> Any:
    """Return the value at a path."""
    for part in path:
        tree = tree[part]
    return tree


def _changed(random: Random, tree: Any) -> Any:
    """Return a tree with one change, in place where it can be."""
    there = places(tree)
    if not there or random.random() < 0.01:
        return words.value(random)
    path = random.choice(there)
    holder, key = value_at(tree, path[:-1]), path[-1]
    kind = random.randrange(10)
    if kind < 3:
        holder[key] = words.value(random)
    elif kind == 3:
        del holder[key]
    elif kind == 4:
        holder[key] = deepcopy(value_at(tree, random.choice(there)))
    elif kind == 5:
        donor = _tree(random.choice(list(_shipped())))
        holder[key] = deepcopy(value_at(donor, random.choice(places(donor))))
    elif kind == 6 and isinstance(holder, dict):
        holder[random.choice([words.field(random), f"{key}x", str(key)[:-1], str(key).upper()])] = holder.pop(
            key
        )
    elif kind == 7 and isinstance(value_at(tree, path), dict):
        value_at(tree, path)[words.field(random)] = words.value(random)
    elif kind == 8:
        _vary(random, tree, there)
    elif isinstance(holder, list):
        holder += [deepcopy(holder[key])] * random.choice([1, 3, 300])
    elif isinstance(tree, dict):
        tree[words.field(random)] = words.value(random)
    return tree


def _vary(random: Random, tree: Any, there: list[tuple[Any, ...]]) -> None:
    """Let something vary that did not, or differently."""
    if not isinstance(tree, dict):
        return
    vary = tree.setdefault("vary", {})
    path = ".".join(random.choice([str(part), str(part), "*"]) for part in random.choice(there))
    values = random.choice(
        [[words.value(random) for _ in range(3)], words.value(random), random.choice(words.RANGES)]
    )
    block = random.choice(["", "", "zip", "cases", "latin_hypercube", "exclude"])
    if isinstance(vary, dict):
        inner = {path: values}
        made = {
            "zip": inner,
            "cases": [inner],
            "exclude": [inner],
            "latin_hypercube": {"points": random.choice([2, 5, 1000]), "fields": inner},
        }
        vary |= {block: made[block]} if block else inner


def _edited(random: Random, text: str) -> str:
    """Return a text with one edit of lines or characters."""
    lines = text.splitlines(keepends=True) or [""]
    i, j = random.randrange(len(lines)), random.randrange(len(lines))
    kind = random.randrange(8)
    if kind == 0:
        del lines[i]
    elif kind == 1:
        lines.insert(j, lines[i] * random.choice([1, 1, 2, 400]))
    elif kind == 2:
        lines[i], lines[j] = lines[j], lines[i]
    elif kind == 3:
        lines[i] = " " * random.randrange(8) + lines[i].lstrip()
    elif kind == 4:
        split = random.randrange(len(lines[i]) + 1)
        lines[i] = lines[i][:split] + random.choice(ODD) + lines[i][split:]
    elif kind == 5:
        lines[i] = lines[i].replace(": ", ": &a ", 1)
        lines[j] = lines[j].partition(": ")[0].rstrip("\n") + ": *a\n"
    elif kind == 6:
        word = random.choice(lines[i].split() or [""])
        lines[i] = lines[i].replace(word, str(words.value(random)), 1) if word else lines[i]
    else:
        del lines[i:]
    return "".join(lines)


def _option(random: Random, tree: Any) -> str:
    """Return one `PATH=VALUE`."""
    path = random.choice(places(tree))
    parts = [random.choice([str(part), str(part), str(part), "*", "h*"]) for part in path]
    if random.random() < 0.3:
        parts[random.randrange(len(parts))] = words.field(random)
    if random.random() < 0.2:
        parts.append(words.field(random))
    value = words.value(random)
    text = value if isinstance(value, str) else json.dumps(value)
    return f"{'.'.join(parts)}{random.choice(['=', '=', '=', '=', '', '=='])}{text}"
