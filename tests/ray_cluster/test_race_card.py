"""A card that is right is read whole; a card that is wrong is refused with file, key and remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from ray_cluster.race_card import MethodEntry, load_card
from suite.errors import CardError
from suite.types import Budget, Language, StarterKind

GOOD = """
edition = "spring"
name = "first"
methods = ["tpe", { name = "best_of_n", options = { temperature = 0.5 } }]
tasks = ["gqa"]
seeds = 3
[model]
provider = "openai"
name = "some-model"
[model.price]
input = 1.0
output = 2.0
[budget]
evaluations = 16
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "card.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_good_card_is_read_whole(tmp_path: Path) -> None:
    card = load_card(write(tmp_path, GOOD))
    assert card.methods == (MethodEntry(name="tpe"), MethodEntry(name="best_of_n", options={"temperature": 0.5}))
    assert card.seeds == (0, 1, 2)
    assert card.budget == Budget(evaluations=16)
    assert card.model is not None and card.model.price is not None and card.model.price.output == 2.0
    assert (card.lane, card.language, card.starter) == ("cpu", Language.CPP, StarterKind.PLAIN)


def test_seeds_may_be_listed(tmp_path: Path) -> None:
    assert load_card(write(tmp_path, GOOD.replace("seeds = 3", "seeds = [7, 2]"))).seeds == (7, 2)


@pytest.mark.parametrize(
    ("old", "new", "came", "todo"),
    [
        ("seeds = 3", "sedes = 3", "unknown key sedes", "'seeds'"),
        ("evaluations = 16", "evaluations = 16\nevaluation = 3", "unknown key budget.evaluation", "'evaluations'"),
        ("input = 1.0", "input = 1.0\ninputs = 1.0", "unknown key model.price.inputs", "'input'"),
        ("options = {", "option = {", "unknown key methods.1.option", "'options'"),
        ("seeds = 3", "zzz = 3", "unknown key zzz", "remove 'zzz'"),
        ('edition = "spring"', "", "edition is missing", "add it"),
        ("seeds = 3", "seeds = 0", "seeds = 0", "correct seeds"),
        ("seeds = 3", 'seeds = "many"', "seeds = 'many'", "correct seeds"),
        ("seeds = 3", "seeds = [1, 1]", "seeds = [1, 1]", "correct seeds"),
        ('tasks = ["gqa"]', "tasks = []", "tasks = []", "correct tasks"),
        ('name = "first"', 'name = "../up"', "name = '../up'", "correct name"),
        ("evaluations = 16", "evaluations = -1", "budget", "correct budget"),
        ("evaluations = 16", "", "budget", "correct budget"),
        ("evaluations = 16", "evaluations = true", "budget.evaluations = True", "correct budget.evaluations"),
        ("evaluations = 16", 'evaluations = "3"', "budget.evaluations = '3'", "correct budget.evaluations"),
        ("evaluations = 16", "evaluations = 2026-12-01", "budget.evaluations", "correct budget.evaluations"),
        ("seeds = 3", "seeds = true", "seeds = True", "correct seeds"),
        ('name = "some-model"', 'name = "m"\nbase_url = "localhost:80"', "is not a URL", "correct `base_url`"),
        ('name = "some-model"', 'name = "m"\nbase_url = "http://u:p@host/v1"', "user name", "OPENAI_API_KEY"),
        ('provider = "openai"', 'provider = "oracle"', "model.provider = 'oracle'", "correct model.provider"),
        ("seeds = 3", "seeds = 3\nconcurrency = 0", "concurrency = 0", "correct concurrency"),
        ("seeds = 3", "seeds = [-1]", "seeds.0 = -1", "correct seeds"),
        ("seeds = 3", "seeds = 2000000000", "seeds", "correct seeds"),
        ("evaluations = 16", "usd = nan", "budget.usd = nan", "correct budget.usd"),
        ("evaluations = 16", "wall_s = inf", "budget.wall_s = inf", "correct budget.wall_s"),
        ("input = 1.0", "input = -1.0", "model.price.input = -1", "correct model.price.input"),
        ("output = 2.0", "output = nan", "model.price.output = nan", "correct model.price.output"),
        ('name = "some-model"', 'name = ""', "model.name = ''", "correct model.name"),
        ('name = "some-model"', 'name = "m"\nmax_output_tokens = 0', "model.max_output_tokens = 0", "correct model"),
        ("seeds = 3", "seeds = ", "is not TOML", "correct that line"),
    ],
)
def test_a_mistake_is_named_with_its_remedy(tmp_path: Path, old: str, new: str, came: str, todo: str) -> None:
    assert old in GOOD
    with pytest.raises(CardError) as caught:
        load_card(write(tmp_path, GOOD.replace(old, new, 1)))
    assert came in caught.value.came and "card.toml" in caught.value.came
    assert todo in caught.value.todo
    assert caught.value.expected


def test_a_missing_card_is_said(tmp_path: Path) -> None:
    with pytest.raises(CardError, match="there is no"):
        load_card(tmp_path / "none.toml")


def test_a_card_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "card.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CardError, match="can not be read"):
        load_card(path)
