"""Read the commands of a shell script as lists of words, without running any.

It substitutes what plain assignments set and repeats `for` loops over words. It reads the commands of conditions,
functions and other loops once, in the order of the text, and adds a remark.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

_MOST_STEPS = 20_000
_DEEPEST = 8
"""Loops in loops that it repeats."""
_MOST_LETTERS = 1000
"""Of a variable: one may be made of itself."""
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*")
_REDIRECTION = re.compile(r"(?<!\S)(?:\d?>{1,2}|&>|<)\s*(?:&\d|[^\s;&|]+)")
_SPACED = re.compile(r"\$\(\([^()]*\)\)")
_ASSIGNED = re.compile(r"(?P<name>\w+)=(?P<value>.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:\{(?P<braced>\w+)(?::?-(?P<default>[^{}]*))?\}|(?P<plain>\w+))")
_ARITHMETIC = re.compile(r"\$\(\((?P<left>\w{1,40})(?:(?P<sign>[-+*])(?P<right>\w{1,40}))?\)\)")
_SEQUENCE = re.compile(
    r"\$\(seq (?P<first>\d{1,5})(?: (?P<last>\d{1,5}))?\)|\{(?P<low>\d{1,5})\.\.(?P<high>\d{1,5})\}"
)
_LEADING = frozenset(
    ["do", "then", "else", "{", "!", "sudo", "time", "export", "local", "readonly", "declare"]
)
_ONCE = frozenset(["if", "elif", "while", "until", "case", "function", "select", "for"])
_REMARK = "conditions, functions and other loops: plait read their commands once, in the order of the text"


def commands(text: str, remarks: list[str]) -> list[list[str]]:
    """Return the words of each command; a variable without a value stays as it is.

    What the script does beyond that becomes a remark.
    """
    joined = _SPACED.sub(lambda match: match[0].replace(" ", ""), text.replace("\\\n", " "))
    simple = [words for line in joined.splitlines() for words in _split(line)]
    steps = iter(range(_MOST_STEPS))
    followed = list(_followed(simple, {}, remarks, steps))
    if next(steps, None) is None:
        remarks.append(f"the script beyond its first {_MOST_STEPS} commands")
    return followed


def _split(line: str) -> list[list[str]]:
    """Return the words of each command of a line."""
    plain = _REDIRECTION.sub(" ", _COMMENT.sub("", line)).removeprefix("$ ")
    lexer = shlex.shlex(plain, posix=True, punctuation_chars=";&|")
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError:  # a quote that ends on a later line
        words = plain.split()
    split: list[list[str]] = [[]]
    for word in words:
        if word.strip(";&|"):
            split[-1].append(word)
        else:
            split.append([])
    return split


def _followed(
    simple: Sequence[list[str]],
    variables: dict[str, str],
    remarks: list[str],
    steps: Iterator[int],
    depth: int = 0,
) -> Iterator[list[str]]:
    position = 0
    while position < len(simple) and next(steps, None) is not None:
        words = simple[position]
        position += 1
        while words and words[0] in _LEADING:
            words = words[1:]
        if words[:1] == ["for"] and words[2:3] == ["in"] and depth < _DEEPEST:
            end = _end(simple, position)
            for value in _values(" ".join(words[3:]), variables):
                if next(steps, None) is None:
                    return
                variables[words[1]] = value
                yield from _followed(simple[position:end], variables, remarks, steps, depth + 1)
            position = end + 1
            continue
        if words and (words[0] in _ONCE or words[0].endswith("()")):
            remarks.append(_REMARK)
            continue
        while words and (assigned := _ASSIGNED.fullmatch(words[0])):
            variables[assigned["name"]] = _substituted(assigned["value"], variables)[:_MOST_LETTERS]
            words = words[1:]
        if words:
            yield [
                part
                for word in words
                for part in (_substituted(word, variables).split() if "$" in word else [word])
            ]


def _end(simple: Sequence[list[str]], position: int) -> int:
    """Return the index of the `done` of the loop whose body begins at `position`."""
    depth = 1
    for index in range(position, len(simple)):
        words = [word for word in simple[index] if word not in _LEADING]
        depth += (words[:1] == ["done"]) * -1 + (words[:1] in (["for"], ["while"], ["until"], ["select"]))
        if not depth:
            return index
    return len(simple)


def _values(words: str, variables: dict[str, str]) -> list[str]:
    """Return the words that a loop's variable takes."""

    def numbers(match: re.Match[str]) -> str:
        first, last = match["first"] or match["low"], match["last"] or match["high"]
        ends = (int(first), int(last)) if last else (1, int(first))
        return " ".join(str(number) for number in range(ends[0], min(ends[1], ends[0] + _MOST_LETTERS) + 1))

    return _SEQUENCE.sub(numbers, _substituted(words, variables)).split()


def _substituted(text: str, variables: dict[str, str]) -> str:
    """Return the text with the values of variables, and of sums and products of two numbers."""

    def value(match: re.Match[str]) -> str:
        known = variables.get(match["braced"] or match["plain"], match["default"])
        return match[0] if known is None else known

    def result(match: re.Match[str]) -> str:
        sides = [variables.get(side, side) for side in match.group("left", "right") if side]
        if not all(re.fullmatch(r"\d{1,9}", side) for side in sides):
            return match[0]
        numbers = [int(side) for side in sides]
        if len(numbers) == 1:
            return sides[0]
        left, right = numbers
        return str({"+": left + right, "-": left - right, "*": left * right}[match["sign"]])

    return _ARITHMETIC.sub(result, _VARIABLE.sub(value, text))
