"""How a section of the configuration is declared."""

from dataclasses import field
from typing import Any, TypeVar, dataclass_transform

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

Class = TypeVar("Class")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def section(cls: type[Class]) -> type[Class]:
    """Make a class of settings: unknown keys and wrong values are refused."""
    return dataclass(frozen=True, config=ConfigDict(extra="forbid", allow_inf_nan=False), kw_only=True)(cls)  # type: ignore[return-value]


def auto(description: str, demo: int | str, **bounds: Any) -> Any:
    """Return the description of a field with another value for the demo corpus."""
    return Field(description=description, json_schema_extra={"demo": demo}, **bounds)
