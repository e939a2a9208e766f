// SPDX-License-Identifier: BSD-3-Clause
#include "tracing.h"

#include <cstdio>
#include <cstring>

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

/// Numbers the names once, since that takes longer than to run small operators.
bool OperatorTracer::learn(xnn_runtime_t runtime) {
  constexpr size_t kMostDigits = 20;
  times_.release();
  labels_.release();
  size_t count = 0;
  if (!read_info(runtime, xnn_profile_info_num_operators, &count, sizeof(count))) return false;
  const size_t size = size_of_info(runtime, xnn_profile_info_operator_name);
  Array<char> names;
  if (count == 0 || names.allocate(size + 1) != Error::Ok ||
      labels_.allocate(size + count * (kMostDigits + sizeof(" #"))) != Error::Ok ||
      times_.allocate(count) != Error::Ok ||
      !read_info(runtime, xnn_profile_info_operator_name, names.data(), size) ||
      ends_.allocate(count) != Error::Ok) {
    return false;
  }
  Counter counter;
  const char* name = names.data();
  size_t end = 0;
  for (size_t i = 0; i < count; ++i) {
    if (name < names.data() + size) {
      const int written = std::snprintf(labels_.data() + end, labels_.size() - end, "%s #%zu", name,
                                        counter.count(name));
      end += static_cast<size_t>(written) + 1;
      name += std::strlen(name) + 1;
    }
    ends_[i] = end;
  }
  return true;
}

void OperatorTracer::tell(xnn_runtime_t runtime, etx_context* context, uint64_t start) {
  if (ends_.size() == 0 && !learn(runtime)) return;
  if (!read_info(runtime, xnn_profile_info_operator_timing, times_.data(),
                 times_.size() * sizeof(uint64_t))) {
    return;
  }
  size_t label = 0;
  for (size_t i = 0; i < times_.size() && label < ends_[i]; ++i) {
    etx_delegate_event event{};
    event.name = labels_.data() + label;
    event.start = start;
    event.end = start + times_[i] * kTicksOfMicrosecond;
    context->trace(context, &event);
    start = event.end;
    label = ends_[i];
  }
}

}  // namespace etx::xnnpack
