"""Models behind an HTTP API, through pydantic-ai. Imported only when such a model is opened.

One call is one exchange over a client of its own: no connection or event loop outlives it, so a call can be made from
any thread and cut off at its deadline. A fresh TLS handshake costs about 0.1 s, a reply many seconds.
"""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Mapping
from dataclasses import replace

from pydantic_ai import (
    CachePoint,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    UserPromptPart,
)
from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import (
    AgentRunError,
    ContentFilterError,
    ModelConnectionError,
    ModelRequestTimeout,
    ModelTimeoutError,
    UserError,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings

from ksearch.errors import BadAnswer, BadModelRequest, ModelError, ModelTimeout, ModelUnavailable
from ksearch.models.base import Answer, Call, Price
from ksearch.models.bodies import error_code, is_utf8, read_directly, tells_of_cache
from ksearch.models.classify import clean, http_error, message_of
from ksearch.models.exchange import Exchange, TooLarge, WrongHost
from ksearch.models.providers import Endpoint, build

_CACHE_MARKS = frozenset({"anthropic"})  # others cache a repeated front by themselves, or need no marks
# The library's parser meets whatever a server sends, and fails in many ways when that is odd.
_READING = (ValueError, LookupError, TypeError, AttributeError)


class ProviderModel:
    """A model of one provider at one address.

    Args:
        endpoint: where, and with which key.
        price: for a model that no price list knows; without it such a model's cost stays unknown.
        context_tokens: size of the context window, where the library does not know it.
    """

    def __init__(self, endpoint: Endpoint, price: Price | None = None, context_tokens: int | None = None) -> None:
        self.endpoint = endpoint
        self.price = price
        self.name = f"{endpoint.provider.name}:{endpoint.model}"
        self.context_tokens = context_tokens
        self._takes_schema = True  # until it says otherwise
        self._who = self.name + (f" at {endpoint.base_url}" if endpoint.custom else "")
        # Said in the notes of each answer, by what was really sent.
        warnings.filterwarnings("ignore", message="Sampling parameters .* are not supported|Failed to extract usage")
        asyncio.run(self._probe())

    async def _probe(self) -> None:
        """Build the model once without sending anything, so that a missing package shows before a search begins."""
        async with self._exchange().client(1.0) as client:
            model = build(self.endpoint, client)
            if self.context_tokens is None and not self.endpoint.custom:
                self.context_tokens = model.profile.get("context_window")

    def _exchange(self) -> Exchange:
        return Exchange(self.endpoint.base_url, self.endpoint.custom, self.endpoint.api_key)

    def complete(self, call: Call) -> Answer:
        """Ask once. Not to be called where an asyncio loop runs (use a thread there).

        Raises:
            ModelError: there is no reply.
        """
        began = time.monotonic()
        exchange = self._exchange()
        notes: list[str] = []
        schema = call.json_schema is not None and self._takes_schema
        try:
            answer = self._ask(call, exchange, notes, schema=schema)
        except BadModelRequest as error:
            if not schema or not _about_schema(str(error)):
                raise
            self._takes_schema = False
            exchange = self._exchange()
            answer = self._ask(call, exchange, notes, schema=False)
        if call.json_schema is not None and not self._takes_schema:
            notes.append("the endpoint takes no JSON schema: the form of the reply was asked for in words only")
        return self._finish(answer, call, exchange, notes, time.monotonic() - began)

    def _ask(self, call: Call, exchange: Exchange, notes: list[str], *, schema: bool) -> Answer:
        try:
            response = asyncio.run(self._send(call, exchange, schema=schema))
        except ContentFilterError:
            return Answer("", exchange.body, "content_filter", self.endpoint.model)
        except UserError as error:
            raise BadModelRequest(f"{self._who}: {error}") from None
        except (AgentRunError, TooLarge, WrongHost, RecursionError, *_READING) as error:
            salvaged = self._salvage(error, exchange, call)
            notes.append("the response is not quite in the provider's own form; its text and usage were read directly")
            return salvaged
        return self._answer(response, exchange)

    async def _send(self, call: Call, exchange: Exchange, *, schema: bool) -> ModelResponse:
        settings = ModelSettings(timeout=call.timeout_s, request_timeout=call.timeout_s, max_retries=0)
        if call.max_tokens is not None:
            settings["max_tokens"] = call.max_tokens
        if call.temperature is not None:
            settings["temperature"] = call.temperature
        parameters = ModelRequestParameters()
        if schema and call.json_schema is not None:
            form = OutputObjectDefinition(json_schema=dict(call.json_schema), name="reply")
            parameters = ModelRequestParameters(output_mode="native", output_object=form)
        async with exchange.client(call.timeout_s) as client:
            model = build(self.endpoint, client)
            return await model_request(
                model, [self._message(call)], model_settings=settings, model_request_parameters=parameters
            )

    def _message(self, call: Call) -> ModelRequest:
        marked = call.stable and self.endpoint.provider.name in _CACHE_MARKS
        user = UserPromptPart([call.stable, CachePoint(), call.prompt] if marked else call.user_text)
        return ModelRequest([SystemPromptPart(call.system), user] if call.system else [user])

    def _salvage(self, error: Exception, exchange: Exchange, call: Call) -> Answer:
        """An answer out of what arrived, where it holds one; else the error it stands for."""
        if exchange.wrong_host:
            raise BadModelRequest(
                f"{self._who}: a request to {exchange.wrong_host} was stopped, so that the key stays home"
            )
        if exchange.status is not None and exchange.status >= 300:
            raise http_error(self._who, exchange.status, exchange.headers, exchange.body) from None
        if exchange.too_large:
            raise BadAnswer(f"{self._who} sent more than is read of one response", maybe_billed=True) from None
        if (code := error_code(exchange.body)) is not None:
            raise http_error(self._who, code, exchange.headers, exchange.body) from None
        answer = read_directly(exchange.body, self.endpoint.model)
        if answer is not None:
            return answer
        raise self._no_answer(error, exchange, call) from None

    def _no_answer(self, error: Exception, exchange: Exchange, call: Call) -> ModelError:
        if isinstance(error, ModelRequestTimeout | ModelTimeoutError):
            reached = not _never_connected(error)
            message = f"{self._who} gave no whole reply within {call.timeout_s:g} s"
            return ModelTimeout(message, maybe_billed=reached, raw=exchange.body)
        if isinstance(error, ModelConnectionError):
            sent = not _never_connected(error)
            what = "broke the connection off" if sent else "cannot be reached"
            return ModelUnavailable(f"{self._who} {what}: {_cause(error)}", maybe_billed=sent, raw=exchange.body)
        if exchange.status is None:
            return ModelUnavailable(f"{self._who}: {clean(str(error))}")
        said = message_of(exchange.body[:5_000].decode("utf-8", "replace"))
        return BadAnswer(
            f"{self._who} sent no valid response: {said or 'an empty one'}", maybe_billed=True, raw=exchange.body
        )

    def _answer(self, response: ModelResponse, exchange: Exchange) -> Answer:
        text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
        finish: str | None = response.finish_reason
        # The library takes <think> tags out of a completion, closed or not: a draft would pass for the reply. And bytes
        # that are no UTF-8 become other characters: a wrong text would pass for a program.
        if (direct := read_directly(exchange.body, self.endpoint.model)) is not None:
            text, finish = direct.text, direct.finish or finish
        elif not is_utf8(exchange.body):
            raise BadAnswer(f"{self._who} sent bytes that are not UTF-8", maybe_billed=True, raw=exchange.body)
        thinking = any(isinstance(part, ThinkingPart) for part in response.parts)
        usage = response.usage
        measured = not usage.unmeasured_requests
        answer = Answer(
            text=text,
            raw=exchange.body,
            finish=finish,
            model=response.model_name or self.endpoint.model,
            tokens_in=usage.input_tokens if measured else None,
            tokens_out=usage.output_tokens if measured else None,
            tokens_cached=usage.cache_read_tokens if measured and tells_of_cache(exchange.body) else None,
            tokens_reasoning=usage.output_reasoning_tokens if measured else None,
            notes=("the reply holds only reasoning",) if thinking and not text else (),
        )
        known = not self.endpoint.custom and None not in (answer.tokens_in, answer.tokens_out)
        return replace(answer, usd=_list_price(response)) if known else answer

    def _finish(self, answer: Answer, call: Call, exchange: Exchange, notes: list[str], seconds: float) -> Answer:
        sent = exchange.sent
        if call.temperature is not None and "temperature" not in str(sent):
            notes.append(f"temperature {call.temperature:g} was not sent: this model does not take it")
        if call.max_tokens is not None and not any("max" in key.lower() for key in _keys(sent)):
            notes.append(f"the limit of {call.max_tokens} tokens was not sent: this model does not take one")
        usd = answer.usd
        if self.price is not None:
            usd = self.price.usd(answer.tokens_in, answer.tokens_out, answer.tokens_cached)
        return replace(answer, usd=usd, seconds=seconds, sent=sent, notes=(*answer.notes, *notes))


def _keys(value: object) -> list[str]:
    if not isinstance(value, Mapping):
        return []
    return [str(key) for key in value] + [key for inner in value.values() for key in _keys(inner)]


def _about_schema(message: str) -> bool:
    words = (
        "response_format",
        "json_schema",
        "text.format",
        "output_config",
        "structured output",
        "responsejsonschema",
    )
    return any(word in message.lower() for word in words)


def _never_connected(error: BaseException) -> bool:
    phase = getattr(error, "phase", None)
    return str(getattr(phase, "value", phase)) == "connect"


def _cause(error: BaseException) -> str:
    inner = error.__cause__ or error.__context__
    while inner is not None and (inner.__cause__ or inner.__context__):
        inner = inner.__cause__ or inner.__context__
    return clean(str(inner or error) or type(inner or error).__name__)


def _list_price(response: ModelResponse) -> float | None:
    """US dollars by the price list, or None where the model is not in it: unknown is not free."""
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):
        return None
