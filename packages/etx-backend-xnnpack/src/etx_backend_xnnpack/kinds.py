# SPDX-License-Identifier: BSD-3-Clause
"""What XNNPACK's profile calls the operator of a node, and the ids of a delegate's parts."""

from __future__ import annotations

from etx_backend_xnnpack._generated.xnnpack import Graph, Operator
from etx_backend_xnnpack.builder import NO_HANDLE

UNARY = "Unary Elementwise"
BINARY = "Binary Elementwise"
KINDS = {
    Operator.Add: BINARY,
    Operator.Subtract: BINARY,
    Operator.Multiply: BINARY,
    Operator.Div: BINARY,
    Operator.Minimum: BINARY,
    Operator.Maximum: BINARY,
    Operator.PReLU: BINARY,
    Operator.FullyConnected: "Fully Connected",
    Operator.BatchMatrixMultiply: "Batch Matrix Multiply",
    Operator.ScaledDotProductAttention: "Scaled Dot-Product Attention",
    Operator.Conv2d: "Convolution",
    Operator.DepthwiseConv2d: "Convolution",
    Operator.ConvTranspose2d: "Deconvolution",
    Operator.Softmax: "Softmax",
    Operator.Transpose: "Transpose",
    Operator.Slice: "Slice",
    Operator.ConstantPad: "Constant Pad",
    Operator.ResizeBilinear2d: "Resize Bilinear",
    Operator.AvgPooling2d: "Average Pooling",
    Operator.MaxPooling2d: "Max Pooling",
    Operator.ArgMaxPooling2d: "ArgMax Pooling",
    Operator.GlobalAvgPooling2d: "Mean",
    Operator.Convert: "Convert",
    Operator.Reshape: "Copy",
    Operator.Copy: "Copy",
    Operator.Concatenate2: "Copy",
    Operator.Concatenate3: "Copy",
    Operator.Concatenate4: "Copy",
    Operator.Concatenate5: "Copy",
}
"""All others are unary elementwise."""


def ids_of(graph: Graph) -> dict[str, tuple[int, ...]]:
    """Return for each node, in the order in which XNNPACK runs them, its debug handle."""
    return {
        f"{KINDS.get(node.operator_type, UNARY)} @{number}": (
            () if node.debug_handle == NO_HANDLE else (node.debug_handle,)
        )
        for number, node in enumerate(graph.nodes, 1)
    }
