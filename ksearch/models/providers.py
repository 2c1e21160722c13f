"""Which providers there are: where they live, which variable holds their key, and which class speaks their protocol.

A provider is always named by the user; none is a default. Its key is read from its own variable and goes to its own
host. With another base URL the key of the vendor is not used: the user names a variable. A model's name may bring an
address of its own, and the variable of the key for it: "openai:qwen@http://gpu-box:8000/v1#QWEN_KEY".
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ksearch.errors import ModelSetupError

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.models import Model as LibraryModel


@dataclass(frozen=True, slots=True)
class Provider:
    name: str
    base_url: str  # empty: the user must give one
    key_env: str  # empty: needs no key
    extra: str  # pip extra of k-search
    model_class: str  # MODULE:CLASS of pydantic-ai
    provider_class: str = ""  # empty: any OpenAI-compatible service


_CHAT = "pydantic_ai.models.openai:OpenAIChatModel"

PROVIDERS: Mapping[str, Provider] = {
    provider.name: provider
    for provider in (
        Provider(
            "openai",
            "https://api.openai.com/v1",
            "OPENAI_API_KEY",
            "models",
            "pydantic_ai.models.openai:OpenAIResponsesModel",
            "pydantic_ai.providers.openai:OpenAIProvider",
        ),
        Provider(
            "openai-chat",
            "https://api.openai.com/v1",
            "OPENAI_API_KEY",
            "models",
            _CHAT,
            "pydantic_ai.providers.openai:OpenAIProvider",
        ),
        Provider(
            "anthropic",
            "https://api.anthropic.com",
            "ANTHROPIC_API_KEY",
            "anthropic",
            "pydantic_ai.models.anthropic:AnthropicModel",
            "pydantic_ai.providers.anthropic:AnthropicProvider",
        ),
        Provider(
            "google",
            "https://generativelanguage.googleapis.com",
            "GEMINI_API_KEY",
            "google",
            "pydantic_ai.models.google:GoogleModel",
            "pydantic_ai.providers.google:GoogleProvider",
        ),
        Provider("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "models", _CHAT),
        Provider("deepseek", "https://api.deepseek.com", "DEEPSEEK_API_KEY", "models", _CHAT),
        Provider("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY", "models", _CHAT),
        Provider("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", "models", _CHAT),
        Provider("together", "https://api.together.xyz/v1", "TOGETHER_API_KEY", "models", _CHAT),
        Provider("xai", "https://api.x.ai/v1", "XAI_API_KEY", "models", _CHAT),
        Provider("ollama", "http://localhost:11434/v1", "", "models", _CHAT),
    )
}
_COMPATIBLE = "pydantic_ai.providers.openai_compatible:OpenAICompatibleProvider"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A provider at a place, with its key: all that a call needs to be sent. The key is never shown."""

    provider: Provider
    model: str
    base_url: str
    custom: bool  # not the provider's own host
    api_key: str

    def __repr__(self) -> str:
        return f"Endpoint({self.provider.name}:{self.model} at {self.base_url})"


@dataclass(frozen=True, slots=True)
class Named:
    """A model as its name says: `base_url` and `key_env` None where the name brings no address of its own."""

    model: str
    base_url: str | None = None
    key_env: str | None = None


def taken_apart(name: str) -> Named:
    """NAME, NAME@URL or NAME@URL#VARIABLE."""
    model, at, rest = name.partition("@http")
    if not at:
        return Named(name)
    url, _, variable = f"http{rest}".partition("#")
    return Named(model, url.rstrip("/"), variable or None)


def resolve(provider_name: str, name: str, base_url: str | None, key_env: str | None) -> Endpoint:
    """The endpoint of a model. What its name says counts; `base_url` and `key_env` are for names that say nothing.

    Raises:
        ModelSetupError: the provider is unknown, the URL is none, or the key is missing.
    """
    provider = PROVIDERS.get(provider_name)
    if provider is None:
        known = ", ".join(PROVIDERS)
        raise ModelSetupError(
            f"no model provider {provider_name!r}; there are {known}. For any OpenAI-compatible server write "
            "openai:NAME@URL, or openai:NAME and give --base-url; other ways to name a model: command:CMD, agent, "
            "transcript:FILE"
        )
    named = taken_apart(name)
    if not named.model:
        raise ModelSetupError(f"{provider_name}: names no model. Write {provider_name}:NAME")
    if named.base_url is not None:
        base_url, key_env = named.base_url, named.key_env
    url = (base_url or provider.base_url).rstrip("/")
    _check_url(url)
    custom = url != provider.base_url
    return Endpoint(provider, named.model, url, custom, _key(provider, custom, key_env))


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ModelSetupError(f"the base URL {url!r} must begin with http:// or https:// and name a host")
    if parts.username or parts.password or parts.query:
        raise ModelSetupError("the base URL must hold no user, password or query: name the key's variable by --key-env")


def _key(provider: Provider, custom: bool, key_env: str | None) -> str:
    """The key, or "". With a custom URL only a variable that the user names is read."""
    variable = key_env or ("" if custom else provider.key_env)
    if not variable:
        return ""
    if not variable.isidentifier():  # not repeated: it may be the key itself
        raise ModelSetupError(
            f"{provider.name}: --key-env and #VARIABLE take the name of a variable, never the key itself"
        )
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ModelSetupError(
            f"{provider.name} needs a key: set the environment variable {variable} (export {variable}=...), "
            "or name another one by --key-env, or after the address (NAME@URL#VARIABLE). Keys are never taken from the "
            "command line"
        )
    return key


def build(endpoint: Endpoint, client: httpx2.AsyncClient) -> LibraryModel[Any]:
    """The library's model for one exchange over `client`.

    Raises:
        ModelSetupError: the package for this provider is not installed.
    """
    compatible = endpoint.custom and endpoint.provider.name.startswith("openai")
    provider_path = "" if compatible else endpoint.provider.provider_class
    model_path = _CHAT if compatible else endpoint.provider.model_class
    key = endpoint.api_key or "none"
    if provider_path:
        made = _load(provider_path, endpoint.provider)(base_url=endpoint.base_url, api_key=key, http_client=client)
    else:
        name = endpoint.provider.name
        # "max_tokens" is the name that every compatible server knows; the newer one is OpenAI's own. Whether a server
        # holds a reply to a schema is its own to say, and not to be guessed from the model's name.
        profile = {"openai_chat_supports_max_completion_tokens": False, "supports_json_schema_output": True}
        made = _load(_COMPATIBLE, endpoint.provider)(
            name, base_url=endpoint.base_url, api_key=key, http_client=client, profile=profile
        )
    model: LibraryModel[Any] = _load(model_path, endpoint.provider)(endpoint.model, provider=made)
    return model


def _load(path: str, provider: Provider) -> Any:
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except ImportError:
        raise ModelSetupError(
            f"the model provider {provider.name} needs a package that is not installed: "
            f"pip install 'k-search[{provider.extra}]'"
        ) from None
