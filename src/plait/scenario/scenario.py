"""The validated scenario: its generators are expanded to fields, and all its parts are consistent."""

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

from plait.errors import FieldMistakesError
from plait.scenario.check.events import WITHOUT_STATES
from plait.scenario.check.references import check
from plait.scenario.generators.written import write_out
from plait.scenario.messages import mistakes_in
from plait.scenario.mistakes import as_one_error
from plait.scenario.model import ScenarioModel
from plait.scenario.spelling import rewritten


class Scenario(ScenarioModel):
    """A scenario whose parts are consistent."""

    @model_validator(mode="wrap")
    @classmethod
    def _write_out(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Write out generated networks, traffic and programs, and keep the request."""
        if not isinstance(value, dict):
            return handler(value)
        today = rewritten(value)
        if today.mistakes:
            raise as_one_error(today.mistakes)
        value = today.fields
        try:
            written = write_out(value)
            if written is None:
                return handler(value)
            scenario = handler(written.fields)
        except FieldMistakesError as error:
            raise as_one_error(error.mistakes) from error
        except ValidationError as error:
            if written is None:
                raise
            raise as_one_error(written.relocated(mistakes_in(error, cls))) from error
        scenario._written = written  # noqa: SLF001 - of this class
        return scenario

    @model_serializer(mode="wrap")
    def _serialise(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Serialise generators as requested, so that their parameters can vary."""
        fields: dict[str, Any] = handler(self)
        request = self._written.asked if self._written is not None else {}
        return fields | {key: deepcopy(value) for key, value in request.items() if key in fields}

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> Scenario:
        mistakes = check(self, states_known=not (info.context or {}).get(WITHOUT_STATES))
        if self._written is not None:
            mistakes = self._written.relocated(mistakes)
        if mistakes:
            raise as_one_error(mistakes)
        return self
