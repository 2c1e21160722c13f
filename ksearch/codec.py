"""Events and programs to JSON objects and back.

An event is written as `{"type": ..., "v": ..., ...fields}`; a member of a union carries its own `"type"`. What is
empty and may be is left out, but never a number: a default that changes later must not change an old run.
Reading is strict: an unknown field, a wrong type or a number that is not finite is an error that names the place.
Old versions are brought up to date by `UPCASTERS` before they are read.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import re
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from ksearch import events as ev
from ksearch.errors import CodecError
from ksearch.types import Evaluation, Program

Decoder = Callable[[Any, str], Any]
Upcaster = Callable[[dict[str, Any]], dict[str, Any]]

# Version of each event type, where it is not 1. Raise it, and add an upcaster, when a field changes its meaning
# or goes away; a new field with a default needs neither.
VERSIONS: Mapping[str, int] = {}
# (type, version) -> the same event one version later.
UPCASTERS: Mapping[tuple[str, int], Upcaster] = {}


def encode_event(event: ev.Event) -> dict[str, Any]:
    """The JSON object of an event, ready for the store."""
    name = _name(type(event))
    return {"type": name, "v": VERSIONS.get(name, 1), **_fields(event)}


def decode_event(body: Mapping[str, Any]) -> ev.AnyEvent:
    """The event of a JSON object.

    Raises:
        CodecError: not an event of ours, or one of a later version; the message names the field.
    """
    name, version, fields = _up_to_date(dict(body))
    known = _tagged(ev.AnyEvent)
    if name not in known:
        raise CodecError(
            f"event type {name!r} is unknown: it was written by a later K-Search. Upgrade to read this run"
        )
    return typing.cast(ev.AnyEvent, _decoder(known[name])(fields, f"{name} v{version}"))


def _up_to_date(body: dict[str, Any]) -> tuple[str, int, dict[str, Any]]:
    name, version = body.pop("type", None), body.pop("v", None)
    if not isinstance(name, str) or not isinstance(version, int):
        raise CodecError(f"an event needs a text 'type' and a whole number 'v', got {name!r} and {version!r}")
    current = VERSIONS.get(name, 1)
    if version > current:
        raise CodecError(f"{name} v{version} is newer than this K-Search reads (v{current}). Upgrade to read this run")
    while version < current:
        upcast = UPCASTERS.get((name, version))
        if upcast is None:
            raise CodecError(f"{name} v{version} is too old: there is no way from it to v{current}")
        body, version = upcast(body), version + 1
    return name, version, body


def encode_evaluation(done: Evaluation) -> dict[str, Any]:
    return _fields(done)


def decode_evaluation(body: Mapping[str, Any]) -> Evaluation:
    return typing.cast(Evaluation, _decoder(Evaluation)(body, "evaluation"))


def decode_program(data: bytes) -> Program:
    """A program from the bytes of its `canonical` form, as kept in the blob store.

    Raises:
        CodecError: the bytes are not such a form.
    """
    try:
        body = json.loads(data)
    except ValueError as error:
        raise CodecError(f"a stored program is not JSON: {error}") from error
    return typing.cast(Program, _decoder(Program)(body, "program"))


# --- to JSON ------------------------------------------------------------------------------------------------------


def _fields(value: Any) -> dict[str, Any]:
    found = {}
    cls: Any = type(value)
    for name, default, tagged in _plan(cls):
        field = getattr(value, name)
        if field != default or not _is_empty(field):
            found[name] = _encode(field, tagged)
    return found


def _is_empty(value: Any) -> bool:
    return value is None or value is False or (isinstance(value, str | tuple | Mapping) and not value)


@cache
def _plan(cls: Any) -> tuple[tuple[str, Any, bool], ...]:
    """Of each field: its name, its default, and whether it is a union whose members must be told apart."""
    hints = typing.get_type_hints(cls)
    rows = []
    for field in dataclasses.fields(cls):
        made = field.default_factory
        default = made() if made is not dataclasses.MISSING else field.default
        rows.append((field.name, default, bool(_classes_within(hints[field.name]))))
    return tuple(rows)


def _encode(value: Any, tagged: bool) -> Any:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise CodecError(f"{value!r} is not a finite number: it must not get into a log")
        return value
    if dataclasses.is_dataclass(value):
        return {"type": _name(type(value)), **_fields(value)} if tagged else _fields(value)
    if isinstance(value, Mapping):
        return {str(k): _encode(v, tagged) for k, v in value.items()}
    return [_encode(v, tagged) for v in value]


# --- from JSON ----------------------------------------------------------------------------------------------------


@cache
def _decoder(hint: Any) -> Decoder:
    """A function that checks and converts JSON to the type `hint`."""
    if hint in (int, float, str, bool):
        return _scalar(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _union(arguments)
    if origin is tuple:
        return _tuple(_decoder(arguments[0]))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(_decoder(arguments[1]))
    if issubclass(hint, enum.Enum):
        return _enum(hint)
    return _dataclass(hint)


def _scalar(hint: type) -> Decoder:
    def decode(value: Any, where: str) -> Any:
        exact = type(value) is hint or (hint is float and type(value) is int)
        if not exact or (isinstance(value, float) and not math.isfinite(value)):
            raise CodecError(f"{where}: {value!r} is not a {'finite number' if hint is float else hint.__name__}")
        return float(value) if hint is float else value

    return decode


def _union(members: tuple[Any, ...]) -> Decoder:
    optional, rest = type(None) in members, [m for m in members if m is not type(None)]
    inner = _decoder(rest[0]) if len(rest) == 1 else _tagged_union({_name(m): _decoder(m) for m in rest})
    return (lambda value, where: None if value is None else inner(value, where)) if optional else inner


def _tagged_union(decoders: Mapping[str, Decoder]) -> Decoder:
    def decode(value: Any, where: str) -> Any:
        name = value.get("type") if isinstance(value, Mapping) else None
        if not isinstance(name, str) or name not in decoders:
            raise CodecError(f"{where}: 'type' must be one of {', '.join(decoders)}, got {name!r}")
        return decoders[name]({k: v for k, v in value.items() if k != "type"}, where)

    return decode


def _tuple(inner: Decoder) -> Decoder:
    def decode(value: Any, where: str) -> Any:
        if not isinstance(value, list | tuple):
            raise CodecError(f"{where}: {value!r} is not a list")
        return tuple(inner(v, f"{where}[{i}]") for i, v in enumerate(value))

    return decode


def _mapping(inner: Decoder) -> Decoder:
    def decode(value: Any, where: str) -> Any:
        if not isinstance(value, Mapping):
            raise CodecError(f"{where}: {value!r} is not an object")
        return {k: inner(v, f"{where}[{k!r}]") for k, v in value.items()}

    return decode


def _enum(cls: type[enum.Enum]) -> Decoder:
    def decode(value: Any, where: str) -> Any:
        try:
            return cls(value)
        except ValueError as error:
            raise CodecError(f"{where}: {error}") from error

    return decode


def _dataclass(cls: type) -> Decoder:
    hints = typing.get_type_hints(cls)
    decoders = {f.name: _decoder(hints[f.name]) for f in dataclasses.fields(cls)}

    def decode(value: Any, where: str) -> Any:
        if not isinstance(value, Mapping):
            raise CodecError(f"{where}: {value!r} is not an object")
        try:
            return cls(**{k: decoders[k](v, f"{where}.{k}") for k, v in value.items()})
        except KeyError as error:
            raise CodecError(f"{where}: unknown field {error}") from error
        except (TypeError, ValueError) as error:
            raise CodecError(f"{where}: {error}") from error

    return decode


# --- names --------------------------------------------------------------------------------------------------------


def _name(cls: type) -> str:
    return _snake(cls.__name__)


@cache
def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


@cache
def _tagged(hint: Any) -> Mapping[str, type]:
    return {_name(member): member for member in typing.get_args(hint)}


@cache
def _classes_within(hint: Any) -> tuple[type, ...]:
    """The dataclasses of a union with several, wherever it stands within `hint`."""
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        members = tuple(a for a in arguments if dataclasses.is_dataclass(a))
        if len(members) > 1:
            return typing.cast(tuple[type, ...], members)
    return next((found for a in arguments if (found := _classes_within(a))), ())
