// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/core/Tensor.h>
#include <torch/library.h>

namespace {

at::Tensor doubled(const at::Tensor& x, double by) { return x.mul(by); }

}  // namespace

TORCH_LIBRARY(etx_cpp, library) { library.def("doubled(Tensor x, float by=2.0) -> Tensor"); }

TORCH_LIBRARY_IMPL(etx_cpp, CompositeExplicitAutograd, library) {
  library.impl("doubled", doubled);
}
