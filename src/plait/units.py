"""Quantities with units as types: rates, times, sizes, ratios, packet counts and queue lengths.

A quantity is a number with its unit (`5mbit`, `20ms`, `64KiB`, `1%`). plait refuses a bare number, because each field
would need a unit of its own that users have to remember. Each type is an `int` (or `float`) in its base unit, so that
arithmetic stays plain, and prints itself in the largest exact unit.

A megabit is 10^6 bit, `KB` is 1000 bytes and `KiB` is 1024. Rates and times ignore case (`5Mbit`, `20MS`), which is
unambiguous; sizes do not (`64kb` could be bits). A space may separate number and unit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic_core import core_schema

from plait.errors import printable

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue

_QUANTITY = re.compile(r"([+-]?)(\d{1,40}(?:\.\d{1,20})?|\.\d{1,20})\s*([^\d\s.+-][^\d]*)?", re.ASCII)
_LONGEST = 60


def _abbreviated(value: object) -> str:
    """Return the value as a message shows it, cut to a line."""
    text = printable(value[: _LONGEST + 1], keep="") if isinstance(value, str) else str(value)
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}.."
    return f"'{text}'" if isinstance(value, str) else text


def _split(value: object, noun: str, example: str) -> tuple[Fraction, str]:
    """Return the number and the unit of a quantity. Raises ValueError for any other form."""
    if isinstance(value, bool) or value is None or isinstance(value, (list, dict)):
        raise ValueError(f"{_kind(value)} is not {noun}; write for example {example}")
    text = str(value).strip()
    match = _QUANTITY.fullmatch(text)
    if match is None and len(text) > _LONGEST and text[:_LONGEST].isdigit():
        raise ValueError(f"{_abbreviated(value)} has too many digits; write for example {example}")
    if match is None:
        raise ValueError(
            f"{_abbreviated(value)} is not {noun}; write a number and its unit, for example {example}"
        )
    sign, number, unit = match.groups()
    if sign == "-":
        raise ValueError(f"{_abbreviated(value)} is negative; write for example {example}")
    if not unit:
        raise ValueError(f"{_abbreviated(value)} has no unit; write for example {example}")
    return Fraction(number), unit.strip()


def _kind(value: object) -> str:
    names = {bool: "true/false", type(None): "nothing", list: "a list", dict: "a mapping"}
    return names.get(type(value), _abbreviated(value))


class Text:
    """A value with a text form: `parse` reads it, `str` prints it, and pydantic and the JSON schema use that form."""

    __slots__ = ()

    @classmethod
    def parse(cls, value: object) -> Self:
        """Return `value` as a value of this type. Raises ValueError with the problem and the remedy."""
        raise NotImplementedError

    @classmethod
    def _schema(cls) -> JsonSchemaValue:
        """Return the JSON schema of the text form."""
        raise NotImplementedError

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls.parse, serialization=core_schema.to_string_ser_schema()
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return cls._schema()


class _Quantity(Text):
    """The base of rates, times and sizes: parsing, bounds, exact printing, JSON schema."""

    noun: ClassVar[str]
    example: ClassVar[str]
    units: ClassVar[dict[str, int]]
    """Factor of each unit by its printed name, the smallest (1) first."""
    least: ClassVar[int]
    most: ClassVar[int]
    step: ClassVar[int] = 1
    """The granularity: every value is a multiple of it."""
    any_case: ClassVar[bool] = False
    hints: ClassVar[dict[str, str]] = {}
    """Remedies for wrong units that look right, by lower-case unit."""

    @classmethod
    def parse(cls, value: object) -> Self:
        """Return `value` as a quantity. Raises ValueError with the problem and the remedy."""
        if isinstance(value, cls):
            return value
        number, unit = _split(value, cls.noun, cls.example)
        factor = cls._factor(unit)
        exact = number * factor
        if exact.denominator != 1:
            smallest = next(iter(cls.units))
            raise ValueError(
                f"{_abbreviated(value)} is finer than 1 {smallest}; round it to whole {smallest}"
            )
        return cls._bounded(int(exact), value)

    @classmethod
    def _factor(cls, unit: str) -> int:
        factors = {name.lower(): n for name, n in cls.units.items()} if cls.any_case else cls.units
        factor = factors.get(unit.lower() if cls.any_case else unit)
        if factor is not None:
            return factor
        hint = cls.hints.get(unit.lower())
        names = ", ".join(cls.units)
        raise ValueError(
            f"'{_abbreviated(unit)[1:-1]}' is not a unit of {cls.noun}; " + (hint or f"units are {names}")
        )

    @classmethod
    def _bounded(cls, base: int, value: object) -> Self:
        if not cls.least <= base <= cls.most:
            low, high = cls._format(cls.least), cls._format(cls.most)
            raise ValueError(f"{_abbreviated(value)} is out of range; write something from {low} to {high}")
        if base % cls.step:
            grain = cls._format(cls.step)
            raise ValueError(
                f"{_abbreviated(value)} is finer than {grain}; round it to a multiple of {grain}"
            )
        return cls(base)  # type: ignore[call-arg]  # every subclass is an int

    @classmethod
    def _format(cls, base: int) -> str:
        for name, factor in reversed(cls.units.items()):
            if base % factor == 0 and (base or factor == 1):
                return f"{base // factor}{name}"
        raise AssertionError("the smallest unit is 1")

    def __str__(self) -> str:
        return self._format(int(self))  # type: ignore[call-overload]  # every subclass is an int

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    @classmethod
    def _schema(cls) -> JsonSchemaValue:
        names = "|".join(re.escape(name) for name in cls.units)
        if cls.any_case:
            names = "|".join("".join(f"[{c}{c.upper()}]" if c.isascii() else c for c in n) for n in cls.units)
        return {
            "type": "string",
            "pattern": rf"^\+?(\d+(\.\d+)?|\.\d+)\s*({names})$",
            "description": f"{cls.noun}, from {cls._format(cls.least)} to {cls._format(cls.most)}",
            "examples": [cls.example.split()[0]],
        }


@dataclass(frozen=True)
class Within:
    """Narrower bounds of a quantity, as an annotation of its type: `Annotated[Size, Within(least=256 * 2**20)]`."""

    least: int | None = None
    most: int | None = None
    step: int | None = None

    def __get_pydantic_core_schema__(
        self, source: type[_Quantity], handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        bounds = {name: value for name, value in vars(self).items() if value is not None}
        narrow = type(source.__name__, (source,), bounds)
        # Values have the type itself: other processes do not know the narrow one.
        return core_schema.no_info_after_validator_function(source, handler(narrow))


class Rate(_Quantity, int):
    """A rate in bit/s."""

    noun = "a rate"
    example = "5mbit"
    units: ClassVar = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9, "tbit": 10**12}
    any_case = True
    least = 1_000
    most = 10**12
    hints: ClassVar = {
        **{f"{p}bit/s": f"write {p}bit" for p in ("", "k", "m", "g")},
        **{f"{p}bps": f"it could mean bits or bytes: write {p}bit" for p in ("", "k", "m", "g")},
        **{f"{p}b/s": f"it could mean bits or bytes: write {p}bit" for p in ("", "k", "m", "g")},
        **{f"{p}b": f"write {p}bit" for p in ("k", "m", "g")},
        **{f"{p}ibit": f"write a multiple of 1000 bit: {p}bit" for p in ("k", "m", "g")},
        **{p: f"write {p}bit" for p in ("k", "m", "g")},
    }


class Duration(_Quantity, int):
    """A length of time in nanoseconds."""

    noun = "a time"
    example = "20ms"
    units: ClassVar = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
    any_case = True
    least = 0
    most = 24 * 3600 * 10**9
    hints: ClassVar = {
        "µs": "write us", "μs": "write us", "usec": "write us", "msec": "write ms", "sec": "write s",
        "m": "write ms or min", "secs": "write s", "second": "write s", "seconds": "write s", "minutes": "write min",
    }  # fmt: skip

    @classmethod
    def _format(cls, base: int) -> str:
        # 60s reads better than 1min: plait parses minutes and hours, but does not print them
        units = {name: n for name, n in cls.units.items() if name not in ("min", "h")}
        for name, factor in reversed(units.items()):
            if base % factor == 0 and base:
                return f"{base // factor}{name}"
        return "0s"

    @property
    def us(self) -> int:
        """The time in microseconds, rounded to the nearest."""
        return (int(self) + 500) // 1000


class Size(_Quantity, int):
    """A number of bytes."""

    noun = "a size"
    example = "64KB (64 000 bytes) or 64KiB (65 536 bytes)"
    units: ClassVar = {
        "B": 1, "KB": 10**3, "KiB": 2**10, "MB": 10**6, "MiB": 2**20, "GB": 10**9, "GiB": 2**30, "TB": 10**12,
    }  # fmt: skip
    least = 1
    most = 10**12
    hints: ClassVar = {
        "kb": "write KB for 1000 bytes",
        "mb": "write MB for 1 000 000 bytes",
        "gb": "write GB for 10^9 bytes",
        "kib": "write KiB for 1024 bytes",
        "mib": "write MiB for 1 048 576 bytes",
        "gib": "write GiB for 2^30 bytes",
        **{p: f"write {p.upper()}B or {p.upper()}iB" for p in ("k", "m", "g")},
        **dict.fromkeys(("b", "byte", "bytes"), "write B"),
        **{f"{p}bit": "sizes are in bytes: write B, KB, MB .." for p in ("", "k", "m", "g")},
    }

    @classmethod
    def _factor(cls, unit: str) -> int:
        return super()._factor("KB" if unit == "kB" else unit)  # the SI's spelling


class Ratio(Text, float):
    """A fraction of one, written in percent: `1%` is 0.01."""

    @classmethod
    def parse(cls, value: object) -> Self:
        """Return `value` as a ratio. Raises ValueError with the problem and the remedy."""
        if isinstance(value, cls):
            return value
        number, unit = _split(value, "a ratio", "1%")
        if unit != "%":
            raise ValueError(
                f"'{_abbreviated(unit)[1:-1]}' is not a unit of a ratio; write a percentage such as 1%"
            )
        if number > 100:
            raise ValueError(f"{_abbreviated(value)} is out of range; write something from 0% to 100%")
        return cls(number / 100)

    def __str__(self) -> str:
        return f"{float(self) * 100:.12g}%"

    def __repr__(self) -> str:
        return f"Ratio({str(self)!r})"

    @classmethod
    def _schema(cls) -> JsonSchemaValue:
        return {"type": "string", "pattern": r"^(\d+(\.\d+)?|\.\d+)\s*%$", "examples": ["1%"]}


class Packets(Text, float):
    """A mean number of packets, at least 1: `4pkt`."""

    most: ClassVar[int] = 10**6

    @classmethod
    def parse(cls, value: object) -> Self:
        """Return `value` as a number of packets. Raises ValueError with the problem and the remedy."""
        if isinstance(value, cls):
            return value
        number, unit = _split(value, "a number of packets", "4pkt")
        if unit != "pkt":
            raise ValueError(f"'{_abbreviated(unit)[1:-1]}' is not a unit of packets; write for example 4pkt")
        if not 1 <= number <= cls.most:
            raise ValueError(f"{_abbreviated(value)} is out of range; write 1pkt to {cls.most}pkt")
        return cls(number)

    def __str__(self) -> str:
        return f"{float(self):.12g}pkt"

    def __repr__(self) -> str:
        return f"Packets({str(self)!r})"

    @classmethod
    def _schema(cls) -> JsonSchemaValue:
        return {"type": "string", "pattern": r"^(\d+(\.\d+)?|\.\d+)\s*pkt$", "examples": ["4pkt"]}


class Queue(Text):
    """The length of a drop-tail queue: packets (`100pkt`), bytes (`64KiB`) or bandwidth-delay products (`1bdp`)."""

    __slots__ = ("amount", "unit")
    most_packets: ClassVar[int] = 10**7
    most_bdp: ClassVar[int] = 1000

    def __init__(self, amount: Fraction | int, unit: str) -> None:
        self.amount = Fraction(amount)
        """The length in `unit`."""
        self.unit = unit
        """`pkt`, `B` or `bdp`."""

    @classmethod
    def parse(cls, value: object) -> Queue:
        """Return `value` as a queue length. Raises ValueError with the problem and the remedy."""
        if isinstance(value, cls):
            return value
        example = "100pkt, 64KiB or 1bdp"
        number, unit = _split(value, "a queue", example)
        name = unit.lower()
        if name in ("pkt", "pkts", "packet", "packets", "p"):
            if name != "pkt":
                raise ValueError(f"'{unit}' is not a unit of a queue; write {number}pkt")
            if number.denominator != 1 or not 1 <= number <= cls.most_packets:
                raise ValueError(
                    f"{_abbreviated(value)} is out of range; write 1pkt to {cls.most_packets}pkt"
                )
            return cls(number, "pkt")
        if name == "bdp":
            if not 0 < number <= cls.most_bdp:
                raise ValueError(
                    f"{_abbreviated(value)} is out of range; write more than 0bdp, up to {cls.most_bdp}bdp"
                )
            return cls(number, "bdp")
        try:
            return cls(int(Size.parse(value)), "B")
        except ValueError as error:
            if "not a unit" not in str(error):
                raise
            hint = Size.hints.get(name)
            raise ValueError(
                f"'{_abbreviated(unit)[1:-1]}' is not a unit of a queue; {hint or f'write for example {example}'}"
            ) from None

    def __str__(self) -> str:
        if self.unit == "B":
            return str(Size(int(self.amount)))
        return f"{float(self.amount):.12g}{self.unit}"

    def __repr__(self) -> str:
        return f"Queue({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Queue) and (self.amount, self.unit) == (other.amount, other.unit)

    def __hash__(self) -> int:
        return hash((self.amount, self.unit))

    @classmethod
    def _schema(cls) -> JsonSchemaValue:
        names = "pkt|bdp|" + "|".join(Size.units)
        return {
            "type": "string",
            "pattern": rf"^(\d+(\.\d+)?|\.\d+)\s*({names})$",
            "examples": ["100pkt", "64KiB", "1bdp"],
        }


class TimeText(Text):
    """A time of traffic with a form of its own, which equals others with the same text."""

    TIME: ClassVar[str] = r"(\d+(\.\d+)?|\.\d+)\s*(ns|us|ms|s|min|h)"
    """Pattern of a duration."""
    pattern: ClassVar[str] = ""
    examples: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and str(other) == str(self)

    def __hash__(self) -> int:
        return hash(str(self))

    @classmethod
    def _schema(cls) -> JsonSchemaValue:
        return {"type": "string", "pattern": cls.pattern, "examples": list(cls.examples)}
