# SPDX-License-Identifier: BSD-3-Clause
"""What ExecuTorch's tests of its Arm backend are made of, over ETX: one class a target.

A test makes a pipeline of a module and inputs, changes stages by name, and runs it: quantize,
export, lower, look at the graph, run, compare. The names are ExecuTorch's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import compress
from typing import Any

import etx_runtime
import numpy as np
import torch
from etx_backend_arm.compile_spec import TosaCompileSpec
from etx_backend_arm.ethos_u.backend import EthosUPartitioner, EthosUQuantizer
from etx_backend_arm.ethos_u.compile_spec import EthosUCompileSpec
from etx_backend_arm.partition import TOSAPartitioner
from etx_backend_arm.quantizer import TOSAQuantizer, get_symmetric_a16w8_quantization_config
from etx_backend_arm.tosa import Op, read_tosa
from etx_exir import to_edge_transform_and_lower
from etx_exir.ir.delegate_call import CALL_DELEGATE
from etx_quant import get_symmetric_quantization_config
from lowered import interpreted
from torch.export.graph_signature import OutputKind
from torch.utils import _pytree as pytree
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

DELEGATE = "torch.ops.higher_order.executorch_call_delegate"
RUN = "run_method_and_compare_outputs"
QUANTIZED = "quantized_decomposed"


class LeftOutError(Exception):
    """A test that needs what is not a part of either project."""


class Stage:
    """A step, and what it is given."""

    def __init__(self, call: Callable[..., None], args: Any, kwargs: dict[str, Any]) -> None:
        self.call, self.args, self.kwargs = call, args, kwargs


class Tester:
    """A module on its way; its methods are what stages call."""

    def __init__(self, module: torch.nn.Module, inputs: tuple[Any, ...], target: Any) -> None:
        self.original = module.eval()
        self.module: Any = self.original
        self.inputs, self.compile_spec = tuple(inputs), target
        self.use_portable_ops = False
        self.quantizer: Any = None
        self.dynamic_shapes: Any = None
        self.program: Any = None
        self.edge: Any = None

    def quantize(self, stage: Any = None) -> None:
        """Quantize after calibration with the inputs."""
        program = self._exported()
        prepared = prepare_pt2e(program.module(check_guards=False), self.quantizer)
        prepared(*self.inputs)
        self.module = convert_pt2e(prepared)

    def _exported(self) -> Any:
        shapes = self.dynamic_shapes
        try:
            return torch.export.export(self.module, self.inputs, dynamic_shapes=shapes)
        except Exception as error:
            if self.module is not self.original:
                raise
            said = f"{type(error).__name__}: {' '.join(str(error).split())[:150]}"
            raise LeftOutError(f"PyTorch does not export it: {said}") from error

    def export(self) -> None:
        """Export."""
        self.program = self._exported()

    def to_edge_transform_and_lower(self, *_: Any, **__: Any) -> None:
        """Lower to the target."""
        if isinstance(self.compile_spec, EthosUCompileSpec):
            partitioner: Any = EthosUPartitioner(self.compile_spec)
        else:
            partitioner = TOSAPartitioner(self.compile_spec)
        self.edge = to_edge_transform_and_lower(self.program, partitioner=[partitioner])

    to_edge = partition = to_executorch = serialize = lambda self, *_, **__: None

    def _targets(self) -> list[str]:
        program = self.program
        if self.edge is not None:
            program = self.edge.exported_program()
        if program is None:
            return []
        calls = (n for n in program.graph.nodes if n.op == "call_function")
        return [DELEGATE if n.target is CALL_DELEGATE else str(n.target) for n in calls]

    def _count(self, name: str) -> int:
        plain = name.removeprefix("torch.ops.").removeprefix("executorch_exir_dialects_edge__ops_")
        plain = plain.replace(".", "_")
        found = (t.removeprefix("torch.ops.").replace(".", "_") for t in self._targets())
        return sum(each.startswith(plain) or each == plain for each in found)

    def check(self, names: Iterable[str]) -> None:
        """Each operator is there."""
        if self.edge is not None:
            missing = [name for name in names if not self._count(name)]
            assert not missing, f"{missing[0]} is not in the graph"

    def check_not(self, names: Iterable[str]) -> None:
        """No such operator is left."""
        if self.edge is not None:
            left = [name for name in names if self._count(name) and QUANTIZED not in name]
            assert not left, f"{left[0]} is not delegated"

    def check_count(self, counts: dict[str, int]) -> None:
        """Each operator is there so many times; no delegate is needed for nothing."""
        for name, count in counts.items():
            found = self._count(name)
            if name == DELEGATE and self.edge is not None and not self._targets():
                continue
            assert found == count, f"{found} of {name.rpartition('.')[2]}, expected {count}"

    def check_dtype_count(self, *_: Any) -> None:
        """Say nothing: what is counted is inside of ExecuTorch's graphs."""

    def dump_artifact(self, *_: Any, **__: Any) -> None:
        """Write nothing."""

    def count_tosa_ops(self, expected: dict[str, int]) -> None:
        """A delegate has so many operators of a kind."""
        found: Counter[str] = Counter()
        for graph in _graphs(self.edge.exported_program()):
            (block,) = read_tosa(graph).regions[0].blocks
            found.update(Op(each.op).name for each in block.operators)
        for name, count in expected.items():
            assert found[name] <= count, f"{found[name]} operators {name}, expected {count}"

    def run_method_and_compare_outputs(
        self,
        *_: Any,
        inputs: Any = None,
        atol: float = 1e-3,
        rtol: float = 1e-3,
        qtol: float = 1,
        **__: Any,
    ) -> None:
        """Run what was lowered, and compare it with the module, quantized where that was asked."""
        given = tuple(self.inputs if inputs is None else inputs)
        with torch.no_grad():
            expected = pytree.tree_leaves(self.module(*deepcopy(given)))
        actual = self._executed(given)
        assert len(actual) == len(expected), f"{len(actual)} results, expected {len(expected)}"
        steps = [_scale(self.program)] * len(expected)
        for made, value, scale in zip(actual, expected, steps, strict=True):
            torch.testing.assert_close(
                made.double() if made.is_floating_point() else made,
                value.double() if value.is_floating_point() else value,
                rtol=rtol,
                atol=atol + qtol * scale,
                equal_nan=True,
                check_dtype=False,
            )

    def _executed(self, inputs: tuple[Any, ...]) -> list[torch.Tensor]:
        if not isinstance(self.compile_spec, EthosUCompileSpec):
            program = self.edge.exported_program()
            kinds = [spec.kind for spec in program.graph_signature.output_specs]
            made = interpreted(program, *pytree.tree_leaves(inputs))
            live = [kind == OutputKind.USER_OUTPUT for kind in kinds]
            return list(compress(made, live))
        if self.compile_spec.family == "ethos-u85":
            self.edge.to_executorch()
            raise LeftOutError("compiled; no simulator of an Ethos-U85 is here")
        method = etx_runtime.load(bytes(self.edge.to_executorch().buffer))
        arrays = [x.numpy() if isinstance(x, torch.Tensor) else x for x in inputs]
        made = method(*pytree.tree_leaves(arrays))
        return [torch.from_numpy(np.asarray(each)) for each in pytree.tree_leaves(made)]


def _graphs(program: Any) -> list[bytes]:
    calls = [n for n in program.graph.nodes if n.target is CALL_DELEGATE]
    return [getattr(program.graph_module, n.args[0].target).processed_bytes for n in calls]


def _scale(program: Any) -> float:
    """Return the largest step of the program's results."""
    results: Any = program.graph.output_node().args[0]
    scales = [
        float(each.args[1])
        for each in results
        if isinstance(each, torch.fx.Node) and "dequantize_per_tensor" in str(each.target)
    ]
    return max(scales, default=0.0)


class Pipeline:
    """Stages in order, by name."""

    delegates = 1

    def __init__(
        self,
        module: torch.nn.Module,
        test_data: Any,
        aten_op: Any = (),
        exir_op: Any = (),
        *_: Any,
        target: Any = None,
        quantizer: Any = None,
        **options: Any,
    ) -> None:
        self.test_data = test_data
        self.tester = Tester(module, test_data, target)
        self.tester.dynamic_shapes = options.get("dynamic_shapes")
        self.tester.quantizer = quantizer
        self.stages: dict[str, Stage] = {}
        if quantizer is not None:
            self._put("quantize", self.tester.quantize)
            self._put("check.quant_nodes", self.tester.check, [])
        self._put("export", self.tester.export)
        self._put("check.aten", self.tester.check, [])
        self._put("to_edge_transform_and_lower", self.tester.to_edge_transform_and_lower)
        ops = [exir_op] if isinstance(exir_op, str) else list(exir_op or ())
        self._put("check_not.exir", self.tester.check_not, ops)
        self._put("check_count.exir", self.tester.check_count, {DELEGATE: self.delegates})
        self._put("to_executorch", self.tester.to_executorch)
        if options.get("run_on_tosa_ref_model", options.get("run_on_fvp", True)):
            if isinstance(target, EthosUCompileSpec):
                self._put("serialize", self.tester.serialize)
            bounds = {k: options[k] for k in ("atol", "rtol", "qtol") if k in options}
            bounds.setdefault("qtol", 1 if quantizer is not None else 0)
            self._put(RUN, self.tester.run_method_and_compare_outputs, **bounds)

    def __class_getitem__(cls, _: Any) -> Any:
        """Return the class: `Pipeline[input]`."""
        return cls

    def _put(self, name: str, call: Callable[..., None], *args: Any, **kwargs: Any) -> None:
        self.stages[name] = Stage(call, args, kwargs)

    @property
    def quantizer(self) -> Any:
        """Return the quantizer."""
        return self.tester.quantizer

    def _name(self, name: int | str) -> str:
        return list(self.stages)[name] if isinstance(name, int) else name

    def pop_stage(self, name: int | str) -> Stage | None:
        """Leave a stage out."""
        return self.stages.pop(self._name(name), None)

    def has_stage(self, name: str) -> bool:
        """Tell whether there is a stage."""
        return name in self.stages

    def find_pos(self, name: str) -> int:
        """Return the place of a stage."""
        return list(self.stages).index(name)

    def change_args(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Give a stage other arguments."""
        if name in self.stages:
            self.stages[name] = Stage(self.stages[name].call, args, kwargs)
        return self

    def add_stage_after(self, name: str, call: Any, *args: Any, **kwargs: Any) -> Any:
        """Add a stage."""
        kwargs.pop("suffix", None)
        items = list(self.stages.items())
        at = self.find_pos(name) + 1 if name in self.stages else len(items)
        items.insert(at, (f"added.{len(items)}.{name}", Stage(call, args, kwargs)))
        self.stages = dict(items)
        return self

    def add_stage(self, call: Any, *args: Any, **kwargs: Any) -> Any:
        """Add a stage at the end, or at a place."""
        kwargs.pop("suffix", None)
        at = kwargs.pop("pos", -1)
        items = list(self.stages.items())
        items.insert(
            len(items) if at < 0 else at, (f"added.{len(items)}", Stage(call, args, kwargs))
        )
        self.stages = dict(items)
        return self

    def count_tosa_ops(self, expected: dict[str, int]) -> Any:
        """Add a stage that counts operators of the delegate."""
        if isinstance(self.tester.compile_spec, TosaCompileSpec):
            name = "to_edge_transform_and_lower"
            self.add_stage_after(name, self.tester.count_tosa_ops, expected)
        return self

    def dump_artifact(self, *_: Any, **__: Any) -> Any:
        """Write nothing."""
        return self

    dump_operator_distribution = visualize = dump_artifact

    def run_and_compare_to_initial_model(self, *_: Any, **__: Any) -> None:
        """Leave out: what is compared is quantized."""

    def run(self) -> None:
        """Take all stages."""
        for stage in list(self.stages.values()):
            stage.call(*stage.args, **stage.kwargs)


def _specification(profile: str, version: str, extensions: Any) -> TosaCompileSpec:
    if version != "1.0":
        raise LeftOutError(f"TOSA {version}, a draft")
    known = [each for each in extensions or () if each in ("int16", "int4", "bf16")]
    return TosaCompileSpec("+".join([f"TOSA-1.0+{profile}", *known]))


def _config(wide: bool, per_channel: bool) -> Any:
    if wide:
        return get_symmetric_a16w8_quantization_config(is_per_channel=per_channel)
    return get_symmetric_quantization_config(is_per_channel=per_channel)


class TosaPipelineFP(Pipeline):
    """To TOSA's profile FP, on the reference model."""

    def __init__(self, *args: Any, **options: Any) -> None:
        extensions = options.pop("tosa_extensions", None)
        spec = _specification("FP", options.pop("tosa_version", "1.0"), extensions)
        super().__init__(*args, target=spec, **options)


class TosaPipelineINT(Pipeline):
    """To TOSA's profile INT, on the reference model."""

    def __init__(self, *args: Any, **options: Any) -> None:
        extensions = options.pop("tosa_extensions", None) or []
        spec = _specification("INT", options.pop("tosa_version", "1.0"), extensions)
        quantizer = TOSAQuantizer(spec)
        per_channel = options.pop("per_channel_quantization", True)
        quantizer.set_global(_config("int16" in extensions, per_channel))
        super().__init__(*args, target=spec, quantizer=quantizer, **options)


class EthosU55PipelineINT(Pipeline):
    """To an Ethos-U55, on ETX's simulator."""

    target = "ethos-u55-128"

    def __init__(self, *args: Any, aten_ops: Any = (), exir_ops: Any = (), **options: Any) -> None:
        spec = EthosUCompileSpec(self.target)
        quantizer = EthosUQuantizer(spec)
        wide = options.pop("a16w8_quantization", False)
        quantizer.set_global(_config(wide, options.pop("per_channel_quantization", True)))
        module, data, *rest = args
        given = [*rest, *(aten_ops, exir_ops)[len(rest) :]][:2]
        super().__init__(module, data, *given, target=spec, quantizer=quantizer, **options)


class EthosU65PipelineINT(EthosU55PipelineINT):
    """To an Ethos-U65, on ETX's simulator."""

    target = "ethos-u65-256"


class EthosU85PipelineINT(EthosU55PipelineINT):
    """To an Ethos-U85: it is compiled."""

    target = "ethos-u85-128"


class VgfPipeline(Pipeline):
    """Another target of ExecuTorch's."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise LeftOutError("VGF, for GPUs, is not a target here")


MXFPTosaPipelineFP = MXFPVgfPipeline = QuantizationPipeline = VgfPipeline


class ArmTester:
    """The stages of a lowering, one by one."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise LeftOutError("it is about a stage of ExecuTorch's own lowering")


class OpNotSupportedPipeline(Pipeline):
    """To what ExecuTorch does not take; what ETX takes of it runs."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise LeftOutError("it is about what ExecuTorch does not take")
