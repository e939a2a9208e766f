# SPDX-License-Identifier: BSD-3-Clause
"""Export by recipes: XNNPACK's, and one of one's own."""

import pytest
import torch
from executorch.backends.xnnpack.recipes import XNNPackRecipeType
from executorch.export import (
    BackendRecipeProvider,
    ExportRecipe,
    RecipeType,
    StageType,
    export,
    recipe_registry,
)

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).eval()
calls = [(torch.randn(4, 32),) for _ in range(4)]
expected = model(*calls[0])

for kind in XNNPackRecipeType:
    session = export(model, calls, ExportRecipe.get_recipe(kind))
    error = (session.run_method("forward", calls[0])[0] - expected).square().sum()
    assert error < (1e-6 if kind is XNNPackRecipeType.FP32 else 3e-2) * expected.square().sum()
    instructions = session.get_executorch_program().execution_plan[0].chains[0].instructions
    assert [type(each.instr_args).__name__ for each in instructions] == ["DelegateCall"]
    assert session.get_exported_program() is not None
    assert len(session.get_pte_buffer()) > 1000
    lowered = session.get_stage_artifacts()[StageType.TO_EDGE_TRANSFORM_AND_LOWER]
    assert lowered.get_context("delegation_info") is not None


class Plain(RecipeType):
    FLOAT = "plain_float"

    @classmethod
    def get_backend_name(cls):
        return "plain"


class Provider(BackendRecipeProvider):
    @property
    def backend_name(self):
        return "plain"

    def get_supported_recipes(self):
        return list(Plain)

    def create_recipe(self, recipe_type, **kwargs):
        stages = [StageType.TORCH_EXPORT, StageType.TO_EDGE, StageType.TO_EXECUTORCH]
        return ExportRecipe(name=recipe_type.value, pipeline_stages=stages)


with pytest.raises(ValueError, match="'plain'"):
    ExportRecipe.get_recipe(Plain.FLOAT)
recipe_registry.register_backend_recipe_provider(Provider())
assert "plain" in recipe_registry.list_backends()
session = export({"forward": model}, {"forward": calls}, ExportRecipe.get_recipe(Plain.FLOAT))
torch.testing.assert_close(session.run_method()[0], expected)
with pytest.raises(ValueError, match="example_inputs"):
    export(model, None, ExportRecipe())
