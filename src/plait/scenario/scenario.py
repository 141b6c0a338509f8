"""The scenario: what a person asks for, with its generators written out and its parts held together."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Self

from pydantic import (
    ModelWrapValidatorHandler,
    SerializerFunctionWrapHandler,
    ValidationError,
    ValidationInfo,
    model_serializer,
    model_validator,
)

from plait.scenario.check.events import WITHOUT_STATES
from plait.scenario.check.references import check
from plait.scenario.generators.written import GeneratorMistakes, write_out
from plait.scenario.mistakes import as_one_error
from plait.scenario.model import ScenarioModel
from plait.scenario.read.messages import mistakes_in


class Scenario(ScenarioModel):
    """A study, as asked for."""

    @model_validator(mode="wrap")
    @classmethod
    def _generated(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Networks and traffic that generators describe are written out; what was asked is kept."""
        if not isinstance(value, dict):
            return handler(value)
        try:
            written = write_out(value)
            if written is None:
                return handler(value)
            scenario = handler(written.fields)
        except GeneratorMistakes as error:
            raise as_one_error(error.mistakes) from error
        except ValidationError as error:
            if written is None:
                raise
            raise as_one_error(written.relocated(mistakes_in(error, cls))) from error
        scenario._written = written  # noqa: SLF001 - its own, while it is made
        return scenario

    @model_serializer(mode="wrap")
    def _as_asked(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """With generators as they were asked for, so that their parameters can vary."""
        fields: dict[str, Any] = handler(self)
        asked = self._written.asked if self._written is not None else {}
        return fields | {key: deepcopy(value) for key, value in asked.items() if key in fields}

    @model_validator(mode="after")
    def _holds_together(self, info: ValidationInfo) -> Scenario:
        mistakes = check(self, states_known=not (info.context or {}).get(WITHOUT_STATES))
        if self._written is not None:
            mistakes = self._written.relocated(mistakes)
        if mistakes:
            raise as_one_error(mistakes)
        return self
