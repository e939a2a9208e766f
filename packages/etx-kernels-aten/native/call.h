// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_ATEN_CALL_H_
#define ETX_ATEN_CALL_H_

#include <ATen/core/Tensor.h>

#include <etx/abi.h>

namespace etx::aten {

/// The `run` of every Kernel: calls its operator through the boxed dispatcher, without autograd.
etx_status run(etx_context* context, etx_value* const* args);

/// The memory of `tensor` with its present sizes.
at::Tensor wrap(const etx_tensor& tensor);

/// Puts `result` into `out`, whose sizes become its own. Throws c10::Error where dtype or the
/// planned room do not fit.
void store(const at::Tensor& result, etx_tensor& out);

}  // namespace etx::aten

#endif  // ETX_ATEN_CALL_H_
