"""Models: who answers a prompt. An API, a command, a recorded transcript, or an agent that is never called."""

from __future__ import annotations

from ksearch.models.base import AgentModel, Answer, Call, Model, Price, estimate_tokens
from ksearch.models.opening import open_model
from ksearch.models.retry import Retrying, RetryPolicy
from ksearch.models.transcript import Recorder, TranscriptModel

__all__ = [
    "AgentModel",
    "Answer",
    "Call",
    "Model",
    "Price",
    "Recorder",
    "RetryPolicy",
    "Retrying",
    "TranscriptModel",
    "estimate_tokens",
    "open_model",
]
