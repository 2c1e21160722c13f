"""Public facts of processors: chosen by what was read, behind what was measured, replaceable by a task."""

from __future__ import annotations

import re
import tomllib
from importlib import resources

import pytest

from ksearch.hardware import read_hardware
from ksearch.prompts import cpu_facts, gpu_facts, guide
from ksearch.prompts.fit import tokens


def data(name: str) -> dict:
    return tomllib.loads(resources.files("ksearch.prompts.machines").joinpath(name).read_text("utf-8"))


@pytest.mark.parametrize(
    ("name", "capability", "words"),
    [
        ("NVIDIA H200", [9, 0], ("Hopper", "4,800 GB/s", "227 KB a block", "TMA")),
        ("NVIDIA H100 PCIe", [9, 0], ("Hopper", "2,000 (PCIe)")),
        ("NVIDIA H100 80GB HBM3", [9, 0], ("3,350 GB/s",)),
        ("NVIDIA GH200 480GB", [9, 0], ("4,900",)),
        ("NVIDIA B200", [10, 0], ("tcgen05", "8,000 GB/s")),
        ("NVIDIA GeForce RTX 5090", [12, 0], ("neither wgmma nor tcgen05", "1,792 GB/s")),
        ("NVIDIA GeForce RTX 4090", [8, 9], ("Ada", "no TMA", "1,008 GB/s")),
        ("NVIDIA L4", [8, 9], ("300 GB/s",)),
        ("NVIDIA L40S", [8, 9], ("864 GB/s",)),
        ("NVIDIA A100-SXM4-80GB", [8, 0], ("Ampere", "2,039 (SXM)")),
        ("NVIDIA A100-SXM4-40GB", [8, 0], ("1,555 GB/s",)),
        ("NVIDIA A10", [8, 6], ("600 GB/s", "no fp8")),
        ("NVIDIA RTX A6000", [8, 6], ("workstation",)),
    ],
)
def test_a_gpu_is_known_by_capability_and_model(name, capability, words):
    text = gpu_facts(name, capability)
    assert all(word in text for word in words), text
    assert "what is measured above wins" in text
    assert gpu_facts(name) == text  # a log that does not tell the capability
    assert tokens(len(text)) < 600


def test_what_is_not_known_is_left_out():
    assert gpu_facts("Some Accelerator", [99, 0]) == gpu_facts("Some Accelerator") == cpu_facts("Some CPU", ()) == ""
    assert gpu_facts("NVIDIA H300", [9, 0]).startswith("Known of Hopper")


def test_no_two_architectures_claim_a_capability_and_every_pattern_is_one():
    found = data("gpus.toml")
    claimed = [tuple(c) for key, kind in found.items() if key != "model" for c in kind["capabilities"]]
    assert len(claimed) == len(set(claimed))
    for entry in (*found["model"], *data("cpus.toml")["core"]):
        assert re.compile(entry["match"])


@pytest.mark.parametrize(
    ("model", "title"),
    [
        ("AMD EPYC 9654 (cpu family 25, model 17)", "AMD Zen 4"),
        ("AMD EPYC 9754 (cpu family 25, model 160)", "AMD Zen 4"),
        ("AMD EPYC 7763 (cpu family 25, model 1)", "AMD Zen 3"),
        ("AMD Ryzen 9 5950X (cpu family 25, model 33)", "AMD Zen 3"),
        ("AMD EPYC 7742 (cpu family 23, model 49)", "AMD Zen 1 or 2"),
        ("AMD EPYC 9755 (cpu family 26, model 2)", "AMD Zen 5"),
        ("Intel(R) Xeon(R) Platinum 8480+ (cpu family 6, model 143)", "Intel Sapphire, Emerald or Granite Rapids"),
        ("Intel(R) Xeon(R) Gold 6230 (cpu family 6, model 85)", "Intel Skylake, Cascade Lake or Cooper Lake server"),
        ("Arm Neoverse V2", "Arm Neoverse V2 (Grace, Graviton 4)"),
        ("Arm Neoverse N1", "Arm Neoverse N1 or N2"),
    ],
)
def test_a_core_is_known_by_its_numbers(model, title):
    assert cpu_facts(model, ("AVX2",)).startswith(f"Known of {title} (")


def test_other_cores_by_their_instruction_sets():
    assert "x86 with AVX-512" in cpu_facts("Some CPU", ("AVX2", "AVX512F"))
    assert "x86 with AVX2" in cpu_facts("Some CPU", ("SSE2", "AVX2"))
    assert "Arm with NEON" in cpu_facts("Some CPU", ("NEON",))
    here = read_hardware()
    assert cpu_facts(here.model, here.simd)


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("triton", ("num_stages", "make_tensor_descriptor", "max_num_imprecise_acc", "tf32x3", "GROUP")),
        ("cuda", ("wgmma", "cp.async.bulk.tensor", "setmaxnreg", "CUtensorMap", "fp32")),
        ("python", ("torch.compile", "scaled_dot_product_attention")),
    ],
)
def test_a_gpu_language_has_a_guide_that_leaves_room_for_the_rest(language, words):
    text = guide(language, "softmax", "cuda")
    assert all(word in text for word in words)
    assert "NumPy" not in text
    assert tokens(len(text)) < 2_500


def test_python_is_numpy_on_a_cpu():
    assert "NumPy" in guide("python")
