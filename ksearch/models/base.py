"""What every model is: one method, a call in, an answer out. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ksearch.protocol import Cost
from ksearch.types import check, check_number

CHARS_PER_TOKEN = 3  # low on purpose (code has about 3.5): an estimate may err to the dear side only

MAX_TOKENS = 50_000_000  # of one reply; more is a mistake of the server's
MAX_USD = 10_000.0
MAX_NAME = 200  # characters of a model's name
NOT_BELIEVED = "reported and not believed"
_COUNTS = ("tokens_in", "tokens_out", "tokens_cached", "tokens_reasoning")


def _plausible(count: object, most: float) -> bool:
    return count is None or (not isinstance(count, bool) and isinstance(count, int | float) and 0 <= count <= most)


def estimate_tokens(text: str) -> int:
    """Tokens of a text, rather too many than too few: for reservations, and where a model reports none."""
    return -(-len(text) // CHARS_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class Call:
    """One question to a model. The parts stand in the order in which they change: providers cache the front."""

    role: str  # "planner", "writer"
    prompt: str  # what is new in this call
    stable: str = ""  # what earlier calls of this role and run began with, word for word
    system: str = ""
    request_id: str = ""
    answers_before: int = 0  # replies that this request already got and that were refused
    max_tokens: int | None = None  # of the reply, reasoning included
    temperature: float | None = None
    json_schema: Mapping[str, object] | None = None  # asked for where the model can be held to one
    timeout_s: float = 600.0  # for the whole reply
    once: bool = False  # a probe: what would be repeated is not

    def __post_init__(self) -> None:
        check(bool(self.role), "a call needs a role")
        check_number("timeout_s", self.timeout_s, 0.001)
        check(self.max_tokens is None or self.max_tokens > 0, f"max_tokens must be positive, got {self.max_tokens!r}")

    @property
    def user_text(self) -> str:
        return self.stable + self.prompt

    @property
    def text(self) -> str:
        """All of it as one text, for models that take only one."""
        return f"{self.system}\n\n{self.user_text}" if self.system else self.user_text


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model sent back. None: not reported. Unknown money is None, never zero."""

    text: str  # as it came; bytes that are no UTF-8 appear as lone surrogates
    raw: bytes  # the whole response, to be stored before it is read
    finish: str | None  # "stop", "length", "content_filter", "refusal", "error", "tool_call"
    model: str  # as the provider names what answered
    tokens_in: int | None = None  # cached ones included
    tokens_out: int | None = None  # reasoning included
    tokens_cached: int | None = None
    tokens_reasoning: int | None = None
    usd: float | None = None
    seconds: float = 0.0
    tries: int = 1  # calls it took
    sent: Mapping[str, object] = field(default_factory=dict)  # parameters that were really sent
    notes: tuple[str, ...] = ()  # what the user should know: a parameter dropped, a schema not held

    def __post_init__(self) -> None:
        """A count that cannot be is as good as none: it must neither stop the run nor empty its budget."""
        odd = [name for name in _COUNTS if not _plausible(getattr(self, name), MAX_TOKENS)]
        # No prompt has 0 tokens, nor has a text, and not more can be cached than there is.
        odd += ["tokens_in"] if self.tokens_in == 0 else []
        odd += ["tokens_out"] if self.tokens_out == 0 and self.text.strip() else []
        odd += ["tokens_cached"] if (self.tokens_cached or 0) > (self.tokens_in or 0) and not odd else []
        odd += [] if _plausible(self.usd, MAX_USD) else ["usd"]
        for name in odd:
            object.__setattr__(self, name, None)
        if odd:
            said = f"{NOT_BELIEVED}, so estimated or unknown: {', '.join(odd)}"
            object.__setattr__(self, "notes", (*self.notes, said))
        short = "".join(c for c in self.model[: MAX_NAME * 4] if c.isprintable())[:MAX_NAME]
        object.__setattr__(self, "model", short)

    def cost(self, call: Call) -> Cost:
        """What it cost. Tokens that were not reported are estimated from the texts."""
        tokens_in = estimate_tokens(call.text) if self.tokens_in is None else self.tokens_in
        tokens_out = estimate_tokens(self.text) if self.tokens_out is None else self.tokens_out
        return Cost(tokens_in + tokens_out, self.usd)


class Model(Protocol):
    """Who answers a planner's or a writer's prompt. Safe to call from several threads."""

    @property
    def name(self) -> str:
        """As the user wrote it: "openai:gpt-5"."""

    @property
    def context_tokens(self) -> int | None:
        """Size of the context window, where known."""

    def complete(self, call: Call) -> Answer:
        """Ask, and wait for the whole reply.

        Raises:
            ModelError: there is no reply; its subclass and attributes say whether to ask again and when.
        """


class AgentModel:
    """Nobody is called: requests wait until somebody tells the reply (a coding agent, a person, a test).

    Drivers recognise it by type and hand the request out instead of calling `complete`.
    """

    name = "agent"
    context_tokens: int | None = None

    def complete(self, call: Call) -> Answer:
        raise NotImplementedError("the model 'agent' is never called: requests wait for `ksearch tell` or MCP")


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs where no price list knows it, in US dollars per million tokens."""

    usd_in: float
    usd_out: float
    usd_cached: float | None = None  # None: as `usd_in`

    def __post_init__(self) -> None:
        for name in ("usd_in", "usd_out", "usd_cached"):
            if (value := getattr(self, name)) is not None:
                check_number(name, value, 0)

    def usd(self, tokens_in: int | None, tokens_out: int | None, tokens_cached: int | None) -> float | None:
        """The price of one reply; None where its tokens are not known."""
        if tokens_in is None or tokens_out is None:
            return None
        cached = min(tokens_cached or 0, tokens_in)
        rate = self.usd_in if self.usd_cached is None else self.usd_cached
        return ((tokens_in - cached) * self.usd_in + cached * rate + tokens_out * self.usd_out) / 1e6
