# SPDX-License-Identifier: BSD-3-Clause
"""The table of operators that only move elements, against torch, the target and the sources."""

import ast
from pathlib import Path

import etx_exir
import pytest
import torch
from etx_exir.ir.ops import COPY_OF, MOVES_OF, TABLE, VIEW_OF, Moves, permutation
from etx_exir.ir.targets import default_operators
from programs import Calls

ROOT = Path(etx_exir.__file__).parent
NAMES = {str(op).removeprefix("aten.") for op in MOVES_OF}
SHAPE = (1, 3, 4)
CALLS = {
    "as_strided": ([2, 2], [3, 1]),
    "diagonal": (0, 1, 2),
    "expand": ([2, 3, 4],),
    "narrow": (1, 1, 2),
    "permute": ([2, 0, -2],),
    "_reshape": ([3, 4],),
    "select": (1, -1),
    "slice": (1, 1, 3),
    "split": (2, 1),
    "split_with_sizes": ([1, 2], 1),
    "squeeze.dim": (0,),
    "squeeze.dims": ([0],),
    "transpose": (1, -1),
    "unbind": (1,),
    "unfold": (2, 2, 1),
    "unsqueeze": (1,),
    "view": ([3, 4],),
}
IN_ORDER = (Moves.SAME, Moves.RESHAPE)
SEVERAL = (Moves.SPLIT, Moves.UNBIND)
rows = pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row.copy))


def test_an_operator_stands_in_one_row():
    ops = [op for row in TABLE for op in (row.copy, *row.views)]
    assert len(ops) == len(set(ops)) == len(MOVES_OF)
    assert {COPY_OF[view] for view in VIEW_OF.values()} == VIEW_OF.keys()


@rows
def test_torch_says_what_a_row_says(row):
    """Results of views alias an argument, those of copies do not."""
    assert not any(result.alias_info for result in row.copy._schema.returns)
    if row.views:
        assert row.views[0].is_view
        assert row.copy._schema.name == f"{row.views[0]._schema.name}_copy"


def arguments(row):
    base, _, overload = str(row.copy).removeprefix("aten.").partition(".")
    base = base.removesuffix("_copy")
    return CALLS.get(f"{base}.{overload}", CALLS.get(base, ()))


@rows
def test_elements_move_so(row):
    x = torch.arange(12).reshape(SHAPE)
    if row.copy is torch.ops.aten.t_copy.default:
        x = x[0]
    if row.copy is torch.ops.aten.view_as_real_copy.default:
        x = x.cfloat()
    if row.copy is torch.ops.aten.view_as_complex_copy.default:
        x = x.double().unflatten(-1, (2, 2))
    results = row.copy(x, *arguments(row))
    assert isinstance(results, (list, tuple)) is (row.moves in SEVERAL)
    results = results if row.moves in SEVERAL else [results]
    elements = torch.cat([result.reshape(-1) for result in results])
    if row.moves in IN_ORDER:
        assert torch.equal(elements, x.reshape(-1))
        assert (results[0].shape == x.shape) is (row.moves is Moves.SAME)
    if row.moves in (Moves.PERMUTE, *SEVERAL):
        assert elements.sort()[0].tolist() == x.reshape(-1).tolist()
    if row.moves is not Moves.OTHER:
        assert set(elements.tolist()) <= set(x.reshape(-1).tolist())
    for view in row.views[:1]:
        again = view(x, *arguments(row))
        assert all(map(torch.equal, again if row.moves in SEVERAL else [again], results))


@pytest.mark.parametrize("row", [row for row in TABLE if row.moves is Moves.PERMUTE], ids=str)
def test_orders_of_permutations(row):
    x = torch.arange(12).reshape(SHAPE if row.copy is not torch.ops.aten.t_copy.default else (3, 4))
    function = Calls(lambda y: row.copy(y, *arguments(row)))
    graph = torch.export.export(function, (x,)).graph
    (node,) = graph.find_nodes(op="call_function", target=row.copy)
    assert torch.equal(x.permute(permutation(node)), row.copy(x, *arguments(row)))


def test_kernels_of_views_are_in_the_table():
    """What the target has as `x_copy` is a row; kernels of the rest would never be called."""
    kernels = {name.split("::")[1] for name in default_operators() if name.startswith("aten::")}
    bases = {str(row.copy.overloadpacket).removeprefix("aten.") for row in TABLE}
    copying = {name.partition(".")[0] for name in kernels} - {"_to_copy"}
    assert {base for base in copying if base.endswith("_copy")} <= bases


def spelled(tree):
    """Yield what a module names: `aten.x.y` and, as `torch.ops.aten.x`, what comes after."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
            yield f"{node.value.attr}.{node.attr}"
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value.removeprefix("aten.")


def test_views_are_named_in_the_table_alone():
    modules = {p.relative_to(ROOT).as_posix(): p for p in ROOT.rglob("*.py")}
    found = {n: NAMES & set(spelled(ast.parse(p.read_text()))) for n, p in modules.items()}
    assert found.pop("ir/ops.py") >= NAMES - {"view.default"}
    assert {name: sorted(views) for name, views in found.items() if views} == {}
