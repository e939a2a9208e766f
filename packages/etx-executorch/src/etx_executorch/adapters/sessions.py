# SPDX-License-Identifier: BSD-3-Clause
"""Export by a recipe: each step's result is kept in a session."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from itertools import zip_longest
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram
from torch.fx import GraphModule

from etx_executorch.adapters.export_util import save_pte_program
from etx_executorch.adapters.graphs import get_delegation_info
from etx_executorch.adapters.managers import (
    EdgeProgramManager,
    ExecutorchProgramManager,
    to_edge,
    to_edge_transform_and_lower,
)
from etx_executorch.adapters.recipes import (
    ExportRecipe,
    LoweringRecipe,
    QuantizationRecipe,
    StageType,
)

__all__ = ["ExportSession", "PipelineArtifact", "export"]

EDGE = (
    StageType.TO_EDGE_TRANSFORM_AND_LOWER,
    StageType.TO_BACKEND,
    StageType.EDGE_PROGRAM_MANAGER_TRANSFORM,
    StageType.TO_EDGE,
)
OF_MODULES = (StageType.SOURCE_TRANSFORM, StageType.QUANTIZE)


class PipelineArtifact:
    """What a step returned: models, programs or a manager, and notes beside it."""

    def __init__(self, data: Any, context: dict[str, Any]) -> None:
        self.data, self.context = data, context

    def get_context(self, key: str, default: Any = None) -> Any:
        """Return a note."""
        return self.context.get(key, default)


def export(
    model: Any,
    example_inputs: Any = None,
    export_recipe: ExportRecipe | None = None,
    name: str | None = None,
    dynamic_shapes: Any = None,
    constant_methods: dict[str, Any] | None = None,
    artifact_dir: str | None = None,
    generate_etrecord: bool = False,
) -> ExportSession:
    """Export a model by a recipe, and return the finished session."""
    session = ExportSession(
        model,
        example_inputs,
        export_recipe,
        name,
        dynamic_shapes,
        constant_methods,
        artifact_dir,
        generate_etrecord,
    )
    session.export()
    return session


class ExportSession:
    """The steps of a recipe and their results.

    ``model``: a module, a quantized graph module, an exported program, a dict of them by method, or
    the path of a program. ``example_inputs``: calls of the model, a list or one by method; the
    first is exported with, all calibrate. ``name`` and ``artifact_dir`` change nothing.
    """

    def __init__(
        self,
        model: Any,
        example_inputs: Any = None,
        export_recipe: ExportRecipe | None = None,
        name: str | None = None,
        dynamic_shapes: Any = None,
        constant_methods: dict[str, Any] | None = None,
        artifact_dir: str | None = None,
        generate_etrecord: bool | None = False,
    ) -> None:
        model = torch.export.load(model) if isinstance(model, str) else model
        self._models = dict(model) if isinstance(model, Mapping) else {"forward": model}
        kinds = (nn.Module, ExportedProgram)
        if not self._models or not all(isinstance(m, kinds) for m in self._models.values()):
            raise TypeError(f"model: expected modules or exported programs, got {model!r}")
        programs = [isinstance(m, ExportedProgram) for m in self._models.values()]
        graphs = [isinstance(m, GraphModule) for m in self._models.values()]
        if example_inputs is None and not all(programs):
            raise ValueError("example_inputs: modules need them; only exported programs do not")
        self._inputs = _by_method(example_inputs or {})
        self._shapes = _by_method(dynamic_shapes or {})
        self._recipe = export_recipe or ExportRecipe()
        self._quantization = self._recipe.quantization_recipe or QuantizationRecipe()
        self._lowering = self._recipe.lowering_recipe or LoweringRecipe()
        self._constants = constant_methods
        self._has_record = bool(generate_etrecord)
        given = self._recipe.pipeline_stages
        self._stages = list(given or self._usual(any(programs), any(graphs)))
        if any(programs) or any(graphs):
            wrong = [*OF_MODULES, *[StageType.TORCH_EXPORT] * any(programs)]
            found = [stage.name for stage in self._stages if stage in wrong]
            if found:
                raise ValueError(
                    f"pipeline_stages: {', '.join(found)} need a module; the model is "
                    f"{'an exported program' if any(programs) else 'quantized'} already"
                )
        self._own: dict[StageType, Any] = {}
        self._artifacts: dict[StageType, PipelineArtifact] = {}

    def _usual(self, is_program: bool, is_graph: bool) -> list[StageType]:
        stages = [] if is_program or is_graph else list(OF_MODULES)
        stages += [] if is_program else [StageType.TORCH_EXPORT]
        stages.append(StageType.TO_EDGE_TRANSFORM_AND_LOWER)
        if self._lowering.edge_manager_transform_passes:
            stages.append(StageType.EDGE_PROGRAM_MANAGER_TRANSFORM)
        return [*stages, StageType.TO_EXECUTORCH]

    def register_stage(self, stage_type: StageType, stage: Any) -> None:
        """Run ``stage`` in the place of a step: an object with ``run`` and ``get_artifacts``."""
        self._own[stage_type] = stage

    def get_registered_stage(self, stage_type: StageType) -> Any:
        """Return what was registered for a step, or None."""
        return self._own.get(stage_type)

    def get_all_registered_stages(self) -> dict[StageType, Any]:
        """Return what was registered."""
        return self._own

    def export(self) -> None:
        """Run all steps."""
        steps: dict[StageType, Callable[[Any], Any]] = {
            StageType.SOURCE_TRANSFORM: self._transform_source,
            StageType.QUANTIZE: self._quantize,
            StageType.TORCH_EXPORT: self._export,
            StageType.TO_EDGE_TRANSFORM_AND_LOWER: self._lower,
            StageType.TO_EDGE: self._to_edge,
            StageType.EDGE_PROGRAM_MANAGER_TRANSFORM: self._transform,
            StageType.TO_BACKEND: self._to_backend,
            StageType.TO_EXECUTORCH: self._to_executorch,
        }
        artifact = PipelineArtifact(self._models, {"example_inputs": self._inputs})
        for stage in self._stages:
            if stage in self._own:
                self._own[stage].run(artifact)
                artifact = self._own[stage].get_artifacts()
            elif stage in steps:
                data = steps[stage](artifact.data)
                artifact = PipelineArtifact(data, {**artifact.context, **_notes(data)})
            else:
                raise ValueError(
                    f"pipeline_stages: {stage!r} is not a step, and nothing is registered for it"
                )
            self._artifacts[stage] = artifact

    def _transform_source(self, models: dict[str, nn.Module]) -> dict[str, nn.Module]:
        configs = self._quantization.ao_quantization_configs
        if not configs:
            return models
        if len(configs) > 1:
            raise ValueError("ao_quantization_configs: expected one, for they change each other")
        from torchao.quantization import quantize_
        from torchao.utils import unwrap_tensor_subclass

        models = models if self._recipe.source_transform_in_place else copy.deepcopy(models)
        for model in models.values():
            quantize_(model, configs[0].ao_base_config, configs[0].filter_fn)
            unwrap_tensor_subclass(model)
        return models

    def _quantize(self, models: dict[str, nn.Module]) -> dict[str, Any]:
        if not self._quantization.quantizers:
            return models
        return {
            name: _quantized(model, self._calls(name), self._quantization)
            for name, model in models.items()
        }

    def _export(self, models: dict[str, nn.Module]) -> dict[str, ExportedProgram]:
        programs = {}
        for name, model in models.items():
            with torch.no_grad():
                programs[name] = torch.export.export(
                    model,
                    self._calls(name)[0],
                    dynamic_shapes=self._shapes.get(name),
                    strict=self._recipe.strict,
                )
            for change in self._recipe.aten_transform_passes or ():
                programs[name] = change(name, programs[name])
        return programs

    def _lower(self, programs: dict[str, ExportedProgram]) -> EdgeProgramManager:
        return to_edge_transform_and_lower(
            programs,
            transform_passes=self._passes(programs),
            partitioner=self._lowering.partitioners,
            constant_methods=self._constants,
            compile_config=self._lowering.edge_compile_config,
            generate_etrecord=self._has_record,
        )

    def _to_edge(self, programs: dict[str, ExportedProgram]) -> EdgeProgramManager:
        return to_edge(
            programs,
            constant_methods=self._constants,
            compile_config=self._lowering.edge_compile_config,
            generate_etrecord=self._has_record,
        )

    def _passes(self, programs: Mapping[str, ExportedProgram]) -> Any:
        """Return the passes of the recipe: lists by method, or a manager for all."""
        found: dict[str, list[Any]] = {}
        for name, program in programs.items():
            for choose in self._lowering.edge_transform_passes or ():
                passes = choose(name, program)
                if not isinstance(passes, list):
                    return passes
                found.setdefault(name, []).extend(passes)
        return {name: passes for name, passes in found.items() if passes} or None

    def _transform(self, manager: EdgeProgramManager) -> EdgeProgramManager:
        if StageType.TO_EDGE_TRANSFORM_AND_LOWER not in self._artifacts:
            programs = {name: manager.exported_program(name) for name in manager.methods}
            passes = self._passes(programs)
            manager = manager if passes is None else manager.transform(passes)
        for choose in self._lowering.edge_manager_transform_passes or ():
            passes = choose(manager)
            manager = manager.transform(passes) if passes else manager
        return manager

    def _to_backend(self, manager: EdgeProgramManager) -> EdgeProgramManager:
        partitioners: Any = self._lowering.partitioners or []
        lowered: Any = manager
        if isinstance(partitioners, Mapping):
            for each in zip_longest(*partitioners.values()):
                chosen = dict(zip(partitioners, each, strict=True))
                lowered = lowered.to_backend({n: p for n, p in chosen.items() if p is not None})
        else:
            for partitioner in partitioners:
                lowered = lowered.to_backend(partitioner)
        result: EdgeProgramManager = lowered
        return result

    def _to_executorch(self, manager: EdgeProgramManager) -> ExecutorchProgramManager:
        return manager.to_executorch(self._recipe.executorch_backend_config)

    def _calls(self, name: str) -> list[tuple[Any, ...]]:
        calls = self._inputs.get(name)
        if not calls:
            raise ValueError(f"example_inputs: method {name!r} has none; expected a list of tuples")
        return list(calls)

    def _result(self, *stages: StageType) -> Any:
        for stage in stages:
            if stage in self._artifacts:
                return self._artifacts[stage].data
        names = " or ".join(stage.name for stage in stages)
        raise RuntimeError(f"there is no result of {names}: call export(), with it in the stages")

    def get_stage_artifacts(self) -> dict[StageType, PipelineArtifact]:
        """Return what each step returned."""
        return self._artifacts

    def get_exported_program(self, method_name: str = "forward") -> ExportedProgram:
        """Return a method as torch.export has it. Errors: RuntimeError, KeyError."""
        program: ExportedProgram = self._result(StageType.TORCH_EXPORT)[method_name]
        return program

    def get_edge_program_manager(self) -> EdgeProgramManager:
        """Return the lowered programs. Errors: RuntimeError before they are there."""
        manager: EdgeProgramManager = self._result(*EDGE)
        return manager

    def get_executorch_program_manager(self) -> ExecutorchProgramManager:
        """Return the finished file. Errors: RuntimeError before it is there."""
        manager: ExecutorchProgramManager = self._result(StageType.TO_EXECUTORCH)
        return manager

    def get_executorch_program(self) -> Any:
        """Return the tables of the file."""
        return self.get_executorch_program_manager().executorch_program

    def get_pte_buffer(self) -> bytes:
        """Return the file's bytes."""
        return self.get_executorch_program_manager().buffer

    def save_to_pte(self, output_name: str) -> None:
        """Write the file, which is named as it is said, with .pte behind it."""
        save_pte_program(self.get_executorch_program_manager(), output_name)

    def get_example_input(self, method_name: str = "forward") -> tuple[Any, ...]:
        """Return the first call of a method. Errors: ValueError where it has none."""
        return self._calls(method_name)[0]

    def run_method(self, method_name: str = "forward", example_inputs: Any = None) -> list[Any]:
        """Run a method of the file on its inputs, or on those that were given for export."""
        from etx_executorch.adapters.runtime import Runtime

        inputs = self.get_example_input(method_name) if example_inputs is None else example_inputs
        program = Runtime.get().load_program(self.get_pte_buffer())
        outputs: list[Any] = program.load_method(method_name).execute(inputs)
        return outputs

    def print_delegation_info(self) -> None:
        """Print for each method how many nodes are in delegates."""
        manager = self.get_edge_program_manager()
        for name in sorted(manager.methods):
            info = get_delegation_info(manager.exported_program(name).graph_module)
            print(f"method {name!r}:\n{info.get_summary()}")

    def get_etrecord(self) -> Any:
        """Return the record that ``generate_etrecord`` asked for."""
        return self.get_executorch_program_manager().get_etrecord()


def _by_method(given: Any) -> dict[str, Any]:
    return dict(given) if isinstance(given, Mapping) else {"forward": given}


def _notes(data: Any) -> dict[str, Any]:
    if not isinstance(data, EdgeProgramManager):
        return {}
    found = {
        name: get_delegation_info(data.exported_program(name).graph_module)
        for name in sorted(data.methods)
    }
    first = found.get("forward", next(iter(found.values()), None))
    return {"delegation_info_by_method": found, "delegation_info": first}


def _quantized(model: nn.Module, calls: list[Any], recipe: QuantizationRecipe) -> GraphModule:
    """Return a model after the pt2e flow."""
    from torchao.quantization.pt2e import (
        allow_exported_model_train_eval,
        move_exported_model_to_eval,
        move_exported_model_to_train,
    )
    from torchao.quantization.pt2e.quantize_pt2e import (
        convert_pt2e,
        prepare_pt2e,
        prepare_qat_pt2e,
    )
    from torchao.quantization.pt2e.quantizer import ComposableQuantizer

    if recipe.is_qat and recipe.train_fn is None:
        raise ValueError("is_qat needs a train_fn, which trains the prepared model")
    shapes = None
    if recipe.dynamic_batch_size:
        batch = torch.export.Dim("batch", min=1)
        shapes = tuple({0: batch} if isinstance(x, torch.Tensor) else None for x in calls[0])
    if recipe.is_qat:
        model.train()
    exported = torch.export.export(model, calls[0], dynamic_shapes=shapes, strict=True)
    graph = _changed(exported.module(), recipe.pre_prepare_passes)
    quantizers = recipe.quantizers or []
    quantizer = quantizers[0] if len(quantizers) == 1 else ComposableQuantizer(quantizers)
    prepare = prepare_qat_pt2e if recipe.is_qat else prepare_pt2e
    prepared = _changed(prepare(graph, quantizer), recipe.post_prepare_passes)
    if recipe.train_fn is not None and recipe.is_qat:
        allow_exported_model_train_eval(prepared)
        move_exported_model_to_train(prepared)
        recipe.train_fn(prepared)
        move_exported_model_to_eval(prepared)
    else:
        calibrate = recipe.calibration_inputs_fn
        for call in calls if calibrate is None else calibrate():
            prepared(*call)
    converted = convert_pt2e(_changed(prepared, recipe.pre_convert_passes))
    return _changed(converted, recipe.post_convert_passes)


def _changed(module: GraphModule, passes: Any) -> GraphModule:
    for each in passes or ():
        module = each(module)
    return module
