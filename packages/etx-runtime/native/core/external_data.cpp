// SPDX-License-Identifier: BSD-3-Clause
#include "method_loader.h"

namespace etx {

Result<Span<const uint8_t>> detail::find_external(const NamedDataMap& data, const void* tensor,
                                                  const char** reason) {
  const fbs::Tensor& stored = *static_cast<const fbs::Tensor*>(tensor);
  const char* key = text(stored.extra_tensor_info()->fully_qualified_name());
  auto layout = data.get_tensor_layout(key);
  auto bytes = data.get_data(key);
  if (!layout.ok() || !bytes.ok()) {
    *reason = "the .ptd file has no such tensor";
    return Error::InvalidExternalData;
  }
  const size_t rank = length(stored.sizes());
  bool same = layout->scalar_type == scalar_type_of(stored) && layout->sizes.size() == rank &&
              layout->dim_order.size() == rank && bytes->size() >= nbytes_of(stored);
  for (uint32_t i = 0; same && i < rank; ++i) {
    same = layout->sizes[i] == stored.sizes()->Get(i) &&
           layout->dim_order[i] == stored.dim_order()->Get(i);
  }
  if (!same) {
    *reason = "the tensor in the .ptd file differs in dtype, shape or layout";
    return Error::InvalidExternalData;
  }
  return *bytes;
}

}  // namespace etx
