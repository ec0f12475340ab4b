"""The list of mutants (loadtests/mutants.py) is of what the sources say today; trying them takes
minutes, and is a command.
"""

from __future__ import annotations

from loadtests.mutants import MUTANTS
from tests.support import ROOT


def test_each_mutant_changes_one_place_and_names_a_test_that_there_is() -> None:
    for mutant in MUTANTS:
        assert (ROOT / mutant.file).read_text().count(mutant.before) == 1, mutant.name
        assert mutant.before != mutant.after, mutant.name
        path, _, name = mutant.test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / path).read_text(), mutant.name


def test_no_two_mutants_have_one_name() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(names) == len(set(names)) >= 12
