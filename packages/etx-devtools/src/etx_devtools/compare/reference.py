# SPDX-License-Identifier: BSD-3-Clause
"""The exported program in eager PyTorch: all its values, and single ones from given others."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Container, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from etx_exir.ir.equal_values import EQUALS, note_exported
from etx_schema import EtxError
from torch import Tensor
from torch._ops import HigherOrderOperator
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg
from torch.utils import _pytree as pytree

from etx_devtools.compare.turns import LOOPS, Loop, Turn, loop_of, several
from etx_devtools.compare.writes import mutates, without_simple_writes

__all__ = ["Reference", "Value", "walk"]

OF_BLOCKS = "torchao.quantize_affine"
QUANTIZE = (
    "quantized_decomposed.quantize_per_tensor",
    "quantized_decomposed.quantize_per_token",
    OF_BLOCKS,
)
SHAKEN, SHAKES = 0.03, 3
Keep = Callable[[Node, Any], None]
"""Told of each node of any graph, with its result."""
Noise = tuple[float, float]
"""Shares of a step: where a range is fixed, and where it is chosen from the numbers."""
NO_NOISE: Noise = (0.0, 0.0)
UNDEFINED = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty")


@dataclass(frozen=True)
class Value:
    """A node of the exported program: the name under which files know it, and its graph's path."""

    name: str
    node: Node
    path: str

    @property
    def operator(self) -> str:
        """What the node calls."""
        return str(self.node.target)

    @property
    def is_of_loop(self) -> bool:
        """Whether a loop carries it on or stacks it up: it is the model's when the loop ends."""
        loop = self.node.args[0] if self.node.target is operator.getitem else self.node
        return isinstance(loop, Node) and loop.target in LOOPS


class Reference:
    """An exported program, run as torch runs it, without what it changes in place."""

    def __init__(self, program: ExportedProgram, noted: bool = False) -> None:
        """Take a program; with `noted`, one whose nodes say themselves what they equal."""
        source = program
        if noted:
            names = {node: node.meta.get(EQUALS) for node in _nodes(program)}
        elif any(mutates(node) for _, module in _graphs(program) for node in module.graph.nodes):
            plain = without_simple_writes(program)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                program = plain or program.run_decompositions({})
            note_exported(source, program, traced=plain is None)
            names = {node: node.meta.get(EQUALS) for node in _nodes(program)}
        else:
            names = {node: path + node.name for path, node in _paths(program)}
        self.program = program
        self.holders = dict(_holders(program.graph_module))
        self.values: dict[str, Value] = {}
        for path, node in _paths(program):
            name = names.get(node)
            if node.op == "call_function" and isinstance(name, str):
                self.values[name] = Value(name, node, path)
        self.names = {value.node: name for name, value in self.values.items()}
        self.held = self._tensors()
        self.turns: dict[Node, Turn] = {}
        self.shaken = NO_NOISE

    def inputs(self) -> list[Node]:
        """Return the placeholders of what the caller gives, in the order of a file's inputs."""
        names = set(self.program.graph_signature.user_inputs)
        kinds = {s.arg.name for s in self.program.graph_signature.input_specs if s.target}
        found = self.program.graph.find_nodes(op="placeholder")
        return [n for n in found if n.name in names or n.name not in kinds]

    def bind(self, inputs: Sequence[Any]) -> dict[Node, Any]:
        """Return the values of all placeholders; EtxError where the inputs do not fit."""
        nodes = self.inputs()
        if len(nodes) != len(inputs):
            raise EtxError(f"the eager model takes {len(nodes)} inputs, {len(inputs)} were given")
        bound: dict[Node, Any] = dict(self.held)
        for index, (node, given) in enumerate(zip(nodes, inputs, strict=True)):
            expected = node.meta.get("val")
            if isinstance(expected, Tensor) and isinstance(given, Tensor):
                _check_input(index, node, expected, given)
            bound[node] = given
        return bound

    def run(
        self, bound: Mapping[Node, Any], names: Container[str] | None = None
    ) -> tuple[dict[str, list[Any]], list[Any]]:
        """Return all values by name, several where it is computed again and again, and outputs.

        With `names` only these values are kept.
        """
        found: dict[str, list[Any]] = {}

        def keep(node: Node, result: Any) -> None:
            name = self.names.get(node)
            if name is not None and (names is None or name in names):
                found.setdefault(name, []).append(result)

        with torch.no_grad():
            outputs = _run(self.program.graph_module, dict(bound), keep)
        return found, list(outputs)

    def constant(self, name: str) -> Tensor | None:
        """Return the parameter, buffer or constant of this name."""
        found = self.program.state_dict.get(name, self.program.constants.get(name))
        return found.detach() if isinstance(found, Tensor) else None

    def outermost(self, name: str) -> Node | None:
        """Return the node of the outermost graph in which the value `name` is computed."""
        value = self.values.get(name)
        node, path = (None, "") if value is None else (value.node, value.path)
        while path:
            node, path = self.holders[path]
        return node

    def new_state(self, outputs: Sequence[Any]) -> None:
        """Let buffers have the values that an execution, which returned `outputs`, gave them."""
        by_target = {s.target: n for n, s in self._specs() if s.target}
        for spec, value in zip(self.program.graph_signature.output_specs, outputs, strict=True):
            if spec.target in by_target and "MUTATION" in spec.kind.name:
                self.held[by_target[spec.target]] = value

    def mutated(self) -> dict[str, Any]:
        """Return the buffers that the program changes, by name, as they are now."""
        changed = {
            spec.target
            for spec in self.program.graph_signature.output_specs
            if "MUTATION" in spec.kind.name
        }
        specs = self._specs()
        return {s.target: self.held[n] for n, s in specs if s.target in changed and n in self.held}

    def buffers(self, held: Mapping[str, Any]) -> dict[Node, Any]:
        """Return the placeholders of the buffers `held` by name, with these values."""
        return {
            node: held[spec.target or ""] for node, spec in self._specs() if spec.target in held
        }

    def user_outputs(self, outputs: Sequence[Any]) -> list[Any]:
        """Return of what the graph returns those that the caller gets."""
        specs = self.program.graph_signature.output_specs
        pairs = zip(specs, outputs, strict=True)
        return [value for spec, value in pairs if spec.kind.name == "USER_OUTPUT"]

    def local(
        self, value: Value, cuts: Mapping[str, Any], bound: Mapping[Node, Any], wide: bool = False
    ) -> tuple[Any, list[Node]]:
        """Compute `value` from the nearest of `cuts` above it; return it and the nodes it took.

        With `wide` floating-point numbers are float64.
        """
        known: dict[Node, Any] = {}
        taken: list[Node] = []
        with torch.no_grad():
            result = self._compute(value.node, value.path, cuts, bound, known, taken, wide, True)
        return result, taken

    def rounding(
        self,
        value: Value,
        cuts: Mapping[str, Any],
        bound: Mapping[Node, Any],
        own_ranges: bool,
    ) -> tuple[Any, ...]:
        """Compute `value` some times with what it quantizes a little off, as other sums are.

        With `own_ranges` dynamic quantization may have other ranges, as of each row: up to a step.
        """
        found = []
        try:
            self.shaken = (SHAKEN, 1.0 if own_ranges else SHAKEN)
            with torch.random.fork_rng(devices=[]):
                for seed in range(SHAKES):
                    torch.manual_seed(seed)
                    found.append(self.local(value, cuts, bound)[0])
        finally:
            self.shaken = NO_NOISE
        return tuple(found)

    def _compute(
        self,
        target: Node,
        path: str,
        cuts: Mapping[str, Any],
        bound: Mapping[Node, Any],
        known: dict[Node, Any],
        taken: list[Node],
        wide: bool,
        first: bool,
    ) -> Any:
        """Compute `target` of one graph; what a nested graph captures is computed outside of it."""
        needed: set[Node] = set()
        pending = [target]
        while pending:
            node = pending.pop()
            if node in needed or node in known:
                continue
            name = self.names.get(node)
            if name is not None and name in cuts and not (first and node is target):
                known[node] = _widened(cuts[name], wide)
            elif node.op == "placeholder":
                if path:
                    outer, holder = self._captured(node, path)
                    known[node] = (
                        self._compute(outer, holder, cuts, bound, known, taken, wide, False)
                        if isinstance(outer, Node)
                        else _widened(outer, wide)
                    )
                else:
                    known[node] = _widened(bound[node], wide)
            else:
                needed.add(node)
                pending += node.all_input_nodes
        owner = target.graph.owning_module
        for node in sorted(needed):
            known[node] = _call(owner, node, _shaken(node, known, self.shaken), wide)
            taken += [node] if node.op == "call_function" else []
        return known[target]

    def _captured(self, placeholder: Node, path: str) -> tuple[Any, str]:
        """Return what a placeholder of a nested graph stands for, and the path of its graph.

        In a loop it may be a value of this turn, instead of a node.
        """
        holder, outer = self.holders[path]
        index = placeholder.graph.find_nodes(op="placeholder").index(placeholder)
        if holder.target in LOOPS:
            turn = self.turns.get(holder)
            if turn is None:
                raise LookupError("inside a loop of which no turn is known")
            return turn.operands()[index], outer
        if holder.target is not torch.ops.higher_order.cond:
            raise LookupError(f"inside {holder.target}, which computes its values again and again")
        operands: Any = holder.args[3]
        return operands[index], outer

    def enter(self, path: str, cuts: Mapping[str, Any], bound: Mapping[Node, Any]) -> None:
        """Begin the first turn of the loop whose body or condition is the graph of `path`."""
        holder, outer = self.holders[path]
        loop = _loop(holder)
        first, rows = (
            [self._value(item, outer, cuts, bound) for item in items]
            for items in (loop.initial, loop.rows)
        )
        self.turns[holder] = Turn(loop, first, rows)

    def turn(self, path: str, cuts: Mapping[str, Any], bound: Mapping[Node, Any]) -> None:
        """Begin the next turn of a loop: it carries on what its body returned, from `cuts`."""
        holder, outer = self.holders[path]
        if holder not in self.turns:
            raise LookupError("the turn before is not known")
        returned, inner = self._returned(_loop(holder).body, holder, outer)
        self.turns[holder].next([self._value(item, inner, cuts, bound) for item in returned])

    def goes_on(self, path: str, cuts: Mapping[str, Any], bound: Mapping[Node, Any]) -> bool | None:
        """Ask the condition of a loop for the turn that begins; None where it is not known."""
        holder, outer = self.holders[path]
        condition = _loop(holder).condition
        if condition is None:
            return self.turns[holder].goes_on() if holder in self.turns else None
        (returned,), inner = self._returned(condition, holder, outer)
        try:
            return bool(self._value(returned, inner, cuts, bound))
        except LookupError:
            return None

    def _returned(self, graph: Node, holder: Node, outer: str) -> tuple[tuple[Any, ...], str]:
        """Return what a graph of a loop returns, and the graph's path."""
        name = str(graph.target)
        nodes = getattr(holder.graph.owning_module, name).graph
        return several(nodes.output_node().args[0]), f"{outer}{name}."

    def takes(self, path: str, cuts: Mapping[str, Any], bound: Mapping[Node, Any]) -> bool | None:
        """Say whether the branch that is the graph of `path` is the one to take here."""
        holder, outer = self.holders[path]
        if holder.target is not torch.ops.higher_order.cond:
            return None
        chosen, true, _, _ = holder.args
        try:
            holds = bool(self._value(chosen, outer, cuts, bound))
        except LookupError:
            return None
        return holds == (path == f"{outer}{getattr(true, 'target', '')}.")

    def graphs_of(self, path: str) -> list[str]:
        """Return the paths of the condition and the body of a loop, of which `path` is one."""
        holder, outer = self.holders[path]
        return [f"{outer}{graph.target}." for graph in _loop(holder).graphs]

    def forget(self, path: str) -> None:
        """Know nothing of the turn of a loop."""
        self.turns.pop(self.holders[path][0], None)

    def final_state(
        self, cuts: Mapping[str, Any], bound: Mapping[Node, Any]
    ) -> dict[str, tuple[str, Any]]:
        """Return for each buffer that changes the value's name and what it is, of `cuts`."""
        outputs: Any = self.program.graph.output_node().args[0]
        found = {}
        for spec, node in zip(self.program.graph_signature.output_specs, outputs, strict=True):
            if "MUTATION" in spec.kind.name and spec.target and isinstance(node, Node):
                found[spec.target] = (
                    self.names.get(node, node.name),
                    self._value(node, "", cuts, bound),
                )
        return found

    def leave(self, path: str) -> dict[str, Any]:
        """End a loop; return what it carried last by the names of its results."""
        holder, _ = self.holders[path]
        turn = self.turns.pop(holder, None)
        results = [] if turn is None else turn.results()
        return {
            self.names[user]: results[place]
            for user in holder.users
            if user.target is operator.getitem and user in self.names
            if (place := int(str(user.args[1]))) < len(results)
        }

    def loop_paths(self, name: str) -> list[str]:
        """Return the paths of the loops' graphs that the value `name` lies in, innermost last."""
        value = self.values.get(name)
        found: list[str] = []
        path = "" if value is None else value.path
        while path:
            holder, outer = self.holders[path]
            if holder.target in LOOPS:
                found.insert(0, path)
            path = outer
        return found

    def _value(
        self, item: Any, path: str, cuts: Mapping[str, Any], bound: Mapping[Node, Any]
    ) -> Any:
        if not isinstance(item, Node):
            return item
        with torch.no_grad():
            return self._compute(item, path, cuts, bound, {}, [], False, False)

    def _specs(self) -> list[tuple[Node, Any]]:
        nodes = self.program.graph.find_nodes(op="placeholder")
        return list(zip(nodes, self.program.graph_signature.input_specs, strict=True))

    def _tensors(self) -> dict[Node, Any]:
        program, held = self.program, {}
        for node, spec in self._specs():
            if spec.target is None:
                continue
            kind = spec.kind.name
            if kind in ("PARAMETER", "BUFFER") and spec.target in program.state_dict:
                held[node] = program.state_dict[spec.target]
            elif spec.target in program.constants:
                held[node] = program.constants[spec.target]
        return held


def _run(module: GraphModule, known: dict[Node, Any], keep: Keep) -> Sequence[Any]:
    """Run a graph whose placeholders are `known`."""
    steps = walk(module, known, keep)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            outputs: Sequence[Any] = end.value
            return outputs


def walk(
    module: GraphModule, known: dict[Node, Any], keep: Keep
) -> Generator[Node, None, Sequence[Any]]:
    """Run a graph node by node and return its outputs; free each value after its last reader."""
    last: dict[Node, list[Node]] = {}
    seen: set[Node] = set()
    for node in reversed(module.graph.nodes):
        for arg in node.all_input_nodes:
            if arg not in seen:
                seen.add(arg)
                last.setdefault(node, []).append(arg)
    for node in module.graph.nodes:
        if node.op == "output":
            found = map_arg(node.args[0], known.__getitem__)
            return list(found) if isinstance(found, (list, tuple)) else [found]
        if node.op != "placeholder":
            known[node] = _call(module, node, known, False, keep)
            if node.op == "call_function":
                keep(node, known[node])
                if node not in seen:
                    del known[node]
        for done in last.get(node, ()):
            if done.op != "placeholder":
                del known[done]
        yield node
    return []


def _call(
    owner: Any,
    node: Node,
    known: Mapping[Node, Any],
    wide: bool,
    keep: Keep | None = None,
) -> Any:
    if node.op == "get_attr":
        value: Any = owner
        for part in str(node.target).split("."):
            value = getattr(value, part)
        if isinstance(value, GraphModule) and keep is not None:
            return _recorded(value, keep)
        return _widened(value, wide)
    both: Any = map_arg((node.args, node.kwargs), known.__getitem__)
    args, kwargs = both
    target: Any = node.target
    if target is torch.ops.higher_order.cond:
        taken = args[1] if bool(args[0]) else args[2]
        return several(taken(*args[3]))
    loop = loop_of(target, args)
    results = None if loop is None else loop.run()
    if results is not None:
        return results
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return target(*args, **kwargs)


def _shaken(node: Node, known: Mapping[Node, Any], noise: Noise) -> Mapping[Node, Any]:
    """Return what nodes hold, with noise of a share of a step in what `node` quantizes."""
    if noise == NO_NOISE or not str(node.target).startswith(QUANTIZE):
        return known
    first, scale = node.args[0], node.args[2 if str(node.target).startswith(OF_BLOCKS) else 1]
    step: Any = known[scale] if isinstance(scale, Node) else scale
    value = known[first] if isinstance(first, Node) else None
    if not isinstance(first, Node) or not isinstance(value, Tensor):
        return known
    if not value.dtype.is_floating_point:
        return known
    if isinstance(step, Tensor) and step.numel() * value.shape[-1] == value.numel():
        step = step.reshape(*value.shape[:-1], 1)
    share = (torch.rand_like(value) * 2 - 1) * noise[isinstance(scale, Node)]
    return {**known, first: value + (share * step).to(value.dtype)}


def _loop(holder: Node) -> Loop:
    found = loop_of(holder.target, holder.args)
    assert found is not None
    return found


def _recorded(module: GraphModule, keep: Keep) -> Any:
    """Return a function that runs `module` and keeps its values."""

    def run(*operands: Any) -> Any:
        known = dict(zip(module.graph.find_nodes(op="placeholder"), operands, strict=True))
        return tuple(_run(module, known, keep))

    class Body(torch.nn.Module):
        def forward(self, *operands: Any) -> Any:
            return run(*operands)

    return Body()


def _widened(value: Any, wide: bool) -> Any:
    def one(tensor: Tensor) -> Tensor:
        if not tensor.dtype.is_floating_point:
            return tensor.to(torch.complex128) if tensor.dtype.is_complex else tensor
        return tensor.to(torch.float64)

    return pytree.tree_map_only(Tensor, one, value) if wide else value


def _check_input(index: int, node: Node, expected: Tensor, given: Tensor) -> None:
    sizes = [size if isinstance(size, int) else None for size in expected.shape]
    fits = len(sizes) == given.dim() and all(
        size in (None, actual) for size, actual in zip(sizes, given.shape, strict=True)
    )
    if not fits or given.dtype != expected.dtype:
        shown = ", ".join("?" if size is None else str(size) for size in sizes)
        raise EtxError(
            f"input {index} ({node.name}): the eager model takes "
            f"{_short(expected.dtype)}[{shown}], got {_short(given.dtype)}{list(given.shape)}; "
            "is it the model of this file?"
        )


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _graphs(program: ExportedProgram) -> Iterator[tuple[str, GraphModule]]:
    def walk(root: GraphModule, path: str) -> Iterator[tuple[str, GraphModule]]:
        yield path, root
        for node in root.graph.find_nodes(op="get_attr"):
            child = getattr(root, node.target, None) if "." not in node.target else None
            if isinstance(child, GraphModule):
                yield from walk(child, f"{path}{node.target}.")

    yield from walk(program.graph_module, "")


def _paths(program: ExportedProgram) -> Iterator[tuple[str, Node]]:
    for path, module in _graphs(program):
        for node in module.graph.nodes:
            yield path, node


def _nodes(program: ExportedProgram) -> Iterator[Node]:
    for _, node in _paths(program):
        yield node


def _holders(root: GraphModule, path: str = "") -> Iterator[tuple[str, tuple[Node, str]]]:
    """Yield for each nested graph's path the node that runs it and that node's own path."""
    for node in root.graph.find_nodes(op="get_attr"):
        child = getattr(root, node.target, None) if "." not in node.target else None
        if isinstance(child, GraphModule):
            inner = f"{path}{node.target}."
            for user in node.users:
                if isinstance(user.target, HigherOrderOperator):
                    yield inner, (user, path)
            yield from _holders(child, inner)
