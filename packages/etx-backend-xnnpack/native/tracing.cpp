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

/// How often `name` is among the names before it, and this once.
size_t count_of(const char* names, const char* name) {
  size_t count = 1;
  for (const char* other = names; other < name; other += std::strlen(other) + 1) {
    count += std::strcmp(other, name) == 0;
  }
  return count;
}

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
  const char* name = names.data();
  for (size_t i = 0; i < count && name < names.data() + size; ++i) {
    char label[128];
    std::snprintf(label, sizeof(label), "%s #%zu", name, count_of(names.data(), name));
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
