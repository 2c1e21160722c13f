"""The settings of a run: defaults < file < environment < flags, and where each value came from.

The file is `ksearch.toml` in the current folder, or the one that `--config` or KSEARCH_CONFIG names. Its keys are
the fields of `RunConfig`, flat, plus `store`. A variable is the field in capitals after KSEARCH_.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ksearch.errors import ConfigError
from ksearch.protocol import Budget, Cost, SearchConfig

FILE = "ksearch.toml"
PREFIX = "KSEARCH_"
STORE_KEY = "store"
_FLAGS = {"writers": "writer"}  # flags that are named otherwise: this one is repeated

Whole = Annotated[int, Field(ge=1)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Names = Annotated[tuple[str, ...], Field(strict=False)]  # files and flags hold lists
Parallel = Annotated[
    str, BeforeValidator(lambda v: str(v) if type(v) is int else v), Field(pattern=r"^(auto|[1-9]\d{0,2})$")
]
Rates = Annotated[tuple[Amount, ...], Field(strict=False, min_length=2, max_length=3)]


class RunConfig(BaseModel):
    """All that a run is started with. Frozen into its log, so that it goes on as it began."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    task: str | None = None  # folder, or name of a bundled task
    model: str = "agent"  # who plans and writes; agent: nobody is called, answers come by `tell`
    planner_model: str | None = None  # None: as `model`
    writer_model: str | None = None
    writers: Names = ()  # several who write, instead of `writer_model`
    writer_choice: Literal["turn", "bandit"] = "turn"  # who of them is next; bandit: by gain per cost
    prices: dict[str, Rates] = Field(default_factory=dict)  # by model, USD per million tokens: in, out, cached
    base_url: str | None = None  # of an OpenAI-compatible server
    key_env: str | None = None  # name of the variable that holds its key
    record: str | None = None  # file that each model's reply is appended to: a transcript
    track: str | None = None  # who is told while it goes on: wandb, mlflow, otel; several with commas
    language: str | None = None  # to write in; None: the task's first
    parallel: Parallel = "1"  # model calls at once; auto: by devices and latencies; 1: the paper's straight line
    gpus: Whole | None = None  # to measure on; None: all that are visible, where `parallel` is not 1
    pool: Literal["local", "ray"] = "local"  # who measures: this host, or the machines of a Ray cluster
    ray_address: str | None = None  # HOST:PORT of its head; None: RAY_ADDRESS, else the cluster this host is part of
    gpu_model: str | None = None  # as Ray names it, where a cluster has several
    evaluations: Count = 120
    attempts: Count | None = None  # None: 3 times the evaluations
    tokens: Count | None = None
    usd: Amount | None = None
    minutes: Amount | None = None  # of working time
    stagnation: Whole = 7
    passing_weight: Whole | None = None  # towards stagnation, of an attempt that passes without improving; None: 1
    max_new_nodes: Whole = 3
    max_difficulty: Annotated[int, Field(ge=1, le=5)] = 4
    max_active: Whole = 1
    width: Whole = 1
    max_retries: Count = 3
    prompt_tokens: Whole = 24_000  # longest prompt, estimated; what fits less well is left out
    brief_prompts: bool = False  # the short forms, for small local models
    reply_tokens: Whole = 16_000  # longest reply of a model, its reasoning included
    reply_seconds: Seconds = 600.0  # longest wait for a reply of a model
    model_tries: Whole = 4  # calls in all, of one that fails in a way that passes
    retry_seconds: Seconds = 1.0  # before the second of them, doubled each time
    retry_limit_seconds: Seconds = 30.0  # a provider that asks for a longer wait pauses the run until then
    outage_failures: Whole = 3  # such calls in a row after which a provider is down: the run pauses, and asks it again
    outage_seconds: Seconds = 30.0  # until it is asked again; doubled each time, to 15 minutes
    outage_hours: Seconds = 24.0  # without a reply, after which it is not asked again by itself
    reserve_tokens: Count | None = None  # set aside before each model call; None: the worst case, see `reserve`
    reserve_usd: Amount | None = None  # None: the worst case by the models' prices, as far as they are known

    @property
    def search(self) -> SearchConfig:
        """The part that the core reads."""
        seconds = None if self.minutes is None else self.minutes * 60
        return SearchConfig(
            Budget(self.evaluations, self.attempts, self.tokens, self.usd, seconds),
            self.stagnation,
            self.max_new_nodes,
            self.max_difficulty,
            self.max_active,
            self.width,
            self.max_retries,
            self.reserve,
            self.writers if len(self.writers) > 1 else (),
            self.writer_choice == "bandit",
            self.passing_weight,
        )

    @property
    def planner(self) -> str:
        return self.planner_model or self.model

    @property
    def all_writers(self) -> tuple[str, ...]:
        return self.writers or (self.writer_model or self.model,)

    @property
    def reserve(self) -> Cost:
        """Worst case of one model call. Only a limit on tokens needs it: else nothing is held back."""
        worst = self.prompt_tokens + self.reply_tokens if self.tokens is not None else 0
        return Cost(worst if self.reserve_tokens is None else self.reserve_tokens, self.reserve_usd or 0.0)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration with the origin of each value, and remarks worth showing once."""

    config: RunConfig
    origins: Mapping[str, str]
    notes: tuple[str, ...] = ()

    def context(self) -> dict[str, str]:
        """What is kept in the run's log."""
        return {"config": self.config.model_dump_json(), "origins": json.dumps(dict(self.origins))}


def recorded(context: Mapping[str, str]) -> Loaded | None:
    """The configuration that a run was started with; None for a run that no face started.

    Raises:
        ConfigError: a later version wrote settings that this one does not know.
    """
    if "config" not in context:
        return None
    try:
        config = RunConfig.model_validate_json(context["config"])
        return Loaded(config, json.loads(context.get("origins", "{}")))
    except ValueError as error:
        raise ConfigError(
            f"the settings in the run's log cannot be read ({_first(error)}). Upgrade K-Search to go on with it"
        ) from error


def load(flags: Mapping[str, Any], env: Mapping[str, str] | None = None, file: str | Path | None = None) -> Loaded:
    """Join the four sources. `flags` holds None for what was not given.

    Raises:
        ConfigError: unknown key (with the likely one), wrong type or impossible value; it names the source.
    """
    env = os.environ if env is None else env
    values: dict[str, Any] = {}
    origins = dict.fromkeys(RunConfig.model_fields, "default")
    for name, value, origin in (*_from_file(env, file), *_from_env(env), *_from_flags(flags)):
        values[name] = _checked(name, value, origin)
        origins[name] = origin
    _check_writers(values, origins)
    return Loaded(RunConfig(**values), origins, _near_misses(env))


def changed(config: RunConfig, flags: Mapping[str, Any]) -> RunConfig:
    """The same settings but for what `flags` holds; None there stands for what was not given."""
    given = {name: _checked(name, value, origin) for name, value, origin in _from_flags(flags)}
    return config.model_copy(update=given)


def _check_writers(values: Mapping[str, Any], origins: Mapping[str, str]) -> None:
    writers, origin = values.get("writers", ()), origins["writers"]
    if writers and values.get("writer_model"):
        raise ConfigError(
            f"writers ({origin}) and writer_model ({origins['writer_model']}) both say who writes: give one"
        )
    if len(set(writers)) < len(writers) or not all(writers):
        raise ConfigError(f"{origin}: each writer is named once, got {', '.join(map(repr, writers))}")


def _from_flags(flags: Mapping[str, Any]) -> list[tuple[str, Any, str]]:
    given = ((name, value) for name, value in flags.items() if value is not None and value != [])
    return [(name, value, f"flag --{_FLAGS.get(name, name).replace('_', '-')}") for name, value in given]


def _from_env(env: Mapping[str, str]) -> list[tuple[str, Any, str]]:
    found = []
    for name in RunConfig.model_fields:
        variable = PREFIX + name.upper()
        if env.get(variable):
            found.append((name, _number_or_text(name, env[variable]), f"environment {variable}"))
    return found


def _from_file(env: Mapping[str, str], file: str | Path | None) -> list[tuple[str, Any, str]]:
    path = config_path(env, file)
    if path is None:
        return []
    found = []
    for name, value in read_file(path).items():
        if name == STORE_KEY:
            continue
        if name not in RunConfig.model_fields:
            raise ConfigError(f"{path}: unknown key {name!r}.{_meant(name)} Known: {', '.join(_keys())}.")
        found.append((name, value, f"file {path}"))
    return found


def config_path(env: Mapping[str, str], file: str | Path | None) -> Path | None:
    """The file that was named, or the one in the current folder if it is there."""
    if named := file or env.get(f"{PREFIX}CONFIG"):
        return Path(named)
    here = Path(FILE)
    return here if here.is_file() else None


def read_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"the settings file {path} cannot be read: {error.strerror}") from error
    except ValueError as error:  # not TOML, or not UTF-8
        raise ConfigError(f"{path} is not TOML: {error}") from error


def _number_or_text(name: str, text: str) -> Any:
    """Variables are text: true or false, or a number, where the field takes that only, else the text as it is."""
    kind = RunConfig.model_fields[name].annotation
    if name in ("writers", "prices"):
        return _listed(text)
    if "str" in str(kind) or "Literal" in str(kind):
        return text
    if kind is bool:
        return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}.get(text.lower(), text)
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _listed(text: str) -> Any:
    """JSON, or names with commas."""
    if not text.lstrip().startswith(("[", "{")):
        return [name.strip() for name in text.split(",")]
    try:
        return json.loads(text)
    except ValueError:
        return text


def _checked(name: str, value: Any, origin: str) -> Any:
    try:
        return getattr(RunConfig(**{name: value}), name)
    except ValidationError as error:
        raise ConfigError(f"{origin}: {name} = {value!r} cannot be used: {_first(error)}") from error


def _first(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    said = error.errors()[0]
    place = ".".join(str(part) for part in said["loc"][1:])
    return f"{said['msg'].lower()}{f' (at {place})' if place else ''}"


def _keys() -> list[str]:
    return sorted([*RunConfig.model_fields, STORE_KEY])


def _meant(name: str) -> str:
    near = difflib.get_close_matches(name, _keys(), 1)
    return f" Did you mean {near[0]!r}?" if near else ""


def _near_misses(env: Mapping[str, str]) -> tuple[str, ...]:
    """A misspelt variable would silently change nothing: say so. Others' variables are none of our business."""
    known = {PREFIX + key.upper() for key in (*_keys(), "config", "debug")}
    notes = []
    for name in env:
        if name.startswith(PREFIX) and name not in known:
            near = difflib.get_close_matches(name, known, 1, 0.85)
            notes += [f"{name} is not a setting and was not used; did you mean {near[0]}?"] if near else []
    return tuple(notes)
