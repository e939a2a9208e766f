# SPDX-License-Identifier: BSD-3-Clause
"""Functions that change a graph or check it."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from etx_exir.lower.copy_program import apply_passes
from etx_exir.lower.verify import Dialect, verify
from etx_exir.passes.simplify.fold_constants import FoldConstants
from etx_exir.passes.simplify.remove_dead_code import RemoveDeadCode
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind, OutputSpec
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult
from torch.fx.passes.tools_common import legalize_graph
from torch.fx.passes.utils.fuser_utils import fuse_as_graphmodule, insert_subgm, topo_sort

from etx_executorch.adapters.dialect import in_edge, plain

__all__ = [
    "EXIREdgeDialectVerifier",
    "arrange_graph_outputs",
    "constant_prop_pass",
    "create_submodule_from_nodes",
    "dead_code_elimination_pass",
    "default_decomposition_table",
    "delegate_external_constants_pass_unlifted",
    "patch_forward",
    "transform",
]


class EXIREdgeDialectVerifier:
    """Checks a program in the Edge dialect; a graph module without one is linted."""

    dialect = "EDGE"

    def __init__(self, edge_compile_config: Any = None, class_only: bool = False) -> None:
        self.config = edge_compile_config

    def __call__(self, program: ExportedProgram | GraphModule) -> None:
        """Raise a VerificationError that names each node and rule."""
        if isinstance(program, GraphModule):
            program.graph.lint()
            return
        allowed: tuple[Any, ...] = ()
        if self.config is not None:
            allowed = (*self.config.preserve_ops, *self.config._core_aten_ops_exception_list)
        verify(plain(program), Dialect.EDGE, allowed)

    check = __call__


def constant_prop_pass(
    exported_program: ExportedProgram, custom_skip_targets: Any = None
) -> ExportedProgram:
    """Return a copy whose constant expressions are computed."""
    return apply_passes(exported_program, in_edge([FoldConstants(), RemoveDeadCode()]))


def dead_code_elimination_pass(graph_module: GraphModule) -> PassResult:
    """Remove what nothing uses."""
    changed = bool(graph_module.graph.eliminate_dead_code())
    graph_module.recompile()
    return PassResult(graph_module, changed)


def transform(
    program: ExportedProgram, *passes: Any, override_verifiers: Sequence[type] | None = None
) -> ExportedProgram:
    """Return a copy of a program with passes applied, and verifiers of its own."""
    result = apply_passes(program, in_edge(passes))
    if override_verifiers is not None:
        result = copy.copy(result)
        result._verifiers = list(override_verifiers)
    return result


def default_decomposition_table() -> dict[torch._ops.OperatorBase, Callable[..., Any]]:
    """Return the decompositions that lead to Core ATen."""
    return dict(torch.export.default_decompositions())


@contextmanager
def patch_forward(obj: Any, new_method: Callable[..., Any]) -> Iterator[None]:
    """Let another method be `forward` meanwhile, so that it is exported."""
    old = obj.forward
    obj.forward = new_method
    try:
        yield
    finally:
        obj.forward = old


def create_submodule_from_nodes(
    gm: GraphModule, node_list: Sequence[Node], tag: str, skip_legalize_graph: bool = False
) -> tuple[GraphModule, Node]:
    """Move nodes into a module of their own, in place; return it and the call of it.

    The module returns a list; the results are picked from the call by `getitem`.
    """
    name = f"fused_{tag}"
    inner, inputs, outputs = fuse_as_graphmodule(gm, topo_sort(list(node_list)), name)
    insert_subgm(gm, inner, inputs, outputs)
    (call,) = (n for n in gm.graph.nodes if n.op == "call_module" and n.target == name)
    _return_list(gm, inner, call, outputs)
    if not skip_legalize_graph:
        legalize_graph(gm)
        gm.graph.lint()
    gm.recompile()
    return inner, call


def arrange_graph_outputs(
    gm: GraphModule, output_specs: list[OutputSpec], call_module_node: Node
) -> None:
    """Put new values of buffers before the other outputs of a module, in place.

    The specs, and the items that are picked from the call of the module, follow.
    """
    order = sorted(
        range(len(output_specs)), key=lambda i: output_specs[i].kind is OutputKind.USER_OUTPUT
    )
    output_specs[:] = [output_specs[i] for i in order]
    returned = gm.graph.output_node()
    values: Any = returned.args[0]
    returned.args = (tuple(values[i] for i in order),)
    gm.recompile()
    moved = {old: new for new, old in enumerate(order)}
    for user in call_module_node.users:
        if user.target is operator.getitem:
            user.args = (call_module_node, moved[int(user.args[1])])  # type: ignore[arg-type]


def _return_list(gm: GraphModule, inner: GraphModule, call: Node, outputs: Sequence[Node]) -> None:
    returned = inner.graph.output_node()
    if isinstance(returned.args[0], Node):
        returned.args = ([returned.args[0]],)
        with gm.graph.inserting_after(call):
            item = gm.graph.call_function(operator.getitem, (call, 0))
        call.replace_all_uses_with(item, delete_user_cb=lambda user: user is not item)
        item.meta.update(outputs[0].meta)
    else:
        returned.args = (list(returned.args[0]),)  # type: ignore[arg-type]
    call.meta["val"] = [node.meta.get("val") for node in outputs]
    inner.recompile()


def delegate_external_constants_pass_unlifted(
    module: torch.nn.Module, gen_tag_fn: Callable[[Node], str | None] | None = None
) -> PassResult:
    """Name the file of each constant of `module` that is to lie outside where a delegate has it.

    `module` is what `ExportedProgram.module()` returns; export it again with `strict=True`,
    which keeps what is said of parameters.
    """
    if gen_tag_fn is None:
        return PassResult(module, False)
    graphs = [part for part in module.modules() if isinstance(part, GraphModule)]
    constants = [n for part in graphs for n in part.graph.nodes if n.op == "get_attr"]
    for node in constants:
        node.meta.setdefault("custom", {})["delegate_constant_tag"] = gen_tag_fn(node)
    return PassResult(module, bool(constants))
