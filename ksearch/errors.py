"""One error type per boundary. Each message is complete: what happened, where, and what to do about it."""

from __future__ import annotations


class KSearchError(Exception):
    """Base of every error that K-Search raises on purpose: its text is meant for the user."""


class StoreError(KSearchError):
    """The store could not be opened, read or written."""


class UnknownRun(StoreError):
    """The store holds no run of that name."""


class UnknownBlob(StoreError):
    """The store holds no blob of that SHA-256."""


class Conflict(StoreError):
    """Somebody else appended first. Read what is new, decide again, append again."""

    def __init__(self, message: str, actual_seq: int) -> None:
        super().__init__(message)
        self.actual_seq = actual_seq


class Corrupt(StoreError):
    """What was read is not what was written."""


class InvalidEdit(KSearchError):
    """A tree edit that breaks the tree's rules: shown to the planner, agent or person who asked for it."""


class InvalidReply(KSearchError):
    """A reply of the wrong kind, or to a request that nobody made. Nothing was recorded."""


class InvalidCommand(KSearchError):
    """A command, or a submitted program, that the run cannot take. Nothing was recorded."""


class TaskError(KSearchError):
    """A task folder that cannot be used. The message names the file, the line, the value and the fix."""


class CodecError(KSearchError):
    """Text or JSON that is not what it should be: the message names the place in it."""


class PromptError(KSearchError):
    """A prompt cannot be rendered: a template is broken."""


class PromptTooLong(PromptError):
    """What must be in a prompt does not fit its token limit."""


class Unavailable(KSearchError):
    """Whoever was to answer did not: a model, a worker, a machine. The work is asked again.

    Attributes:
        transient: the same call may work later; otherwise the run pauses until somebody acts.
        maybe_billed: what was reserved for the call counts as spent.
        until: not to be asked before then (seconds since the epoch): the run pauses, and goes on by itself.
    """

    transient = True
    maybe_billed = True
    until: float | None = None


class EvaluatorError(KSearchError):
    """The task's own code or this machine is at fault: no program can be measured until that is cured."""


class ModelSetupError(KSearchError):
    """A model cannot be used at all: unknown name, missing package, missing key. Said before anything is spent."""


class ModelError(Unavailable):
    """A model gave no reply. The subclasses say why, and with it whether to ask again.

    Attributes:
        transient: the same call may work later.
        retry_after_s: seconds that the provider asked to wait, where it said so.
        maybe_billed: the provider may have worked, and charge for it: what was reserved counts as spent.
        raw: what arrived, if anything, as it came.
        tries: calls sent before giving up.
    """

    def __init__(
        self, message: str, *, retry_after_s: float | None = None, maybe_billed: bool = False, raw: bytes = b""
    ) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.maybe_billed = maybe_billed
        self.raw = raw
        self.tries = 1


class ModelUnavailable(ModelError):
    """The provider cannot be reached, is overloaded or fails."""


class ModelTimeout(ModelError):
    """No whole reply within the time allowed. It may be billed, so it is not repeated without the caller's leave."""


class RateLimited(ModelError):
    """Too many calls at once: works again after a while."""


class BadAnswer(ModelError):
    """An answer that breaks the provider's own protocol: no JSON, no UTF-8, larger than is read."""


class QuotaExhausted(ModelError):
    """The account has no quota or money left: asking again does not help."""

    transient = False


class ProviderDown(ModelError):
    """The provider has failed again and again and is left alone until `until`. Nothing was sent."""


class BadKey(ModelError):
    """The provider does not accept the key."""

    transient = False


class ContextTooLong(ModelError):
    """The prompt does not fit the model's context window."""

    transient = False


class BadModelRequest(ModelError):
    """The provider rejects the request as such: unknown model, unknown parameter."""

    transient = False


class TranscriptExhausted(ModelError):
    """A recorded transcript holds no (further) reply to this request."""

    transient = False


class BadInput(KSearchError):
    """What a person gave on the command line cannot be used: a file, a name, a number."""


class ConfigError(BadInput):
    """A setting cannot be used. The message names where it came from: flag, environment, or file and key."""


class CertificateError(BadInput):
    """A certificate that was changed, is of another format, or contradicts itself. The message names the field."""


class AgentError(KSearchError):
    """What an agent asked for over MCP cannot be done. The message ends with the tool to call next."""


class TorchMissing(TaskError):
    """A task whose inputs and outputs are known only by running it, and torch is not installed."""
