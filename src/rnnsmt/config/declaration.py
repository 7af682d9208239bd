"""How a section of the configuration is declared."""

from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform

from rnnsmt.base.fields import Field

Class = TypeVar("Class")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def section(cls: type[Class]) -> type[Class]:
    """Make a class of settings; ``rnnsmt.plan.validation`` refuses unknown keys and wrong values."""
    cls.__pydantic_config__ = {"extra": "forbid", "allow_inf_nan": False}  # type: ignore[attr-defined]
    return dataclass(frozen=True, kw_only=True, repr=cls.__repr__ is object.__repr__)(cls)


def auto(description: str, demo: int | str, **bounds: Any) -> Field:
    """Return the description of a field with another value for the demo corpus."""
    return Field(description, demo=demo, **bounds)
