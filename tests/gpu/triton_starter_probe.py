"""Run by test_triton_starter.py in a process of its own: `probe.py interpret|compile STARTER [NAME=VALUE ...]`.

Triton reads TRITON_INTERPRET when a kernel is decorated, so the two ways can't share a process. Prints one JSON line.
"""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from types import ModuleType
from typing import Any

import torch

LENGTHS = (0, 1, 64, 65, 0)
SM_SCALE = 1 / math.sqrt(128)


def load(path: str, overrides: list[str]) -> ModuleType:
    """The starter as a module, with some of its tunables set to other values."""
    spec = importlib.util.spec_from_file_location("starter_triton", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for override in overrides:
        name, value = override.split("=")
        assert hasattr(module, name)
        setattr(module, name, int(value))
    return module


def expected(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, slots: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """One request in float32: output [32, 128] and base-2 lse [32]."""
    keys, values = (x[slots, 0].float().repeat_interleave(8, dim=1) for x in (k, v))
    logits = torch.einsum("hd,thd->ht", q.float(), keys) * SM_SCALE
    lse = torch.logsumexp(logits, 1) / math.log(2)
    return torch.einsum("ht,thd->hd", torch.exp(logits - torch.logsumexp(logits, 1, keepdim=True)), values), lse


def interpret(module: ModuleType) -> dict[str, Any]:
    """Worst errors over ragged requests in Triton's interpreter, in fp16: it has no bf16 arithmetic."""
    generator = torch.Generator().manual_seed(7)
    pages = sum(LENGTHS) + 9
    q = torch.randn((len(LENGTHS), 32, 128), generator=generator).half()
    k, v = (torch.randn((pages, 1, 4, 128), generator=generator).half() for _ in range(2))
    indptr = torch.tensor([0, *LENGTHS]).cumsum(0).int()
    indices = torch.randperm(pages, generator=generator)[: sum(LENGTHS)].int()
    output = torch.full_like(q, float("nan"))
    lse = torch.full((len(LENGTHS), 32), float("nan"))
    module.run(q, k, v, indptr, indices, SM_SCALE, output, lse)
    worst_output = worst_lse = 0.0
    empty_ok = True
    for request, length in enumerate(LENGTHS):
        if length == 0:
            empty_ok &= bool((output[request] == 0).all()) and bool((lse[request] == -math.inf).all())
            continue
        slots = indices[int(indptr[request]) : int(indptr[request + 1])].long()
        want, want_lse = expected(q[request], k, v, slots)
        worst_output = max(worst_output, float((output[request].float() - want).norm() / want.norm()))
        worst_lse = max(worst_lse, float((lse[request] - want_lse).abs().max()))
    return {"output": worst_output, "lse": worst_lse, "empty_ok": empty_ok}


def compile_only(module: ModuleType) -> dict[str, Any]:
    """Bytes of the sm_90 cubin and of its shared memory, for both kernels, without a GPU."""
    import triton  # noqa: PLC0415  the interpreter's half must be able to set its variable first
    from triton.backends.compiler import GPUTarget  # noqa: PLC0415

    heads = {"Q_HEADS": module.Q_HEADS, "KV_HEADS": module.KV_HEADS, "DIM": module.DIM, "SPLITS": module.SPLITS}
    pointers = {
        "q_ptr": "*bf16",
        "k_ptr": "*bf16",
        "v_ptr": "*bf16",
        "output_ptr": "*bf16",
        "indptr_ptr": "*i32",
        "indices_ptr": "*i32",
    }
    kernels = {
        "attend_split": (
            {**heads, "BLOCK_KV": module.BLOCK_KV},
            {"num_warps": module.WARPS, "num_stages": module.STAGES},
        ),
        "merge_splits": (heads, {"num_warps": 4}),
    }
    sizes = {}
    for name, (constants, options) in kernels.items():
        kernel = getattr(module, name)
        signature = {
            arg: "constexpr" if arg in constants else "fp32" if arg == "sm_scale" else pointers.get(arg, "*fp32")
            for arg in kernel.arg_names
        }
        source = triton.compiler.ASTSource(fn=kernel, signature=signature, constexprs=constants)
        compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
        sizes[name] = {"cubin": len(compiled.asm["cubin"]), "shared": compiled.metadata.shared}
    return sizes


if __name__ == "__main__":
    starter = load(sys.argv[2], sys.argv[3:])
    print(json.dumps(interpret(starter) if sys.argv[1] == "interpret" else compile_only(starter)))  # noqa: T201
