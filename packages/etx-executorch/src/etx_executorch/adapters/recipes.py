# SPDX-License-Identifier: BSD-3-Clause
"""Recipes: how a model is quantized, lowered and written, by one name of a backend."""

from __future__ import annotations

from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, EnumMeta
from typing import Any

from torch import nn
from torch.fx import GraphModule

__all__ = [
    "AOQuantizationConfig",
    "BackendRecipeProvider",
    "ExportRecipe",
    "LoweringRecipe",
    "Mode",
    "QuantizationRecipe",
    "RecipeRegistry",
    "RecipeType",
    "StageType",
    "recipe_registry",
]

GraphPasses = list[Callable[[GraphModule], GraphModule]] | None


class StageType(str, Enum):
    """The steps from a model to a file."""

    SOURCE_TRANSFORM = "source_transform"
    QUANTIZE = "quantize"
    TORCH_EXPORT = "torch_export"
    TO_EDGE_TRANSFORM_AND_LOWER = "to_edge_transform_and_lower"
    TO_EDGE = "to_edge"
    EDGE_PROGRAM_MANAGER_TRANSFORM = "edge_program_manager_transform"
    TO_BACKEND = "to_backend"
    TO_EXECUTORCH = "to_executorch"


class _RecipeTypeMeta(EnumMeta, ABCMeta):
    pass


class RecipeType(Enum, metaclass=_RecipeTypeMeta):
    """The names of a backend's recipes."""

    @classmethod
    @abstractmethod
    def get_backend_name(cls) -> str:
        """Return the name under which the backend's provider is registered."""


class Mode(str, Enum):
    """What a recipe is made for; it changes nothing in ETX."""

    DEBUG = "debug"
    RELEASE = "release"


@dataclass
class AOQuantizationConfig:
    """A configuration of ``torchao.quantize_`` and the modules that it is for."""

    ao_base_config: Any
    filter_fn: Callable[[nn.Module, str], bool] | None = None


@dataclass
class QuantizationRecipe:
    """How a model is quantized: by quantizers of the pt2e flow, or by one configuration of torchao.

    Passes take a graph module and return one.
    """

    quantizers: list[Any] | None = None
    ao_quantization_configs: list[AOQuantizationConfig] | None = None
    is_qat: bool = False
    dynamic_batch_size: bool = False
    calibration_inputs_fn: Callable[[], Iterable[tuple[Any, ...]]] | None = None
    train_fn: Callable[[GraphModule], None] | None = None
    pre_prepare_passes: GraphPasses = None
    post_prepare_passes: GraphPasses = None
    pre_convert_passes: GraphPasses = None
    post_convert_passes: GraphPasses = None

    def get_quantizers(self) -> list[Any] | None:
        """Return the quantizers."""
        return self.quantizers


@dataclass
class LoweringRecipe:
    """How programs are lowered: partitioners, the same for all methods or by method, and passes."""

    partitioners: list[Any] | dict[str, list[Any]] | None = None
    edge_transform_passes: list[Callable[[str, Any], Any]] | None = None
    edge_manager_transform_passes: list[Callable[[Any], Any]] | None = None
    edge_compile_config: Any = None


@dataclass
class ExportRecipe:
    """How a model becomes a file."""

    name: str | None = None
    quantization_recipe: QuantizationRecipe | None = None
    aten_transform_passes: list[Callable[[str, Any], Any]] | None = None
    source_transform_in_place: bool = False
    lowering_recipe: LoweringRecipe | None = None
    executorch_backend_config: Any = None
    pipeline_stages: list[StageType] | None = None
    mode: Mode = Mode.RELEASE
    strict: bool = True

    @classmethod
    def get_recipe(cls, recipe: RecipeType, **kwargs: Any) -> ExportRecipe:
        """Return the recipe of that name. Errors: ValueError where no provider has it."""
        if not isinstance(recipe, RecipeType):
            raise ValueError(f"{recipe!r}: expected a member of a RecipeType")
        backend = recipe.get_backend_name()
        found = recipe_registry.create_recipe(recipe, backend, **kwargs)
        if found is None:
            names = ", ".join(each.name for each in recipe_registry.get_supported_recipes(backend))
            raise ValueError(f"recipe {recipe.name}: the provider of {backend!r} has {names}")
        return found


class BackendRecipeProvider(ABC):
    """Makes the recipes of a backend."""

    @property
    @abstractmethod
    def backend_name(self) -> str:
        """The name that its recipes' types return."""

    @abstractmethod
    def get_supported_recipes(self) -> Sequence[RecipeType]:
        """Return the names of the recipes."""

    @abstractmethod
    def create_recipe(self, recipe_type: RecipeType, **kwargs: Any) -> ExportRecipe | None:
        """Return the recipe of that name, None where it is of another backend."""

    def supports_recipe(self, recipe_type: RecipeType) -> bool:
        """Tell whether it has the recipe of that name."""
        return recipe_type in self.get_supported_recipes()


class RecipeRegistry:
    """The providers of recipes by backend."""

    def __init__(self) -> None:
        self._providers: dict[str, BackendRecipeProvider] = {}

    def register_backend_recipe_provider(self, provider: BackendRecipeProvider) -> None:
        """Use this provider for its backend."""
        self._providers[provider.backend_name] = provider

    def create_recipe(
        self, recipe_type: RecipeType, backend: str, **kwargs: Any
    ) -> ExportRecipe | None:
        """Return a recipe of a backend, None where its provider has no such name."""
        return self._provider(backend).create_recipe(recipe_type, **kwargs)

    def get_supported_recipes(self, backend: str) -> Sequence[RecipeType]:
        """Return the names of the recipes of a backend."""
        return self._provider(backend).get_supported_recipes()

    def list_backends(self) -> Sequence[str]:
        """Return the backends that have a provider."""
        return list(self._providers)

    def _provider(self, backend: str) -> BackendRecipeProvider:
        if backend not in self._providers:
            names = ", ".join(self._providers) or "none"
            raise ValueError(
                f"backend {backend!r} has no provider of recipes; registered: {names}; import the "
                "backend's module of recipes, or register_backend_recipe_provider(...)"
            )
        return self._providers[backend]


recipe_registry = RecipeRegistry()
