"""The exception tree. Three kinds of failure are never mixed: the candidate's, the user's, ours.

    DerbyError
    ├── UserError            something the user wrote or lacks; shown without traceback, in three parts
    │   ├── CardError          a race card
    │   ├── TaskError          a task folder
    │   ├── MethodError        a method's name, options or missing package
    │   ├── ModelError         a model that cannot be reached or refuses the key
    │   └── LedgerError        a ledger that is not what was written
    ├── InfraError           a failure of ours (judge, zygote, host): refunded and retried, never scored
    ├── BudgetExhausted      a trial's budget is spent; a method may let it pass
    └── Stopped              the user asked to stop; a method may let it pass

A candidate's failure is no exception: it is a `Status` in an `Evaluation`.
"""

from __future__ import annotations


class DerbyError(Exception):
    """Base of all errors raised on purpose."""


class UserError(DerbyError):
    """What came, what was expected, what to do."""

    def __init__(self, came: str, expected: str, todo: str) -> None:
        super().__init__(came, expected, todo)
        self.came, self.expected, self.todo = came, expected, todo

    def __str__(self) -> str:
        return f"{self.came}\n  expected: {self.expected}\n  do: {self.todo}"


class CardError(UserError):
    """The race card is malformed."""


class TaskError(UserError):
    """The task folder is malformed or lacks a piece."""


class MethodError(UserError):
    """The method is unknown, misconfigured or lacks a package."""


class ModelError(UserError):
    """The model cannot be reached or refuses us."""


class LedgerError(UserError):
    """The ledger on disk is not what was written."""


class InfraError(DerbyError):
    """Our failure, not the candidate's: nothing is charged, the work is tried again."""


class BudgetExhausted(DerbyError):
    """The trial's budget is spent; `kind` says which one."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"the trial's budget of {kind} is spent")
        self.kind = kind


class Stopped(DerbyError):
    """The user asked the trial to stop; it can be resumed."""
