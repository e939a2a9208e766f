// SPDX-License-Identifier: BSD-3-Clause
#include "tracing.h"

#include <cstdio>
#include <cstring>

#include "array.h"

namespace etx::xnnpack {
namespace {

constexpr uint64_t kTicksOfMicrosecond = 1000;

bool read_info(xnn_runtime_t runtime, xnn_profile_info kind, void* data, size_t size) {
  size_t needed = 0;
  return xnn_get_runtime_profiling_info(runtime, kind, size, data, &needed) == xnn_status_success;
}

size_t size_of_info(xnn_runtime_t runtime, xnn_profile_info kind) {
  size_t needed = 0;
  xnn_get_runtime_profiling_info(runtime, kind, 0, nullptr, &needed);
  return needed;
}

/// Numbers operators of one name: there are few names, of many operators.
class Counter {
 public:
  /// How often `name` was given, this once included; 0 behind the last of kNames names.
  size_t count(const char* name) {
    for (size_t i = 0; i < size_; ++i) {
      if (std::strcmp(names_[i], name) == 0) return ++counts_[i];
    }
    if (size_ == kNames) return 0;
    names_[size_] = name;
    return counts_[size_++] = 1;
  }

 private:
  static constexpr size_t kNames = 128;
  const char* names_[kNames];
  size_t counts_[kNames];
  size_t size_ = 0;
};

}  // namespace

void trace_operators(xnn_runtime_t runtime, etx_context* context, uint64_t start) {
  size_t count = 0;
  if (!read_info(runtime, xnn_profile_info_num_operators, &count, sizeof(count))) return;
  const size_t size = size_of_info(runtime, xnn_profile_info_operator_name);
  Array<char> names;
  Array<uint64_t> times;
  if (count == 0 || names.allocate(size + 1) != Error::Ok || times.allocate(count) != Error::Ok ||
      !read_info(runtime, xnn_profile_info_operator_name, names.data(), size) ||
      !read_info(runtime, xnn_profile_info_operator_timing, times.data(),
                 count * sizeof(uint64_t))) {
    return;
  }
  Counter counter;
  const char* name = names.data();
  for (size_t i = 0; i < count && name < names.data() + size; ++i) {
    char label[128];
    std::snprintf(label, sizeof(label), "%s #%zu", name, counter.count(name));
    etx_delegate_event event{};
    event.name = label;
    event.start = start;
    event.end = start + times[i] * kTicksOfMicrosecond;
    context->trace(context, &event);
    start = event.end;
    name += std::strlen(name) + 1;
  }
}

}  // namespace etx::xnnpack
