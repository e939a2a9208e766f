# SPDX-License-Identifier: BSD-3-Clause
"""Our names of what ExecuTorch's files hold: the wire has only slots, tags and numbers."""

from __future__ import annotations

TYPES = {
    "XNodeUnion": "Operator",
    "XValueUnion": "AnyTensor",
    "XNode": "Node",
    "XValue": "Value",
    "XNNQuantParams": "Quantization",
    "XNNDatatype": "DataType",
    "OutputMinMax": "OutputRange",
    "_XNNNode2x1": "Binary",
    "_XNNNode1x1": "Unary",
    "_XNNNodeConv": "Convolution",
    "_XNNCat": "Concatenate",
    "_XNNPooling2D": "Pooling2d",
    "PerChannelGroupQuant": "PerGroup",
    "PerChannelQuant": "PerChannel",
    "PerTokenDynamicQuant": "PerRow",
    "PerTensorQuant": "PerTensor",
    "Buffer": "InlineConstant",
    "ConstantDataOffset": "ConstantPlace",
    "XNNStaticTranspose": "Transpose",
    "XNNStaticResizeBilinear2D": "ResizeBilinear2d",
    "XNNStaticConstantPad": "ConstantPad",
    "XNNELU": "Elu",
    "XNNStaticReshape": "Reshape",
    "XNNStaticSlice": "Slice",
    "XNNLeakyReLU": "LeakyRelu",
}
FIELDS = {
    "xnode_union": "operator",
    "xvalue_union": "tensor",
    "xnodes": "nodes",
    "xvalues": "values",
    "output_min_max": "output_range",
    "dq_datatype": "run_time_dtype",
    "datatype": "dtype",
    "num_dims": "rank",
    "dims": "sizes",
    "tensor_value": "tensor",
    "quant_params": "quantization",
    "num_externs": "num_externals",
    "constant_buffer_idx": "constant_index",
    "scale_buffer_idx": "scale_index",
    "constant_buffer": "inline_constants",
    "mem_buffer_sizes": "inline_sizes",
    "id_out": "id",
    "output_min": "lowest",
    "output_max": "highest",
    "storage": "data",
}


def our_type(theirs: str) -> str:
    return TYPES.get(theirs, theirs.removeprefix("XNN"))


def our_field(theirs: str) -> str:
    return FIELDS.get(theirs, theirs)
