"""Between this task's protocol and the torch code it was made from. Written by K-Search; part of the task.

On a CPU a program gets NumPy arrays, which have no bfloat16 and no float8: such tensors are float32 there, holding
values of the narrow type. On a GPU it gets torch tensors as they are.
"""

from __future__ import annotations

import math
import threading
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode


def seed_of(source: Any) -> int:
    """A seed, drawn from the generator that the task is given: NumPy's, or torch's on the GPU."""
    if isinstance(source, np.random.Generator):
        return int(source.integers(1 << 62))
    return int(torch.randint(1 << 62, (), generator=source, device=source.device))


def generator(seed: int, device: str) -> torch.Generator:
    return torch.Generator(device).manual_seed(seed)


def outward(tensor: Any, device: str) -> Any:
    """A tensor as the task's protocol has it."""
    if device == "cuda":
        return torch.as_tensor(tensor, device="cuda").detach().contiguous()
    value = torch.as_tensor(tensor).detach().cpu()
    if value.dtype in (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2):
        value = value.float()
    return np.ascontiguousarray(value.numpy()).reshape(tuple(value.shape))


def inward(value: Any, dtype: str) -> torch.Tensor:
    """The tensor that the original code expects."""
    if not isinstance(value, torch.Tensor):
        value = np.asarray(value)
        value = torch.from_numpy(value if value.flags.writeable else value.copy())
    return value.to(getattr(torch, dtype))


def rounded(value: torch.Tensor, dtype: str) -> torch.Tensor:
    kind = getattr(torch, dtype)
    if dtype.startswith("float8"):
        most = torch.finfo(kind).max
        value = value.clamp(-most, most)
    return value.to(kind)


_TURN = threading.RLock()  # inputs are drawn in several threads


class _OnCpu(TorchFunctionMode):
    """Code that says device="cuda", run where there is none: the tensors are made on the CPU instead."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if _is_cuda(kwargs.get("device")):
            kwargs["device"] = "cpu"
        if func is torch.Tensor.cuda:
            return args[0]
        if func is torch.Tensor.to:
            args = tuple("cpu" if _is_cuda(a) else a for a in args)
        return func(*args, **kwargs)


def _is_cuda(device: Any) -> bool:
    return isinstance(device, str | torch.device) and str(device).startswith("cuda")


@contextmanager
def placed(device: str):
    """Where the original code makes its tensors, whatever it says itself.

    One thread at a time: the global generator, modules whose weights are swapped, and what is replaced are shared.
    """
    with _TURN, _placed(device):
        yield


@contextmanager
def _placed(device: str):
    if device == "cuda":
        with torch.no_grad(), torch.device("cuda"):
            yield
        return
    real, wait = torch.Generator, torch.cuda.synchronize
    torch.Generator = lambda *_, **__: real("cpu")  # a class: the mode below does not see it
    torch.cuda.synchronize = lambda *_: None
    try:
        with torch.no_grad(), _OnCpu():
            yield
    finally:
        torch.Generator, torch.cuda.synchronize = real, wait


def plain(data: Any, path: str = "") -> dict[str, Any]:
    """What is no tensor in nested tuples, lists and dicts, by its place."""
    if isinstance(data, torch.Tensor):
        return {}
    if not isinstance(data, dict | tuple | list):
        return {path: data}
    return {k: v for key, value in _items(data) for k, v in plain(value, _joined(path, key)).items()}


def leaves(data: Any, numbers: Any = (), path: str = "") -> list[tuple[str, torch.Tensor]]:
    """The tensors in nested tuples, lists and dicts, each with its place, and the numbers at the given places."""
    if isinstance(data, torch.Tensor):
        return [(path, data)]
    if path in numbers:
        return [(path, torch.tensor(data, dtype=torch.int64 if isinstance(data, int) else torch.float64, device="cpu"))]
    if not isinstance(data, dict | tuple | list):
        return []
    return [found for key, value in _items(data) for found in leaves(value, numbers, _joined(path, key))]


def refilled(data: Any, tensors: list[torch.Tensor], numbers: Any = (), path: str = "") -> Any:
    """The same nest with these tensors and numbers, which are taken from the front of the list."""
    if isinstance(data, torch.Tensor):
        return tensors.pop(0)
    if path in numbers:
        return tensors.pop(0).item()
    if not isinstance(data, dict | tuple | list):
        return data
    inside = [(key, refilled(value, tensors, numbers, _joined(path, key))) for key, value in _items(data)]
    if isinstance(data, dict):
        return type(data)(zip(data, (value for _, value in inside), strict=True))
    values = [value for _, value in inside]
    return type(data)(*values) if hasattr(data, "_fields") else type(data)(values)


def _items(data: Any) -> list[tuple[str, Any]]:
    return [(str(k), v) for k, v in (data.items() if isinstance(data, dict) else enumerate(data))]


def _joined(path: str, key: str) -> str:
    return f"{path}_{key}" if path else key


def emptied(data: Any) -> Any:
    """The same nest, its tensors taken out of memory."""
    return refilled(data, [torch.empty(0) for _ in leaves(data)])


def weights(model: torch.nn.Module, keys: list[str]) -> list[torch.Tensor]:
    """The state of a fresh module. What starts as a constant is drawn around it: else a kernel may have it built in."""
    found, state = [], model.state_dict()
    for key in keys:
        value = state[key].detach().clone()
        if value.is_floating_point() and bool((value == value.reshape(-1)[0]).all()):
            value += 0.1 * torch.rand(value.shape, device=value.device).to(value.dtype)
        found.append(value)
    return found


# --- inputs of FlashInfer-Bench definitions: each by a recipe


def split(total: int, parts: int, random: torch.Generator) -> torch.Tensor:
    """`total` over `parts`, uneven (0.6 to 1.4 of the mean), each at least 1 where there is enough."""
    if parts < 1:
        return torch.zeros(0, dtype=torch.int64)
    least = 1 if total >= parts else 0
    weights = 0.6 + 0.8 * torch.rand(parts, generator=random, device=random.device).cpu()
    edges = (weights.cumsum(0) / weights.sum() * (total - least * parts)).round().to(torch.int64)
    edges[-1] = total - least * parts
    return torch.diff(edges, prepend=torch.zeros(1, dtype=torch.int64)) + least


class Draw:
    """One draw of all inputs. `sizes` holds axes and constants."""

    def __init__(self, sizes: dict[str, Any], seed: int, device: str) -> None:
        self.sizes, self.device, self.random = sizes, device, generator(seed, device)
        self.lengths: torch.Tensor | None = None  # of the queries, which their keys are at least as long as

    def __call__(self, recipe: tuple[Any, ...], shape: tuple[int, ...], dtype: str) -> torch.Tensor:
        value = getattr(self, recipe[0])(shape, *recipe[1:])
        return rounded(value.to(self.device), dtype)

    def size(self, formula: Any) -> int:
        return int(eval(formula, {}, self.sizes)) if isinstance(formula, str) else int(formula)  # noqa: S307

    def normal(self, shape: tuple[int, ...], scale: float = 1.0) -> torch.Tensor:
        return torch.randn(shape, generator=self.random, device=self.device) * scale

    def matrix(self, shape: tuple[int, ...]) -> torch.Tensor:
        return self.normal(shape, 1 / math.sqrt(shape[-1]))

    def unit(self, shape: tuple[int, ...]) -> torch.Tensor:
        return torch.nn.functional.normalize(self.normal(shape), dim=-1)

    def near_one(self, shape: tuple[int, ...], scale: float = 1.0) -> torch.Tensor:
        return (0.5 + torch.rand(shape, generator=self.random, device=self.device)) * scale

    def uniform(self, shape: tuple[int, ...], low: float, high: float) -> torch.Tensor:
        return low + (high - low) * torch.rand(shape, generator=self.random, device=self.device)

    def negative(self, shape: tuple[int, ...]) -> torch.Tensor:
        return -torch.exp(self.normal(shape, 0.5))

    def probabilities(self, shape: tuple[int, ...]) -> torch.Tensor:
        return torch.softmax(self.normal(shape, 2.0), dim=-1)

    def angles(self, shape: tuple[int, ...]) -> torch.Tensor:
        half = self.uniform((*shape[:-1], shape[-1] // 2), 0, 2 * math.pi)
        return torch.cat([half.cos(), half.sin()], dim=-1)

    def bits(self, shape: tuple[int, ...]) -> torch.Tensor:
        return torch.randint(0, 2, shape, generator=self.random, device=self.device)

    def integers(self, shape: tuple[int, ...], low: Any, high: Any) -> torch.Tensor:
        """low <= value < high."""
        low, high = self.size(low), self.size(high)
        return torch.randint(low, max(high, low + 1), shape, generator=self.random, device=self.device)

    def multiple(self, shape: tuple[int, ...], step: Any, count: Any) -> torch.Tensor:
        return self.integers(shape, 0, count) * self.size(step)

    def distinct(self, shape: tuple[int, ...], count: Any) -> torch.Tensor:
        """Places out of `count`, without repeats along the last dimension where there are enough."""
        most, wanted = self.size(count), shape[-1]
        if wanted > most:
            return self.integers(shape, 0, most)
        rows = [torch.randperm(most, generator=self.random, device=self.device)[:wanted] for _ in range(_rows(shape))]
        return torch.stack(rows).reshape(shape)

    def padded(self, shape: tuple[int, ...], count: Any) -> torch.Tensor:
        """As `distinct`; what is left of each row, and an eighth of every other row, is -1."""
        most, wanted = self.size(count), shape[-1]
        value = torch.full((_rows(shape), wanted), -1, dtype=torch.int64, device=self.device)
        for number, row in enumerate(value):
            keep = min(wanted, most)
            keep -= 0 if number % 2 else keep // 8
            row[:keep] = torch.randperm(most, generator=self.random, device=self.device)[:keep]
        return value.reshape(shape)

    def indptr(self, shape: tuple[int, ...], total: Any) -> torch.Tensor:
        """Offsets of sequences; the second such input of a draw gets parts no shorter than the first's."""
        size, parts = self.size(total), shape[0] - 1
        base = self.lengths
        if base is not None and len(base) == parts and size >= int(base.sum()):
            lengths = base + split_any(size - int(base.sum()), parts, self.random)
        else:
            lengths = split(size, parts, self.random)
        self.lengths = lengths if self.lengths is None else self.lengths
        return torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])

    def packed_topk(self, shape: tuple[int, ...], count: Any) -> torch.Tensor:
        """An expert in the high 16 bits, a bfloat16 weight in the low ones."""
        weight = self.near_one(shape, 1 / shape[-1]).to(torch.bfloat16).view(torch.int16).to(torch.int64)
        return self.distinct(shape, count).to(torch.int64) << 16 | (weight & 0xFFFF)

    def packed_fp8(self, shape: tuple[int, ...]) -> torch.Tensor:
        """Pages of float8 values followed by their float32 scales, as bytes: [pages, tokens, 1, 128 + 4]."""
        pages, tokens, _, width = shape
        values = rounded(self.normal((pages, tokens * (width - 4))), "float8_e4m3fn").view(torch.int8)
        scales = self.near_one((pages, tokens)).float().view(torch.int8)
        return torch.cat([values, scales.reshape(pages, tokens * 4)], dim=1).reshape(shape)


def split_any(total: int, parts: int, random: torch.Generator) -> torch.Tensor:
    """As `split`; parts may be empty."""
    return split(total + parts, parts, random) - 1


def _rows(shape: tuple[int, ...]) -> int:
    return math.prod(shape[:-1])
