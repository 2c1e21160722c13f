"""A planner's reply: text to `Plan` or `Refusal`, never a guess."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from ksearch.protocol import Plan, Refusal
from ksearch.replies.jsontext import Found, NotJson, find_objects, loads
from ksearch.replies.text import MAX_PLAN_CHARS, nothing_found, prepare, refuse, unparsable
from ksearch.types import Action, Insert, Prune, TreeEdit, Update, Verdict

MAX_EDITS = 60
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")

Text = Annotated[str, Field(max_length=8_000)]
Reference = Annotated[str, Field(min_length=1, max_length=100)]


class CutOff(NotJson):
    """An object that the text ends within."""


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class InsertReply(_Strict):
    op: Literal["insert"]
    parent: Reference
    title: Annotated[str, Field(min_length=1, max_length=300)]
    name: Annotated[str, Field(max_length=64)] = ""
    rationale: Text = ""
    difficulty: Annotated[int, Field(ge=1, le=5)] = 3
    value: Annotated[float, Field(ge=0, le=1)] = 0.5
    predicted_speedup: Annotated[float, Field(ge=0, le=1_000_000)] | None = None
    workloads: Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=500)] = []
    enabling: bool = False


class UpdateReply(_Strict):
    op: Literal["update"]
    node: Reference
    value: Annotated[float, Field(ge=0, le=1)] | None = None
    difficulty: Annotated[int, Field(ge=1, le=5)] | None = None
    notes: Text | None = None


class PruneReply(_Strict):
    op: Literal["prune"]
    node: Reference
    reason: Text = ""


EditReply = Annotated[InsertReply | UpdateReply | PruneReply, Field(discriminator="op")]


class PlanReply(_Strict):
    assessment: Annotated[str, Field(max_length=40_000)] = ""
    edits: Annotated[list[EditReply], Field(max_length=MAX_EDITS)]


_MODELS: Mapping[str, type[_Strict]] = {"insert": InsertReply, "update": UpdateReply, "prune": PruneReply}


# Left to the parser: grammars of local models choke on long repetitions, strict modes refuse some of these.
_NOT_IN_SCHEMA = frozenset({"maxLength", "minLength", "maxItems", "default", "title", "discriminator"})


def plan_schema() -> dict[str, Any]:
    """The JSON schema of a plan reply, for models that can be held to one: its shape, without limits of length."""
    return _shape(PlanReply.model_json_schema())


def _shape(schema: dict[str, Any]) -> dict[str, Any]:
    shape: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            shape[key] = {name: _shape(inner) for name, inner in value.items()}
        elif key not in _NOT_IN_SCHEMA:
            shape[key] = _shape(value) if isinstance(value, dict) else value
            if isinstance(value, list):
                shape[key] = [_shape(item) if isinstance(item, dict) else item for item in value]
    return shape


def parse_plan(
    text: str,
    known_nodes: Collection[str],
    *,
    finish: str | None = None,
    known_workloads: Collection[str] | None = None,
) -> Plan | Refusal:
    """Read a planner's reply.

    The one JSON object that is a valid plan is taken, wherever it stands: bare, fenced, after prose. Two different
    valid ones are refused as ambiguous, an object inside a broken one is never looked at, and nothing is repaired.

    Args:
        text: the reply.
        known_nodes: ids of all nodes of the tree, closed ones too: whether an edit is still possible is the core's
            to say.
        finish: why the model stopped, where known ("length" makes it truncated).
        known_workloads: names that an insert may aim at; None leaves them unchecked.
    """
    answer = prepare(text, finish, MAX_PLAN_CHARS)
    if isinstance(answer, Refusal):
        return answer
    objects = find_objects(answer)
    if isinstance(objects, str):
        return unparsable(objects)
    plans: list[Plan] = []
    problems: list[tuple[bool, NotJson]] = []
    for found in objects:
        try:
            plan = _read(found, known_nodes, known_workloads)
        except NotJson as error:
            problems.append(("edits" in found.body, error))
            continue
        if plan not in plans:
            plans.append(plan)
    if len(plans) > 1:
        return unparsable(f"{len(plans)} different plans in one reply: answer with one JSON object")
    if plans:
        return plans[0]
    if problems:
        worst = max(problems, key=lambda p: p[0])[1]
        return refuse(Verdict.TRUNCATED if isinstance(worst, CutOff) else Verdict.UNPARSABLE, str(worst))
    return nothing_found(answer, 'no JSON object with the key "edits"')


def _read(found: Found, known_nodes: Collection[str], known_workloads: Collection[str] | None) -> Plan:
    """One object of the reply as a plan; a NotJson says what is wrong with it."""
    try:
        reply = PlanReply.model_validate(loads(found.body, found.line))
    except NotJson as error:
        if found.closed:
            raise
        raise CutOff(f"the JSON object that begins in line {found.line} never ends ({error})") from None
    except ValidationError as error:
        raise NotJson("; ".join(_say(detail) for detail in error.errors()[:3])) from None
    edits: list[TreeEdit] = []
    names: set[str] = set()
    for at, edit in enumerate(reply.edits):
        where = f"edits[{at}]"
        if isinstance(edit, InsertReply):
            edits.append(_insert(edit, where, names, known_nodes, known_workloads))
        elif isinstance(edit, UpdateReply):
            _known(edit.node, f"{where}.node", known_nodes)
            if edit.value is None and edit.difficulty is None and edit.notes is None:
                raise NotJson(f"{where}: an update needs at least one of value, difficulty, notes")
            edits.append(Update(edit.node, edit.value, edit.difficulty, edit.notes))
        else:
            _known(edit.node, f"{where}.node", known_nodes)
            edits.append(Prune(edit.node, edit.reason))
    return Plan(tuple(edits), reply.assessment)


def _insert(
    edit: InsertReply,
    where: str,
    names: set[str],
    known_nodes: Collection[str],
    known_workloads: Collection[str] | None,
) -> Insert:
    if edit.parent not in names:
        _known(edit.parent, f"{where}.parent", known_nodes, ", nor the name of an insert before it")
    if edit.name:
        if not _NAME.fullmatch(edit.name):
            raise NotJson(
                f"{where}.name: {edit.name!r} must be letters, digits, '_', '-' or '.', and begin with a letter"
            )
        if edit.name in names or edit.name in known_nodes:
            raise NotJson(f"{where}.name: {edit.name!r} is taken by another node: choose a new name")
        names.add(edit.name)
    if not edit.title.strip():
        raise NotJson(f"{where}.title: must not be blank")
    for workload in edit.workloads:
        if known_workloads is not None and workload not in known_workloads:
            raise NotJson(f"{where}.workloads: no workload {workload!r}; there are: {_some(known_workloads)}")
    action = Action(
        edit.title,
        edit.rationale,
        edit.difficulty,
        edit.predicted_speedup,
        tuple(edit.workloads),
        edit.enabling,
    )
    return Insert(edit.parent, action, edit.value, edit.name)


def _known(node: str, where: str, known_nodes: Collection[str], also: str = "") -> None:
    if node not in known_nodes:
        raise NotJson(f"{where}: {node!r} is no node of the tree{also}; there are: {_some(known_nodes)}")


def _some(names: Collection[str]) -> str:
    shown = list(names)[:20]
    return ", ".join(shown) + (", …" if len(names) > len(shown) else "") if shown else "none"


def _say(error: ErrorDetails) -> str:
    """A validation error as place, what is wrong, and the cure."""
    loc = [part for at, part in enumerate(error["loc"]) if not (at == 2 and part in _MODELS)]
    where = ""
    for part in loc:
        where += f"[{part}]" if isinstance(part, int) else f".{part}" if where else part
    kind = error["type"]
    given = f"{error['input']!r:.60}"
    if kind == "missing":
        return f"{where}: the key is missing"
    if kind == "extra_forbidden":
        op = next((str(part) for part in error["loc"][2:3] if part in _MODELS), "")
        model = _MODELS[op] if op else PlanReply
        return f"{where}: unknown key; {op or 'a plan'} has {', '.join(model.model_fields)}"
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return f'{where}.op: must be "insert", "update" or "prune"'
    if kind in ("int_type", "float_type", "int_from_float"):
        must = "a number without quotes" if kind == "float_type" else "a whole number without quotes or point"
        return f"{where}: must be {must}, got {given}"
    return f"{where or 'the reply'}: {error['msg']}, got {given}"
