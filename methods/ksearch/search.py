"""K-Search itself: propose, choose, work on the choice, learn from it; round after round."""

from __future__ import annotations

from methods.ksearch.cycle import NO_SCORE, Cycle
from methods.ksearch.ports import CallFailed, CodeQuestion, Ports, UnusableReplies
from methods.ksearch.rules import Rules
from methods.ksearch.select import choose
from methods.ksearch.tree import Attempt, Node, Program, Tree
from methods.ksearch.world import WorldModel

MOST_LOST = 10
"""Attempts in a row without a kernel after which the model is not asked again."""


class Search:
    """One run. `patience` is K; `max_rounds` None leaves the end to whoever judges."""

    def __init__(
        self, ports: Ports, rules: Rules, patience: int, seed: Attempt | None = None, max_rounds: int | None = None
    ) -> None:
        self._ports, self._rules, self._patience, self._max_rounds = ports, rules, max(patience, 1), max_rounds
        self._world = WorldModel(ports, rules, seed)
        self._stored: dict[str, Attempt] = {} if seed is None else {seed.program.id: seed}
        """The programs that can be built on: the seed and every cycle's best."""
        self._last = seed
        self._best = seed if rules.seed_in_global_best and seed is not None and seed.outcome.passed else None
        self._round, self._lost = 1, 0

    def run(self) -> Attempt | None:
        """Search to the end; the best attempt, or the last one if none passed. Raises `CallFailed`."""
        self._world.start()
        first = self._last
        while not self._over(self._round) and self._lost < MOST_LOST:
            tree = self._world.propose(self._round, self._last)
            limits = self._rules.max_difficulty, self._rules.keep_higher_limit
            node = choose(tree, *limits) if tree is not None else None
            self._ports.note("choose", node=node, round=self._round)
            if tree is None or node is None:
                break
            self._learn(self._work(tree, node))
        return self._best or (self._last if self._last is not first else None)

    def _work(self, tree: Tree, node: Node) -> Cycle:
        """One cycle to its end."""
        parent = tree.find(node.parent)
        start = self._stored.get(parent.solution.id or "") if parent is not None else None
        cycle = Cycle(tree, node, self._round, start, self._bar(parent))
        while True:
            cycle = self._attempted(cycle)
            stop = cycle.stop(self._patience, self._over(cycle.start + cycle.attempts) or self._lost >= MOST_LOST)
            if stop is not None:
                self._ports.note("cycle_end", cycle=cycle, stop=stop)
                return cycle

    def _attempted(self, cycle: Cycle) -> Cycle:
        question = cycle.question()
        try:
            program = self._written(question)
        except CallFailed:
            if not self._rules.survive_model_errors:
                raise
            self._lost += 1
            return cycle.without_kernel()
        self._lost = 0
        outcome = self._ports.judge(program, question)
        attempt = Attempt(program, outcome, question.round)
        self._ports.note("eval", attempt=attempt)
        self._last = attempt
        if outcome.passed and outcome.points is not None and outcome.points > self._best_points():
            self._best = attempt
        return cycle.judged(attempt, self._rules.min_gain)

    def _written(self, question: CodeQuestion) -> Program:
        for _ in range(self._rules.code_retries + 1):
            program = self._ports.write(question)
            if program is not None:
                return program
        raise UnusableReplies(f"{self._rules.code_retries + 1} answers in a row without a kernel")

    def _learn(self, cycle: Cycle) -> None:
        self._round += cycle.attempts
        success = cycle.beats_parent if self._rules.close_only_when_faster else cycle.best is not None
        if success and cycle.best is not None:
            self._stored[cycle.best.program.id] = cycle.best
            self._world.attach(cycle.node, cycle.best)
            self._world.refine(cycle.node, cycle.best)
        else:
            self._world.too_hard(cycle.node, cycle.last, max(self._round - 1, 0))

    def _bar(self, parent: Node | None) -> float:
        outcome = parent.solution.outcome if parent is not None and parent.closed else None
        if outcome is None or outcome.points is None:
            return NO_SCORE
        return NO_SCORE if self._rules.ignore_failed_parent_score and not outcome.passed else outcome.points

    def _best_points(self) -> float:
        points = self._best.outcome.points if self._best is not None else None
        return NO_SCORE if points is None else points

    def _over(self, round_: int) -> bool:
        return self._max_rounds is not None and round_ > self._max_rounds
