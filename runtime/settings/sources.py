"""Where settings come from: a YAML file, the environment, and --set.

Each source gives (dotted name, value, where it was written), in the order in which it was written.
A name that is no setting is refused with the nearest one that is. What a value means and whether it
is in bounds is not known here.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

import yaml
from pydantic import ValidationError
from pydantic.fields import FieldInfo

VARIABLE_PREFIX = "MNEME_"
CONFIG_VARIABLE = "MNEME_CONFIG"  # no setting: it names the configuration file
# nor this: set by a node of a cluster for all its processes, it says where that node's disk is
NODE_VARIABLE = "MNEME_NODE_DATA_DIR"
# no settings either: clients in the same shell read them
CLIENT_VARIABLES = ("MNEME_BASE_URL", "MNEME_API_KEY")
CONFIG_BYTES_MAX = 1024 * 1024

Known = Mapping[str, FieldInfo]  # dotted name -> field, of every setting
Given = tuple[str, Any, str]  # dotted name, value, where it was written


class SettingsError(Exception):
    """The configuration cannot be used; the message is one sentence for the person who wrote it."""


def from_config(
    known: Known, config: Path | Mapping[str, Any] | None, widened: Collection[str] | None = None
) -> Iterator[Given]:
    """What a YAML file says, or its content as a nested mapping. widened: sections of which a name
    that is not known is left alone, as all of a section is that is not known; None for every name
    to be known. Raises SettingsError.
    """
    if config is None:
        return
    origin = str(config) if isinstance(config, Path) else "the built-in profile"
    content = _read_yaml(config) if isinstance(config, Path) else config
    if not isinstance(content, Mapping):
        raise SettingsError(
            f"The configuration file {origin} must hold a mapping of sections, not a "
            f"{type(content).__name__}."
        )
    sections = {name.split(".")[0] for name in known if "." in name}
    for name, value in content.items():
        if widened is not None and name not in sections and isinstance(value, Mapping | None):
            continue
        if name not in sections:
            yield _known(known, str(name), origin), value, origin
        elif isinstance(value, Mapping):
            for key, inner in value.items():
                if _is_elsewhere(known, f"{name}.{key}", widened):
                    continue
                yield _known(known, f"{name}.{key}", origin), inner, origin
        elif value is not None:
            raise SettingsError(
                f"{name} in {origin} is a section: write its settings below it, each as `key: "
                "value`."
            )


class _EachKeyOnce(yaml.SafeLoader):
    """YAML's plain values, where no key is written twice: the last one would win unseen."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                raise SettingsError(
                    f"{key.value} is written twice in the configuration file, again at line "
                    f"{key.start_mark.line + 1}; put both together."
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _read_yaml(path: Path) -> Any:
    try:
        if path.stat().st_size > CONFIG_BYTES_MAX:
            raise SettingsError(
                f"The configuration file {path} is larger than {CONFIG_BYTES_MAX} bytes."
            )
        return yaml.load(path.read_text(encoding="utf-8"), _EachKeyOnce) or {}
    except FileNotFoundError:
        raise SettingsError(f"The configuration file {path} does not exist.") from None
    except (OSError, UnicodeDecodeError) as unreadable:
        raise SettingsError(
            f"The configuration file {path} cannot be read: {unreadable}."
        ) from None
    except yaml.YAMLError as malformed:
        mark = getattr(malformed, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        raise SettingsError(f"The configuration file {path} is not valid YAML{where}.") from None


def from_environ(
    known: Known, environ: Mapping[str, str], widened: Collection[str] | None = None
) -> Iterator[Given]:
    """What variables of the environment say. widened: as of a file. Raises SettingsError."""
    for variable in sorted(environ):
        if variable.startswith(VARIABLE_PREFIX) and variable not in (
            CONFIG_VARIABLE,
            NODE_VARIABLE,
            *CLIENT_VARIABLES,
        ):
            origin = f"the environment variable {variable}"
            name = variable.removeprefix(VARIABLE_PREFIX).lower().replace("__", ".")
            if _is_elsewhere(known, name, widened):
                continue
            name = _known(known, name, origin, spelling=_variable)
            yield name, _parsed(known[name], environ[variable]), origin


def from_overrides(known: Known, overrides: Iterable[str] | Mapping[str, Any]) -> Iterator[Given]:
    """What --set says, as texts or as a mapping. Raises SettingsError."""
    origin = "the command line"
    if isinstance(overrides, Mapping):
        for name, value in overrides.items():
            yield (
                _known(known, name, origin),
                _parsed(known[name], value) if isinstance(value, str) else value,
                origin,
            )
        return
    for text in overrides:
        name, equals, value = text.partition("=")
        if not equals:
            raise SettingsError(f"--set {text} must have the form section.key=value.")
        name = _known(known, name.strip(), origin)
        yield name, _parsed(known[name], value), origin


def _is_elsewhere(known: Known, name: str, widened: Collection[str] | None) -> bool:
    """Whether a name is left alone: one that is not known, of a section that plugins add to, or of
    which no setting is known.
    """
    section, dot, _ = name.partition(".")
    if widened is None or not dot or name in known:
        return False
    return section in widened or not any(other.startswith(f"{section}.") for other in known)


def _variable(name: str) -> str:
    return VARIABLE_PREFIX + name.replace(".", "__").upper()


def _known(known: Known, name: str, origin: str, spelling: Any = str) -> str:
    """The name itself when it is a setting; SettingsError with the nearest one otherwise."""
    if name in known:
        return name
    # A bare key ("port") is nearest to the full names that end in it, which plain similarity would
    # rank low.
    if not name:
        raise SettingsError(f"A value in {origin} has no name before it.")
    nearest = [
        full for full in known if full.rpartition(".")[2] == name
    ] or difflib.get_close_matches(name, known, n=1, cutoff=0.0)
    raise SettingsError(
        f"{name} in {origin} is not a setting; the nearest is {spelling(nearest[0])}."
    )


def _parsed(field: FieldInfo, text: str) -> Any:
    """A value given as text, as far as its setting's type needs it: lists, absence; numbers and
    booleans pydantic reads itself.
    """
    annotation = field.annotation
    if type(None) in get_args(annotation) and text.strip().lower() in ("", "null", "none"):
        return None
    if tuple in (get_origin(annotation), *map(get_origin, get_args(annotation))):
        return [part.strip() for part in text.strip().strip("[]").split(",") if part.strip()]
    return text


def sentence(known: Known, invalid: ValidationError, origins: Mapping[str, str]) -> str:
    """The first finding of pydantic, in the order of the settings, as one sentence with the key and
    its source, and without the rejected value.
    """
    places = {name: place for place, name in enumerate(known)}
    name, message = min(
        (
            (_setting_at(known, finding["loc"]), _said(finding["msg"]))
            for finding in invalid.errors(
                include_url=False, include_input=False, include_context=False
            )
        ),
        key=lambda found: places.get(found[0], len(places)),
    )
    if name not in known:  # a finding about several settings together: its message opens with one
        name = message.split(" ", 1)[0]
        return f"{message} (set in {origins[name]})." if name in origins else f"{message}."
    return (
        f"{name} in {origins.get(name, 'the defaults')} is not valid: "
        f"{message[:1].lower()}{message[1:]}."
    )


def _said(message: str) -> str:
    """pydantic's words, but for what it says of a secret: that it has items."""
    message = message.removeprefix("Value error, ")
    if not message.startswith("Value should have"):
        return message
    return re.sub(r"\bitems?\b", "characters", message).replace(" after validation", "")


def _setting_at(known: Known, location: tuple[int | str, ...]) -> str:
    """The setting that a finding is about, or the section, or "" for the whole. pydantic appends
    the member of a union to the location, such as http.tls_certfile.function-after.
    """
    name = ".".join(str(part) for part in location if isinstance(part, str))
    while name not in known and "." in name:
        name = name.rpartition(".")[0]
    return name
