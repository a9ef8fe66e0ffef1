"""Declaration of a setting: type, unit, bounds, label, step and help."""

from collections.abc import Mapping
from enum import StrEnum
from math import inf
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal, get_args, get_origin

from msgspec import Struct, StructMeta
from msgspec.structs import replace

from core.base import validation
from core.base.errors import BadInput
from core.base.text import visible_line

MAX_LIST: Final = 10  # longest list of numbers
_MS_PER_MINUTE: Final = 60_000.0


class Unit(StrEnum):
    NONE = ""
    DAYS = "days"
    SHARE = "0..1"  # also written as a percentage: `20%`
    TOTAL = "results, decayed"
    COUNT = "count"
    MS = "ms"
    SECONDS = "seconds"
    MINUTES = "minutes"
    FACTOR = "factor"
    TOKENS = "tokens"
    CHARACTERS = "characters"
    CHOICE = "choice"


class Setting(Struct, frozen=True):
    """Declaration of one setting: `field: TYPE = Setting(default, help, ...)`."""

    default: Any
    help: str
    label: str = ""  # short name beside an input field, at most 16 characters; "" where no editor offers the setting
    unit: Unit = Unit.NONE
    least: float = 0  # lower bound of a number, or of the length of a text
    most: float = validation.MAX_AMOUNT  # upper bound of the same
    step: float = 1  # distance of one key press in an editor, in the unit that the editor shows
    offered: tuple[float, float] = (0, inf)  # range that an editor offers, in the unit that it shows
    replayed: bool = True  # whether states and inversions depend on it, so that `what-if` can replay them
    group: str = ""  # field of `Settings` that contains it; "" for a setting of no group
    field: str = ""  # field of the group
    kind: Any = None  # type of the value, without the annotation

    @property
    def name(self) -> str:
        """Full name in messages and files: `maturity.min_feedback`."""
        return f"{self.group}.{self.field}" if self.group else self.field

    @property
    def choices(self) -> tuple[str, ...]:
        """Return the allowed words of a `Literal` setting; empty for other types."""
        literals = (part for part in (self.kind, *get_args(self.kind)) if get_origin(part) is Literal)
        return tuple(word for literal in literals for word in get_args(literal))

    @property
    def editor_scale(self) -> float:
        """Return the value of one unit in an editor, such as 60,000 ms for a minute."""
        return _MS_PER_MINUTE if self.unit is Unit.MS else 1.0

    def value(self, settings: Any) -> Any:
        return getattr(getattr(settings, self.group) if self.group else settings, self.field)

    def with_value(self, settings: Any, value: Any) -> Any:
        """Return a copy of `settings` with this value; raises BadInput if invalid."""
        if not self.group:
            return replace(settings, **{self.field: value})
        group = replace(getattr(settings, self.group), **{self.field: value})
        return replace(settings, **{self.group: group})

    def check(self, value: Any, name: str) -> None:
        """Raise `BadInput` with `name` unless `value` is valid."""
        if self.kind is bool:
            validation.check_flag(value, name)
        elif self.kind is int:
            validation.check_count(value, name, int(min(self.most, validation.MAX_COUNT)))
        elif self.kind is float and self.least == validation.MIN_HALF_LIFE:
            validation.check_half_life(value, name)
        elif self.kind is float:
            validation.check_amount(value, name, self.most, least=self.least)
        elif self.kind is str:
            self._check_line(value, name)
        elif get_origin(self.kind) is tuple:
            if not isinstance(value, tuple) or len(value) > MAX_LIST:
                raise BadInput(f"{name} must be at most {MAX_LIST} numbers, not {validation.format_value(value)}")
            for number in value:
                validation.check_amount(number, name, self.most)
        else:
            validation.check_choice(value, name, self.choices)

    def _check_line(self, value: Any, name: str) -> None:
        """Raise `BadInput` unless `value` is one visible line, safe in files and prompts."""
        most = int(self.most)
        if not isinstance(value, str) or len(value.strip()) < self.least or visible_line(value, most) != value:
            limits = f"{self.least:g} to {most}" if self.least else f"at most {most}"
            raise BadInput(
                f"{name} must be a text of {limits} visible characters, not {validation.format_value(value)}"
            )

    def text(self, settings: Any) -> str:
        """Format the value as text that `parse` can read."""
        value = self.value(settings)
        if isinstance(value, bool):
            return "on" if value else "off"
        return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)

    def parse(self, text: str) -> Any:
        """Parse the text of a value; raises BadInput if it is invalid."""
        word = text.strip()
        value: Any = word
        if self.kind is bool:
            value = {"on": True, "off": False}.get(word, word)
        elif self.kind in (int, float):
            number = word.removesuffix("%") if self.unit is Unit.SHARE else word
            try:
                value = self.kind(number)
            except ValueError:
                value = text
            else:
                value = value / 100 if number != word else value
        self.check(value, self.name)
        return value


class _Declaring(StructMeta):
    """Metaclass that takes the defaults of the fields from their declarations."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> Any:
        settings = {field: value for field, value in namespace.items() if isinstance(value, Setting)}
        defaults = {field: setting.default for field, setting in settings.items()}
        group: Any = super().__new__(mcls, name, bases, namespace | defaults, **options)
        # Python 3.14 evaluates annotations when the finished class is asked for them.
        types = group.__annotations__ if settings else {}
        group.declarations = MappingProxyType(
            {field: replace(setting, field=field, kind=types[field]) for field, setting in settings.items()}
        )
        return group


class SettingsGroup(Struct, frozen=True, kw_only=True, metaclass=_Declaring):
    """Base class of a group of settings; checks each value against its declaration."""

    declarations: ClassVar[Mapping[str, Setting]]

    def __post_init__(self) -> None:
        for field, setting in self.declarations.items():
            setting.check(getattr(self, field), field)
