// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NAMED_DATA_H_
#define ETX_NAMED_DATA_H_

#include <cstddef>
#include <cstdint>

#include <etx/dtype.h>
#include <etx/result.h>
#include <etx/span.h>

namespace etx {

/// Type and shape of a stored tensor; the spans live as long as the map.
struct TensorLayout {
  ScalarType scalar_type;
  Span<const int32_t> sizes;
  Span<const uint8_t> dim_order;
};

/// Data outside of the program, by name: weights in a `.ptd`, or whatever the caller makes up.
///
/// Must outlive the methods that were loaded with it, and so must the bytes it returns. Threads may
/// call it at the same time when their methods share it.
class NamedDataMap {
 public:
  /// The bytes under `key`, aligned to 16. Errors: NotFound, and those of its source.
  virtual Result<Span<const uint8_t>> get_data(const char* key) const = 0;
  /// Errors: NotFound, also for data that is not a tensor.
  virtual Result<TensorLayout> get_tensor_layout(const char* key) const = 0;
  virtual size_t get_num_keys() const = 0;
  /// `index` must be below get_num_keys().
  virtual const char* get_key(size_t index) const = 0;

 protected:
  ~NamedDataMap() = default;
};

}  // namespace etx

#endif  // ETX_NAMED_DATA_H_
