"""Declaration of the sections of the configuration."""

from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform

from rnnsmt.base.fields import Field

Class = TypeVar("Class")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def section(cls: type[Class]) -> type[Class]:
    """Declare a class as a section of settings; ``rnnsmt.plan.validation`` refuses unknown keys and wrong values."""
    cls.__pydantic_config__ = {"extra": "forbid", "allow_inf_nan": False}  # type: ignore[attr-defined]
    return dataclass(frozen=True, kw_only=True, repr=cls.__repr__ is object.__repr__)(cls)


def auto(description: str, demo: int | str, **bounds: Any) -> Field:
    """Declare a field that may be ``auto``: ``demo`` for the demo corpus, the default of the field for others."""
    return Field(description, demo=demo, **bounds)
