# SPDX-License-Identifier: BSD-3-Clause
"""Which files of tests there are, and what they need that ETX and ExecuTorch do without."""

from __future__ import annotations

import importlib
import sys
from functools import partialmethod
from types import ModuleType
from typing import Any

ROOT = "executorch.backends.xnnpack.test."
FOLDERS = {
    "ops": (
        "abs add avgpool2d batch_norm bilinear2d bmm cat ceil check_quant_params clamp clone "
        "conv1d conv2d cos div elu exp floor gelu hardswish hardtanh leaky_relu linear log lstm "
        "max_dim maximum maxpool2d mean_dim minimum multiply negate permute pow prelu "
        "quantize_per_tensor relu rsqrt sigmoid sin slice_copy softmax sqrt square "
        "static_constant_pad sub tanh to_copy"
    ),
    "quantizer": "pt2e_quantization representation xnnpack_quantizer",
    "recipes": "xnnpack_recipes",
    "passes": (
        "activation_fusion batch_norm_fusion channels_last_tagged_reshape convert_to_linear "
        "decompose_batch_norm decompose_cat_pass insert_pad_qdq propagate_custom_meta_pass "
        "remove_get_item_pass remove_noop_expand_copy_pass remove_redundant_copy_pass"
    ),
    "serialization": "serialization xnnheader",
    "fragments": "dim_order",
}
MODELS = (
    "deeplab_v3 edsr emformer_rnnt inception_v3 inception_v4 llama2_et_example mobilebert "
    "mobilenet_v2 mobilenet_v3 resnet torchvision_vit w2l"
)
FILES = (
    *(f"{folder}.test_{name}" for folder, names in FOLDERS.items() for name in names.split()),
    "test_xnnpack_partitioner",
    *(f"models.{name}" for name in MODELS.split()),
)


def use_seeded_weights() -> None:
    """Let torchvision build models without the trained weights, which would be downloaded.

    Its compiled operators belong to another torch.
    """
    stand_in = "torchvision._meta_registrations"
    sys.modules.setdefault(stand_in, ModuleType(stand_in))
    enumeration: Any = importlib.import_module("torchvision.models._api").WeightsEnum
    enumeration.verify = classmethod(lambda cls, given: None)
    # As it is built for trained weights: with those it draws by itself results reach 6e11, and one
    # near to zero has an error beyond the tests' 1e-3 in eager, too.
    inception: Any = importlib.import_module("torchvision.models.inception").Inception3
    options = {"transform_input": True, "init_weights": False}
    inception.__init__ = partialmethod(inception.__init__, **options)
