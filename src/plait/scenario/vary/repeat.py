"""How often each case is tried: a number, or `until 2%`, until the mean is known so well."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Self

from pydantic_core import core_schema

from plait.units import Ratio

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue

MOST = 10_000
_LEAST_DEFAULT, _MOST_DEFAULT = 5, 100
_UNTIL = re.compile(
    r"until\s+(\S{1,20}\s*%)(?:\s*,\s*at\s+least\s+(\d{1,6}))?(?:\s*,\s*at\s+most\s+(\d{1,6}))?", re.ASCII
)


class Repeat(int):
    """The number of trials of each case: exactly, or at most when it is `until` the interval is narrow enough."""

    until: Ratio | None
    """Half of every case's 95 % interval is then to be at most this share of its mean. None: the number is fixed."""
    least: int
    """Trials of each case before that is looked at."""

    def __new__(cls, most: int, until: Ratio | None = None, least: int | None = None) -> Self:
        """A fixed number, or at most so many."""
        self = super().__new__(cls, most)
        self.until = until
        self.least = int(most) if least is None else least
        return self

    @classmethod
    def parse(cls, text: str) -> Self:
        """What `until 2%, at least 5, at most 100` says; ValueError says what would be right."""
        match = _UNTIL.fullmatch(text.strip())
        if match is None:
            raise ValueError(
                f"'{text[:60]}' is not understood; write a number, or for example until 2%, at least 5, at most 100"
            )
        until = Ratio.parse(match[1])
        least, most = int(match[2] or _LEAST_DEFAULT), int(match[3] or _MOST_DEFAULT)
        if not 0 < until <= 0.5:
            raise ValueError(f"'{match[1]}' is out of range; write something above 0% and up to 50%")
        if not 2 <= least <= most <= MOST:
            raise ValueError(
                f"at least {least}, at most {most} is not possible; an interval takes 2 trials, and there are "
                f"{MOST} at most"
            )
        return cls(most, until, least)

    def __str__(self) -> str:
        if self.until is None:
            return str(int(self))
        return f"until {self.until}, at least {self.least}, at most {int(self)}"

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Pydantic's way to read it: a whole number in bounds, or the text."""

        def read(value: Any, whole: core_schema.ValidatorFunctionWrapHandler) -> Repeat:
            if isinstance(value, cls):
                return value
            if isinstance(value, str) and value.strip().startswith("until"):
                return cls.parse(value)
            return cls(whole(value))

        return core_schema.no_info_wrap_validator_function(
            read,
            core_schema.int_schema(strict=True, ge=1, le=MOST),
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda value: int(value) if value.until is None else str(value)
            ),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """The schema for editors."""
        return {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": MOST},
                {
                    "type": "string",
                    "pattern": r"^until\s+\S+\s*%(\s*,\s*at least \d+)?(\s*,\s*at most \d+)?$",
                },
            ]
        }
