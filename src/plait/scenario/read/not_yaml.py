"""Explain why a text is not YAML: what is wrong there in plain words, and how to mend it."""

from __future__ import annotations

from ruamel.yaml.error import MarkedYAMLError, StringMark

Explained = tuple[StringMark | None, str]

_CLOSING = {"{": "}", "[": "]"}


def explained(error: MarkedYAMLError, text: str) -> Explained:
    """Return the place of the mistake that stopped the YAML parser, and the mistake with its remedy on one line."""
    at, begin = error.problem_mark or error.context_mark, error.context_mark
    problem = str(error.problem or error.context or "unreadable text").splitlines()[0]
    if at is None:
        return None, _unknown(problem)
    line = _line(text, at)
    if "\t" in line[: len(line) - len(line.lstrip())] or line[at.column : at.column + 1] == "\t":
        return at, "YAML does not allow tabs here; indent with spaces"
    if error.context == "while scanning a quoted scalar" and begin is not None:
        quote = _line(text, begin)[begin.column : begin.column + 1]
        return begin, f"the quotation that begins here does not end; write {quote} at its end"
    if problem == "could not find expected ':'" and begin is not None:
        return begin, "this line has no `:`; write `name: value`"
    if problem == "mapping values are not allowed here":
        return at, _second_colon(line, at.column)
    if problem.startswith("expected ',' or ") and begin is not None:
        return _not_closed(text, begin, at)
    if problem.startswith("expected '<document start>'"):
        return (
            at,
            f"this line begins in column {at.column + 1}, but the first field further right; align them",
        )
    if problem.startswith("expected <block end>") and begin is not None:
        return at, _block(line, begin, at)
    if problem.startswith("expected the node content"):
        return at, "a value is missing before this place; write it, or remove its name"
    if problem.endswith("that cannot start any token"):
        return at, f"a value cannot begin with {line[at.column : at.column + 1]}; put the value in quotes"
    return at, _unknown(problem)


def _unknown(problem: str) -> str:
    return f"this is not YAML: {problem}; check also the text before this place"


def _line(text: str, mark: StringMark) -> str:
    lines = text.splitlines()
    return lines[mark.line] if mark.line < len(lines) else ""


def _second_colon(line: str, column: int) -> str:
    before = line[:column]
    if (missing := _colon_before_bracket(before)) is not None:
        return missing
    if ": " in before:
        return "this line has a second `: `; put a text that contains one in quotes"
    return (
        "this line continues the value above; align it with its field, or write the `:` that is missing above"
    )


def _colon_before_bracket(before: str) -> str | None:
    """Return the mistake if a name and its bracket in the text of a line have no `: ` between them."""
    bracket = next((sign for sign in _CLOSING if sign in before), None)
    if bracket is None:
        return None
    name = before.partition(bracket)[0]
    if name.endswith(":"):
        return f"a space is missing after `{name.strip()}`; write `{name.strip()} {bracket}..{_CLOSING[bracket]}`"
    if ":" in name:
        return None
    return f"the name before {bracket} has no `:`; write `name: {bracket}..{_CLOSING[bracket]}`"


def _not_closed(text: str, begin: StringMark, at: StringMark) -> Explained:
    bracket = _line(text, begin)[begin.column : begin.column + 1]
    closing = _CLOSING.get(bracket, "the closing bracket")
    if at.line == begin.line:
        return at, f"a comma is missing before this place, or {closing} for the {bracket} before it; write it"
    return begin, f"the {bracket} here is not closed; write {closing} at its end"


def _block(line: str, begin: StringMark, at: StringMark) -> str:
    if line[at.column : at.column + 1] in {"}", "]", ","}:
        nothing = (
            f"{line[at.column]} closes or divides nothing here; check the `:` and the brackets before it"
        )
        return _colon_before_bracket(line[: at.column]) or nothing
    if line[: at.column].strip():
        return "this follows a complete value; put the whole value in quotes, or remove this"
    if at.column == begin.column:
        return (
            "entries with `- ` and fields are mixed here; indent these below the field to which they belong"
        )
    return (
        f"this line begins in column {at.column + 1}, but its neighbours from line {begin.line + 1} on "
        f"begin in column {begin.column + 1}; align them"
    )
