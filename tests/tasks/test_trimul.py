"""The TriMul task: its inputs are what they claim to be, its reference is the definition's mathematics."""

from __future__ import annotations

import math
import random
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from suite.admission import trusted
from suite.judge.build import Builder
from suite.judge.calibration import measure
from suite.judge.direct import load_kernel
from suite.judge.memory import Pool
from suite.task import draw_heldout, module, starter
from suite.tunables import find, render
from suite.types import Language, SourceFile, Split, Task

NAME = "trimul"
SMALL: dict[str, Any] = {"batch_size": 2, "seq_len": 4, "dim": 32, "mask": "random"}
MIDDLE: dict[str, Any] = {"batch_size": 1, "seq_len": 20, "dim": 128, "mask": "random"}
WEIGHTS = ["left_proj", "right_proj", "left_gate", "right_gate", "out_gate", "to_out"]


def make(inputs: ModuleType, family: str = "normal", seed: int = 0, params: dict[str, Any] = MIDDLE) -> dict[str, Any]:
    made: dict[str, Any] = inputs.make_inputs(params, np.random.default_rng(seed), family)
    return made


def normed(v: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """LayerNorm of one vector, by its formula."""
    mean = v.sum() / len(v)
    return (v - mean) / torch.sqrt(((v - mean) ** 2).sum() / len(v) + 1e-5) * weight + bias


def by_definition(given: dict[str, Any]) -> torch.Tensor:
    """The output in float64, one pair after the other."""
    g = {name: value.double() for name, value in given.items()}
    batch, tokens, _, dim = g["x"].shape
    output = torch.zeros(batch, tokens, tokens, dim).double()
    for b in range(batch):
        pairs = [[normed(v, g["norm_weight"], g["norm_bias"]) for v in row] for row in g["x"][b]]

        def side(name: str, i: int, k: int, b: int = b, pairs: list[list[torch.Tensor]] = pairs) -> torch.Tensor:
            gate = 1 / (1 + torch.exp(-(g[f"{name}_gate_weight"] @ pairs[i][k])))
            made: torch.Tensor = g["mask"][b, i, k] * gate * (g[f"{name}_proj_weight"] @ pairs[i][k])
            return made

        for i in range(tokens):
            for j in range(tokens):
                product = sum((side("left", i, k) * side("right", j, k) for k in range(tokens)), torch.zeros(128))
                row = normed(product, g["to_out_norm_weight"], g["to_out_norm_bias"])
                row = row / (1 + torch.exp(-(g["out_gate_weight"] @ pairs[i][j])))
                output[b, i, j] = g["to_out_weight"] @ row
    return output


# ---------------------------------------------------------------------------------------------- the reference


@pytest.mark.parametrize("family", ["normal", "faint", "positive"])
def test_the_reference_is_the_definitions_mathematics(task: Task, inputs: ModuleType, family: str) -> None:
    given = make(inputs, family, params=SMALL)
    output = module(task, "reference").run(*given.values())
    assert torch.allclose(output.double(), by_definition(given), rtol=1e-5, atol=1e-5)
    assert output.dtype == torch.float32


def test_a_dropped_pair_leaves_no_trace_in_the_sum(task: Task, inputs: ModuleType) -> None:
    given, run = make(inputs), module(task, "reference").run
    before = run(*given.values())
    dropped = (given["mask"][0] == 0).nonzero()[0].tolist()
    given["x"][0, dropped[0], dropped[1]] += 5
    changed = (run(*given.values()) != before).any(dim=-1)[0].nonzero().tolist()
    assert changed == [dropped], "only its own gate and projection see it"


def test_without_any_pair_the_output_norm_gives_its_bias(task: Task, inputs: ModuleType) -> None:
    given = make(inputs, params={**MIDDLE, "mask": "empty"})
    other = {**given, "left_proj_weight": given["left_proj_weight"] + 1, "to_out_norm_weight": given["norm_bias"]}
    run = module(task, "reference").run
    assert torch.equal(run(*given.values()), run(*other.values()))
    assert not torch.equal(run(*given.values()), run(*{**given, "to_out_norm_bias": given["norm_bias"]}.values()))


# ---------------------------------------------------------------------------------------------- the inputs


def test_inputs_have_the_definitions_shapes_and_dtypes(task: Task, inputs: ModuleType) -> None:
    for family in inputs.FAMILIES:
        given, axes = make(inputs, family), inputs.axes(MIDDLE)
        assert tuple(given) == tuple(task.definition.inputs)
        for name, spec in task.definition.inputs.items():
            assert tuple(given[name].shape) == task.definition.shape(spec, axes), name
            assert given[name].dtype == torch.float32 and given[name].is_contiguous(), name
            assert bool(torch.isfinite(given[name]).all()), name


def test_masks_are_of_the_asked_kind(inputs: ModuleType) -> None:
    def mask(kind: str, seed: int = 0) -> torch.Tensor:
        made: torch.Tensor = make(inputs, seed=seed, params={**MIDDLE, "batch_size": 2, "mask": kind})["mask"]
        assert made.is_contiguous() and set(made.flatten().tolist()) <= {0.0, 1.0}
        return made

    assert mask("full").mean() == 1 and mask("empty").mean() == 0
    assert 0.4 < mask("random").mean() < 0.6 and not torch.equal(mask("random"), mask("random", seed=1))
    assert torch.equal(mask("padded")[0], _padding(20, 15))
    drawn = {round(float(mask("any", seed).mean()), 1) for seed in range(20)}
    assert drawn == {1.0, 0.5, 0.6}  # full, random, and padded: (15 / 20)^2


def _padding(tokens: int, real: int) -> torch.Tensor:
    made = torch.zeros(tokens, tokens)
    made[:real, :real] = 1
    return made


@pytest.mark.parametrize(
    "change", [{"seq_len": 0}, {"dim": 48}, {"mask": "causal"}, {"sequence": 4}, {"batch_size": -1}], ids=str
)
def test_senseless_parameters_are_refused(inputs: ModuleType, change: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        inputs.axes({**MIDDLE, **change})


def test_families_are_as_described(inputs: ModuleType) -> None:
    def x(family: str) -> torch.Tensor:
        made: torch.Tensor = make(inputs, family)["x"]
        return made

    largest_share = x("cauchy").square().amax(dim=-1) / x("cauchy").square().sum(dim=-1)
    assert largest_share.median() > 0.4, "a channel or two carry a pair"
    assert (x("offset").mean(dim=-1) / x("offset").std(dim=-1)).median() > 8
    assert 0.1 < x("faint").var(dim=-1).median() / 1e-5 < 10
    assert bool((x("flat").amax(dim=-1) == x("flat").amin(dim=-1)).all())
    positive = make(inputs, "positive")
    assert all(bool((positive[f"{name}_weight"] >= 0).all()) for name in WEIGHTS)
    kept = make(inputs, "lone")["mask"][0]
    assert bool((kept[:, [0, -1]] == 1).all()) and kept[0].sum() <= 3


def test_in_the_faint_family_eps_counts_in_both_norms(inputs: ModuleType) -> None:
    given = make(inputs, "faint")
    pairs = torch.nn.functional.layer_norm(given["x"], (128,), given["norm_weight"], given["norm_bias"])
    sides = [pairs @ given[f"{name}_proj_weight"].t() for name in ("left", "right")]
    gates = [torch.sigmoid(pairs @ given[f"{name}_gate_weight"].t()) for name in ("left", "right")]
    left, right = (side * gate * given["mask"][..., None] for side, gate in zip(sides, gates, strict=True))
    product = torch.einsum("bikh,bjkh->bijh", left, right)
    assert 0.02 < product.var(dim=-1).median() / 1e-5 < 50


def test_weights_are_scaled_by_their_outputs(inputs: ModuleType) -> None:
    given = make(inputs, params={**SMALL, "dim": 384})
    for name in WEIGHTS:
        weight = given[f"{name}_weight"]
        assert weight.std() * math.sqrt(len(weight)) == pytest.approx(1, abs=0.05), name


def test_refresh_changes_everything_in_place_and_keeps_the_distribution(inputs: ModuleType) -> None:
    given, rng, pool = make(inputs), np.random.default_rng(1), Pool(1 << 20)
    before = {name: value.clone() for name, value in given.items()}
    places = {name: value.data_ptr() for name, value in given.items()}
    inputs.refresh(given, MIDDLE, pool, rng)
    for name, value in given.items():
        assert (value != before[name]).float().mean() > (0.4 if name == "mask" else 0.9), name
        assert float(value.std()) == pytest.approx(float(before[name].std()), rel=0.35), name
    assert {name: value.data_ptr() for name, value in given.items()} == places


def test_a_sample_is_one_entry_of_the_whole(task: Task, inputs: ModuleType) -> None:
    given, run = make(inputs, params={**SMALL, "batch_size": 3}), module(task, "reference").run
    whole, seen = run(*given.values()), set()
    for seed in range(20):
        part, rows = inputs.sample(given, np.random.default_rng(seed))
        assert torch.allclose(run(*part.values()), whole[rows], rtol=1e-5, atol=1e-6)
        seen.add(rows.start)
    assert seen == {0, 1, 2}


def test_cost_counts_seven_products_and_every_argument_once(inputs: ModuleType) -> None:
    cost = inputs.cost({"batch_size": 2, "seq_len": 10, "dim": 64, "mask": "full"})
    projections, sums = 200 * 6 * 64 * 128, 2 * 1000 * 128
    assert cost["flops"] == 2 * (projections + sums)
    elements = sum(value.numel() for value in make(inputs, params={**SMALL, "seq_len": 10, "dim": 64}).values())
    assert cost["bytes"] == 4 * (elements + 200 * 64)


# ---------------------------------------------------------------------------------------------- workloads


def test_held_out_workloads_are_capped_and_odd(task: Task) -> None:
    drawn = [workload.axes for seed in range(60) for workload in draw_heldout(task, bytes([seed]))]
    assert all(axes["batch_size"] * axes["seq_len"] ** 2 * axes["dim"] <= 1 << 19 for axes in drawn)
    assert {axes["dim"] for axes in drawn} == {32, 64, 128, 256}
    assert min(axes["seq_len"] for axes in drawn) < 32 and max(axes["seq_len"] for axes in drawn) > 110
    assert sum(axes["seq_len"] % 8 != 0 for axes in drawn) > len(drawn) / 2


def test_check_workloads_hold_single_odd_and_edge_sizes_and_every_mask(task: Task) -> None:
    checked = task.split(Split.CHECK)
    assert {1, 2, 3, 15, 16, 17, 33} <= {one.axes["seq_len"] for one in checked}
    assert {32, 64, 96, 128, 160, 384} <= {one.axes["dim"] for one in checked}
    assert {one.params["mask"] for one in checked} == {"full", "random", "padded", "empty"}


# ---------------------------------------------------------------------------------------------- the kernels


@pytest.mark.slow
def test_every_trusted_kernel_uses_at_most_a_third_of_the_tolerance(task: Task, builder: Builder) -> None:
    kernels = {name: load_kernel(task.definition, one, builder) for name, one in trusted(task).items()}
    usages = measure(task, kernels, seeds=1, splits=(Split.CHECK,))
    assert {usage.implementation for usage in usages} == set(kernels)
    for usage in usages:
        norm = task.tolerance[usage.output].norm
        assert usage.elements <= 1 / 3 and norm is not None and usage.norm <= norm / 3, usage


def test_switches_of_the_starter_are_structural_and_at_middle_values(task: Task) -> None:
    tunables = {one.name: one for one in find(starter(task, Language.CPP).text())}
    assert tunables.keys() == {
        "width",
        "tile_rows",
        "tile_columns",
        "outer_product",
        "channel_major",
        "fused_projections",
        "quick_exp",
        "block",
    }
    for one in tunables.values():
        assert one.current in (one.values[1:-1] or one.values), one


@pytest.mark.slow
@pytest.mark.timeout(900)  # thirty compilations
def test_any_combination_of_the_starters_switches_is_right(task: Task, builder: Builder) -> None:
    plain, dice = starter(task, Language.CPP), random.Random(5)
    kernels = {}
    for _ in range(30):
        values = {one.name: dice.choice(one.values) for one in find(plain.text())}
        source = SourceFile(path="starter.cpp", content=render(plain.text(), values))
        kernels[str(values)] = load_kernel(task.definition, plain.model_copy(update={"sources": (source,)}), builder)
    for usage in measure(task, kernels, seeds=1, splits=(Split.CHECK,)):
        norm = task.tolerance[usage.output].norm
        assert usage.elements <= 1 / 3 and norm is not None and usage.norm <= norm / 3, usage
