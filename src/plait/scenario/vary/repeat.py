"""The number of trials of each case: fixed, or `until 2%` precision of the mean."""

from __future__ import annotations

import re
from typing import Any, Self

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema

from plait.units import Ratio

MOST = 10_000
_LEAST_DEFAULT, _MOST_DEFAULT = 5, 100
_UNTIL = re.compile(
    r"until\s+(\S{1,20}\s*%)(?:\s*,\s*at\s+least\s+(\d{1,6}))?(?:\s*,\s*at\s+most\s+(\d{1,6}))?", re.ASCII
)


class Repeat(int):
    """The number of trials of each case: exact, or with `until` the maximum."""

    until: Ratio | None
    """Target: half of every case's 95 % interval is at most this fraction of its mean. None: a fixed number."""
    least: int
    """Trials of each case before the first check of the target."""

    def __new__(cls, most: int, until: Ratio | None = None, least: int | None = None) -> Self:
        """Return a fixed number, or a maximum with `until`."""
        self = super().__new__(cls, most)
        self.until = until
        self.least = int(most) if least is None else least
        return self

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the value of `until 2%, at least 5, at most 100`. Raises ValueError with the remedy."""
        match = _UNTIL.fullmatch(text.strip())
        if match is None:
            raise ValueError(
                f"'{text[:60]}' is not a number of trials; write a number, or until 2%, at least 5, at most 100"
            )
        until = Ratio.parse(match[1])
        least, most = int(match[2] or _LEAST_DEFAULT), int(match[3] or _MOST_DEFAULT)
        if not 0 < until <= 0.5:
            raise ValueError(f"'{match[1]}' is out of range; write something above 0% and up to 50%")
        if not 2 <= least <= most <= MOST:
            raise ValueError(
                f"at least {least}, at most {most} is not possible; write 2 (which an interval needs) to "
                f"{MOST}, and the smaller number first"
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
        """Return the schema that accepts a whole number in bounds, or the text."""

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
        """Return the JSON schema."""
        return {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": MOST},
                {
                    "type": "string",
                    "pattern": r"^until\s+\S+\s*%(\s*,\s*at least \d+)?(\s*,\s*at most \d+)?$",
                },
            ]
        }
