"""How each input of a FlashInfer-Bench definition is drawn: by its name, its type and what the definition says.

The recipes themselves are in `template_files/ksearch_bridge.py`; here they are only chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ksearch.tasks.foreign.draft import Tensor

Recipe = tuple[Any, ...]
_PLACES = {"num_pages", "pool_size", "state_cache_size", "max_seq_len", "num_local_experts", "num_experts"}
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def gathered(tensor: Tensor) -> bool:
    """Its first dimension is looked up by an index: a correct kernel need not read all of it."""
    return bool(tensor.shape) and tensor.shape[0] in _PLACES


def recipe_for(tensor: Tensor, about: Mapping[str, Any], ranges: Mapping[str, Any]) -> Recipe | None:
    """The recipe, or None where nothing is known of the values. `about`: op_type, totals, values, axes, constants."""
    name = tensor.name
    if name in ranges:
        low, high = ranges[name]
        return ("integers", low, high) if tensor.dtype in _INTEGERS else ("uniform", low, high)
    if tensor.dtype == "bool":
        return ("bits",)
    if not tensor.shape:
        return _scalar(tensor, about)
    if tensor.dtype in _INTEGERS:
        return _integer(name, {**about["axes"], **about["constants"]}, about["totals"])
    return _floating(name, tensor, about["op_type"])


def _scalar(tensor: Tensor, about: Mapping[str, Any]) -> Recipe | None:
    values, name = about["values"].get(tensor.name), tensor.name
    constants = about["constants"]
    if tensor.dtype in _INTEGERS:
        if name == "local_expert_offset" and {"num_experts", "num_local_experts"} <= set(constants):
            return ("multiple", "num_local_experts", constants["num_experts"] // constants["num_local_experts"])
        return ("integers", min(values), max(values) + 1) if values else None
    if values:
        middle = float(values[0])
    elif name in ("sm_scale", "scale"):
        middle = 192**-0.5 if "head_dim_kpe" in constants else _head(constants) ** -0.5
    else:
        middle = 2.5 if name == "routed_scaling_factor" else 1.0
    return ("near_one", middle)


def _head(constants: Mapping[str, Any]) -> int:
    return int(next((constants[k] for k in ("head_dim", "qk_dim", "head_size") if k in constants), 128))


def _integer(name: str, sizes: Mapping[str, Any], totals: Mapping[str, str]) -> Recipe | None:
    known: dict[str, Recipe] = {
        "kv_indices": ("distinct", "num_pages"),
        "block_table": ("distinct", "num_pages"),
        "kv_last_page_len": ("integers", 1, "page_size + 1"),
        "sparse_indices": ("padded", "num_pages * page_size"),
        "positions": ("integers", 0, "max_seq_len"),
        "state_batch_indices": ("distinct", "state_cache_size"),
        "initial_state_indices": ("distinct", "pool_size"),
        "seq_lens": ("integers", 1, "max_num_pages * page_size + 1"),
        "topk_ids": ("packed_topk", "num_experts"),
        "top_k": ("integers", 1, 100),
        "k_index_cache_fp8": ("packed_fp8",),
    }
    if name in totals:
        return ("indptr", totals[name])
    guess = {"kv_indptr": ("num_kv_indices", "total_kv"), "qo_indptr": ("total_q",)}.get(name, ())
    if found := next((axis for axis in guess if axis in sizes), None):
        return ("indptr", found)
    return known.get(name)


def _floating(name: str, tensor: Tensor, op_type: str) -> Recipe:
    if name == "probs":
        return ("probabilities",)
    if name == "top_p":
        return ("uniform", 0.1, 1.0)
    if name == "cos_sin_cache":
        return ("angles",)
    if "scale" in name:
        return ("near_one", 0.03) if "weights" in name or "output" in name else ("near_one",)
    if name == "A":
        return ("negative",) if op_type == "mamba_ssu" else ("normal",)
    if op_type == "gdn" and name in ("q", "k"):
        return ("unit",)  # a delta rule on keys of any other length does not stay finite
    if name == "A_log" or name.endswith("bias"):
        return ("normal", 0.3)
    if name.startswith("gemm") and tensor.dtype == "float32":
        return ("matrix",)
    return ("normal",)
