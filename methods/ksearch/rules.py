"""What the search may be told to do otherwise: its numbers, and a named switch for every repaired defect."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """The defaults decide as the original does; a switch that is on repairs one of its defects and nothing else."""

    max_difficulty: int = 4
    """Actions beyond it wait while there are others; 0 acts as 3, as in the original."""
    world_retries: int = 2
    """Further calls after an edit script that is not accepted."""
    code_retries: int = 4
    """Further calls after an answer without a kernel; none is charged as an evaluation."""
    min_gain: float = 0.0
    """By which share a pass must exceed the cycle's best to renew its patience; 0 lets noise do so."""
    lower_failed_actions: bool = False
    """Halve the value of an action that failed if the model did not lower it, so that it is not chosen for ever."""
    close_only_when_faster: bool = False
    """A cycle whose best does not beat the parent's program closes nothing and is told as a failure."""
    retry_from_clean_tree: bool = False
    """A rejected edit script leaves nothing behind."""
    reject_unknown_solutions: bool = False
    """Programs and scores that no evaluation produced are dropped from what the model writes."""
    unique_ids: bool = False
    """Ids made here are checked against the tree."""
    retry_unparsable_propose: bool = False
    """An unreadable answer to propose is one try of three: it drops no edits and still gets the generic child."""
    keep_higher_limit: bool = False
    """Success relaxes the difficulty limit to 4 or what it was, whichever is more."""
    seed_in_global_best: bool = False
    """The seed may be what the search returns."""
    seed_in_init: bool = False
    """The first question shows the seed and its score."""
    seed_kept_on_bad_init: bool = False
    """A repeated first question attaches the seed too."""
    ignore_failed_parent_score: bool = False
    """A partial score beside a failure is no bar for the children."""
    refine_without_latency: bool = False
    """Refine after every pass, even one told without latency and speedup."""
    scan_all_objects: bool = False
    """Look for the answer at every brace, not only at the first pair."""
    survive_model_errors: bool = False
    """A refused or unusable answer costs an attempt, not the run."""
    show_whole_frontier: bool = False
    """Show every node that can be worked on, not only what fits 1200 characters."""
    show_retry_errors: bool = False
    """Tell a repeated question plainly why the last script was rejected; else it stands where the cut takes it."""
    show_delete_op: bool = False
    """Name delete_node in the list of edits."""
