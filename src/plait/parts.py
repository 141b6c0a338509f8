"""The building blocks of records: what people write (`Part`), and what the plan holds (`Record`).

The fields of scenarios and of the hosts file, the plan and the kinds of traffic are made of them. The bounds of an
integer of the plan decide its type in Rust (`tools/contract.py`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from plait.label_text import LABEL_MAX, label_problem
from plait.units import Duration, Size, Within

Transport = Literal["tcp", "mptcp"]
Pause = Literal["before", "after"]
EngineName = Literal["virtual", "machine", "host", "remote"]
Whole = Annotated[int, Field(strict=True)]


GROUP = r"^[A-Za-z0-9][A-Za-z0-9_-]*$"
"""Pattern of the name of a group of flows."""

IfName = Annotated[str, Field(min_length=1, max_length=15)]
Address = Annotated[str, WithJsonSchema({"type": "string", "format": "ip"})]
"""An IPv4 or IPv6 address without a prefix length."""
Micros = Annotated[int, Field(ge=0)]
Span = Annotated[int, Field(ge=1)]
"""A length of time that is not zero, in the unit that the field names."""
Count = Annotated[int, Field(ge=1, lt=2**53)]
"""A number of bytes, messages or flows that is not zero. JSON holds integers up to 2^53 exactly."""
U16 = Annotated[int, Field(ge=0, lt=2**16)]
U32 = Annotated[int, Field(ge=0, lt=2**32)]
U64 = Annotated[int, Field(ge=0, lt=2**53)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
"""A ratio or a probability."""


@dataclass(frozen=True)
class Attribute:
    """The number of the netlink attribute that a field of a record becomes."""

    number: int


class Part(BaseModel):
    """A part of a scenario or of a result: immutable, and without unknown fields. It reads and writes aliases."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, serialize_by_alias=True, defer_build=True
    )


class Record(BaseModel):
    """A closed, immutable record: it refuses unknown fields and converts nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    def __copy__(self) -> Self:
        """Return a copy of the fields alone: a copy with an update derives its cached properties again."""
        copied = super().__copy__()
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        return copied


def _label(text: object) -> str:
    if not isinstance(text, str):
        raise ValueError(f"{str(text)[:40]} is not text; put quotes around it")  # noqa: TRY004  # as in _name
    problem = label_problem(text)
    if problem is not None:
        raise ValueError(problem)
    return text


def _keyword(text: object) -> str:
    """Return the name of a kernel module (a congestion control, a scheduler): at most 15 characters."""
    if (
        not isinstance(text, str)
        or not 1 <= len(text) <= 15
        or not text.replace("_", "a").replace("-", "a").isalnum()
    ):
        raise ValueError(
            f"{str(text)[:40]!r} cannot be a kernel name; write 1 to 15 letters, digits, '_' or '-'"
        )
    return text


def _kernel(value: object) -> object:
    """Return the name of a kernel as text; YAML reads 6.12 as a number."""
    if isinstance(value, float) and (written := getattr(value, "text", repr(value))) != repr(value):
        raise ValueError(f"without quotes {written} is the number {value!r}; write '{written}'")
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def listed(value: object) -> object:
    """Accept a single name without brackets."""
    return [value] if isinstance(value, str) else value


Listed = BeforeValidator(listed, json_schema_input_type=str | list[str])
"""Annotates a list of texts: a single one needs no brackets."""


def judged(value: object) -> object:
    """Accept names without their smallest differences of interest: one, or a list."""
    names = listed(value)
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        return value
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"'{twice[:60]}' occurs twice; remove one")
    return dict.fromkeys(names)


def optional(value: object) -> object:
    """Accept an entry without options (`h1-s1:`)."""
    if not isinstance(value, dict):
        return value
    return {name: {} if options is None else options for name, options in value.items()}


def names_of(kind: type[Part]) -> BeforeValidator:
    """Return a validator that accepts a list of names, or a mapping from names to options of this kind."""
    return BeforeValidator(_named, json_schema_input_type=list[str] | dict[str, kind | None])  # type: ignore[valid-type]  # made of a variable


def _named(value: object) -> object:
    """Return the mapping from names to options for a list of names."""
    if isinstance(value, (list, tuple)):
        twice = [name for name, n in Counter(map(str, value)).items() if n > 1]
        if twice:
            raise ValueError(f"'{twice[0][:40]}' occurs twice; remove one")
        return {str(name): {} for name in value}
    if isinstance(value, dict):
        return optional(value)
    raise ValueError(
        "this is neither a list of names nor a mapping from names to options; write for example [h1, h2]"
    )


def _sysctls(value: object) -> object:
    """Return the values as text for the kernel; they may be numbers, true/false, or lists of them."""
    if not isinstance(value, dict):
        return value

    def text(item: object) -> object:
        if isinstance(item, bool):
            return str(int(item))
        if isinstance(item, (list, tuple)):
            return " ".join(str(text(part)) for part in item)
        return str(item) if isinstance(item, int) else item

    return {name: text(item) for name, item in value.items()}


Label = Annotated[str, BeforeValidator(_label), Field(min_length=1, max_length=LABEL_MAX)]
Keyword = Annotated[str, BeforeValidator(_keyword)]
KernelName = Annotated[
    str,
    BeforeValidator(_kernel, json_schema_input_type=str | float),
    Field(min_length=1, max_length=400, pattern=r"^[!-~]+$"),
]
SysctlName = Annotated[str, Field(pattern=r"^net[./][a-z0-9_]+([./][A-Za-z0-9_-]+)+$", max_length=100)]
Sysctls = Annotated[
    dict[SysctlName, Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[!-~][ -~\t]*$")]],
    BeforeValidator(_sysctls, json_schema_input_type=dict[str, str | int | bool | list[int]]),
]


class Delay(Duration):
    """One-way delay of a link."""

    most = 60 * 10**9


Buffer = Annotated[Size, Within(least=4096, most=2**30)]
"""Size of a socket buffer; the kernel doubles it, and stores it in 31 bits."""
Start = Annotated[Duration, Within(most=3600 * 10**9, step=1000)]
"""A time in a trial."""
StartJitter = Annotated[Duration, Within(most=10 * 10**9, step=1000)]
"""The largest random delay of a start."""
Length = Annotated[Duration, Within(least=10**6, step=1000)]
"""A duration."""
Interval = Annotated[Duration, Within(least=10**6, most=60 * 10**9, step=1000)]
"""A sampling interval."""
