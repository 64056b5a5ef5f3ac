"""The GQA decode task: its inputs are what they claim to be, its reference is the definition's mathematics."""

from __future__ import annotations

import math
import random
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

import tasks
from suite.admission import trusted
from suite.judge.build import Builder
from suite.judge.calibration import measure
from suite.judge.direct import load_kernel
from suite.judge.memory import Pool
from suite.task import draw_heldout, module, starter
from suite.tunables import find, render
from suite.types import Language, SourceFile, Split, Task

NAME = "gqa_paged_decode_h32_kv4_d128_ps1"
RAGGED: dict[str, Any] = {"lengths": [0, 1, 17, 200]}


def make(inputs: ModuleType, family: str = "normal", seed: int = 0, params: dict[str, Any] = RAGGED) -> dict[str, Any]:
    made: dict[str, Any] = inputs.make_inputs(params, np.random.default_rng(seed), family)
    return made


def by_definition(given: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """(output, lse) in float64, one query head and slot after the other."""
    batch = len(given["q"])
    output, lse = torch.zeros(batch, 32, 128).double(), torch.full((batch, 32), -math.inf).double()
    for b in range(batch):
        slots = given["kv_indices"][given["kv_indptr"][b] : given["kv_indptr"][b + 1]].tolist()
        for h in range(32 if slots else 0):
            query = given["q"][b, h].double()
            z = torch.stack([given["sm_scale"] * query.dot(given["k_cache"][s, 0, h // 8].double()) for s in slots])
            values = torch.stack([given["v_cache"][s, 0, h // 8].double() for s in slots])
            output[b, h] = torch.softmax(z, 0) @ values
            lse[b, h] = torch.logsumexp(z, 0) / math.log(2)
    return output, lse


# ---------------------------------------------------------------------------------------------- the reference


def test_the_reference_is_the_definitions_mathematics(task: Task, inputs: ModuleType) -> None:
    given = make(inputs, "spikes", params={"lengths": [3, 0, 9]})
    output, lse = module(task, "reference").run(*given.values())
    wanted, wanted_lse = by_definition(given)
    assert torch.allclose(output.double(), wanted, rtol=2**-8, atol=1e-6)
    assert torch.allclose(lse.double(), wanted_lse, atol=1e-5)
    assert (output.dtype, lse.dtype) == (torch.bfloat16, torch.float32)


def test_a_request_without_slots_gives_zero_and_minus_infinity(task: Task, inputs: ModuleType) -> None:
    output, lse = module(task, "reference").run(*make(inputs).values())
    assert bool((output[0] == 0).all()) and bool((lse[0] == -math.inf).all())
    assert bool(torch.isfinite(lse[1:]).all())


# ---------------------------------------------------------------------------------------------- the inputs


def test_inputs_have_the_definitions_shapes_and_dtypes(task: Task, inputs: ModuleType) -> None:
    for family in inputs.FAMILIES:
        given, axes = make(inputs, family), inputs.axes(RAGGED)
        assert tuple(given) == tuple(task.definition.inputs)
        for name, spec in task.definition.inputs.items():
            if spec.shape is not None:
                assert tuple(given[name].shape) == task.definition.shape(spec, axes), name
                assert str(given[name].dtype) == f"torch.{spec.dtype}", name
                assert given[name].is_contiguous(), name
        assert given["sm_scale"] == float(np.float32(given["sm_scale"])), "both sides must get the same float32"


def test_only_the_timed_family_has_the_usual_scale(inputs: ModuleType) -> None:
    scales = {family: make(inputs, family)["sm_scale"] for family in inputs.FAMILIES}
    assert scales.pop("normal") == pytest.approx(1 / math.sqrt(128))
    assert all(abs(scale * math.sqrt(128) - 1) > 0.01 for scale in scales.values())


def test_slots_are_a_scattered_choice_without_repeats_unless_asked_for(inputs: ModuleType) -> None:
    slots = make(inputs, params={"lengths": [300]})["kv_indices"]
    assert len(slots.unique()) == 300
    assert bool((slots.diff() < 0).any()), "unsorted"
    repeated = make(inputs, params={"lengths": [300], "indices": "repeated"})["kv_indices"]
    assert len(repeated.unique()) < 300


@pytest.mark.parametrize("params", [{"lengths": [-1]}, {"lengths": [1], "indices": "sorted"}, {"lenghts": [1]}])
def test_senseless_parameters_are_refused(inputs: ModuleType, params: dict[str, Any]) -> None:
    with pytest.raises((ValueError, KeyError)):
        inputs.axes(params)


def test_families_are_as_described(inputs: ModuleType) -> None:
    def weights(family: str) -> torch.Tensor:
        """Softmax of the last request's first query head, shape [200]."""
        given = make(inputs, family)
        keys = given["k_cache"][given["kv_indices"][18:].long(), 0, 0].float()
        return torch.softmax(keys @ given["q"][3, 0].float() * given["sm_scale"], 0)

    assert weights("large").max() > 0.9
    assert weights("tiny").max() < 1.01 / 200
    assert len(set(weights("ties").tolist())) == 2
    assert bool((make(inputs, "positive")["v_cache"] >= 0).all())


def test_spikes_carry_weight_at_the_first_and_the_last_slot(inputs: ModuleType) -> None:
    given = make(inputs, "spikes", params={"lengths": [400]})
    slots = given["kv_indices"].long()
    keys = given["k_cache"][slots, 0].float().repeat_interleave(8, dim=1)  # [400, 32, 128]
    shares = torch.softmax(torch.einsum("thd,hd->ht", keys, given["q"][0].float()) * given["sm_scale"], -1)
    for position in (0, -1):
        assert shares[:, position].reshape(4, 8).amax(dim=1).min() > 0.15, "one query head in every group sees it"
        assert given["v_cache"][slots[position]].float().mean() > 7


def test_refresh_changes_everything_but_lengths_and_scale(inputs: ModuleType) -> None:
    given, rng, pool = make(inputs), np.random.default_rng(1), Pool(1 << 20)
    before = {name: value.clone() for name, value in given.items() if isinstance(value, torch.Tensor)}
    places = {name: value.data_ptr() for name, value in given.items() if isinstance(value, torch.Tensor)}
    inputs.refresh(given, RAGGED, pool, rng)
    for name in ("q", "k_cache", "v_cache"):
        assert (given[name] != before[name]).float().mean() > 0.9, name
    assert not torch.equal(given["kv_indices"], before["kv_indices"])
    assert len(given["kv_indices"].unique()) == 218
    assert torch.equal(given["kv_indptr"], before["kv_indptr"])
    assert {name: given[name].data_ptr() for name in places} == places


def test_a_sample_is_one_row_of_the_whole(task: Task, inputs: ModuleType) -> None:
    given, run = make(inputs, "spikes"), module(task, "reference").run
    whole, rows_seen = run(*given.values()), set()
    for seed in range(20):
        part, rows = inputs.sample(given, np.random.default_rng(seed))
        for some, all_ in zip(run(*part.values()), whole, strict=True):
            assert torch.equal(some, all_[rows])
        rows_seen.add(rows.start)
    assert rows_seen == {0, 1, 2, 3}


def test_cost_counts_used_slots_once(inputs: ModuleType) -> None:
    cost = inputs.cost({"lengths": [100, 28]})
    assert cost["flops"] == 128 * 32 * (2 * 128 + 2 * 128)
    caches, rows, rest = 2 * 128 * 4 * 128 * 2, 2 * 2 * 32 * 128 * 2, 2 * 32 * 4 + 128 * 4 + 3 * 4 + 4
    assert cost["bytes"] == caches + rows + rest


# ---------------------------------------------------------------------------------------------- workloads


def test_inputs_of_timed_workloads_fit_forty_megabytes(task: Task) -> None:
    drawn = [workload for seed in range(30) for workload in draw_heldout(task, bytes([seed]))]
    assert max(workload.axes["num_pages"] for workload in (*task.workloads, *drawn)) * 2 * 1024 < 40e6
    assert {1, 8} <= {workload.axes["batch_size"] for workload in drawn}


def test_check_workloads_hold_empty_odd_and_edge_lengths(task: Task) -> None:
    lengths = {n for one in task.split(Split.CHECK) for n in one.params["lengths"]}  # type: ignore[union-attr]
    assert {0, 1, 2, 3, 15, 16, 17, 31, 32, 33, 127, 128, 129, 257} <= lengths


# ---------------------------------------------------------------------------------------------- the kernels


@pytest.mark.slow
def test_every_trusted_kernel_uses_at_most_a_third_of_the_tolerance(task: Task, builder: Builder) -> None:
    kernels = {name: load_kernel(task.definition, one, builder) for name, one in trusted(task).items()}
    usages = measure(task, kernels, seeds=1, splits=(Split.CHECK,))
    assert {usage.implementation for usage in usages} == set(kernels)
    for usage in usages:
        norm = task.tolerance[usage.output].norm
        assert usage.elements <= 1 / 3, usage
        assert norm is None or usage.norm <= norm / 3, usage


def test_switches_of_the_starter_are_structural_and_at_middle_values(task: Task) -> None:
    tunables = {one.name: one for one in find(starter(task, Language.CPP).text())}
    assert tunables.keys() == {
        "heads_per_pass",
        "groups_per_task",
        "splits",
        "tokens_per_step",
        "tokens_outer",
        "online_softmax",
        "quick_exp",
        "prefetch",
        "width",
    }
    for one in tunables.values():
        inner = one.values[1:-1] or one.values
        assert one.current in inner, one


@pytest.mark.slow
@pytest.mark.timeout(900)  # thirty compilations
def test_any_combination_of_the_starters_switches_is_right(task: Task, builder: Builder) -> None:
    plain, dice = starter(task, Language.CPP), random.Random(5)
    kernels = {}
    for _ in range(30):
        values = {one.name: dice.choice(one.values) for one in find(plain.text())}
        source = SourceFile(path="starter.cpp", content=render(plain.text(), values))
        candidate = plain.model_copy(update={"sources": (source,)})
        kernels[str(values)] = load_kernel(task.definition, candidate, builder)
    for usage in measure(task, kernels, seeds=1, splits=(Split.CHECK,)):
        assert usage.elements <= 1 / 3, usage


def test_folder_and_names_agree(tmp_path: Path) -> None:
    assert NAME in tasks.names()
    assert (tasks.folder(NAME) / "task.toml").is_file()
    with pytest.raises(KeyError):
        tasks.folder("no_such_task")
