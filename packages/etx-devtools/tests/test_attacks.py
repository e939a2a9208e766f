# SPDX-License-Identifier: BSD-3-Clause
"""No file makes a command end in a traceback, hang, or leave half of its output."""

from __future__ import annotations

from pathlib import Path

import pytest
from attacks import COMMANDS, WITH_TORCH, Workshop, attack
from etx_schema import EtxError
from etx_schema.errors import naming

SEED = 0


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("attacks")
        patch.chdir(folder)
        return Workshop.made(folder)


@pytest.fixture(autouse=True)
def there(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workshop.folder)


@pytest.mark.parametrize("part", range(8))
@pytest.mark.filterwarnings("ignore")
def test_bad_files_are_refused_in_a_line(workshop: Workshop, part: int) -> None:
    numbers = range(40 * part, 40 * part + 40)
    assert not [line for number in numbers for line in attack(workshop, number, SEED, COMMANDS)]


@pytest.mark.filterwarnings("ignore")
def test_bad_files_are_refused_beside_a_model(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(workshop.folder))
    workshop.add_torch()
    assert not [line for number in range(16) for line in attack(workshop, number, SEED, WITH_TORCH)]


def test_an_error_says_which_file_it_is_of() -> None:
    for names, said, expected in (
        (["a.pte"], "byte 4: bad", "a.pte: byte 4: bad"),
        (["a.pte", Path("b.pte")], "bad", "a.pte, b.pte: bad"),
        (["a.pte", "b.pte"], "b.pte: bad", "b.pte: bad"),
    ):
        with pytest.raises(EtxError) as caught, naming(*names):
            raise EtxError(said)
        assert str(caught.value) == expected
