// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_BACKEND_OPTIONS_H_
#define ETX_BACKEND_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <etx/abi.h>
#include <etx/error.h>
#include <etx/span.h>

namespace etx {

/// What a caller asks of a backend: a key and a bool, an int or a string. Key and string are the
/// caller's and outlive the load.
struct BackendOption : etx_option {
  BackendOption(const char* key_, bool number) : etx_option{key_, {}} {
    value.tag = ETX_TAG_BOOL;
    value.payload.as_bool = number;
  }
  BackendOption(const char* key_, int64_t number) : etx_option{key_, {}} {
    value.tag = ETX_TAG_INT;
    value.payload.as_int = number;
  }
  BackendOption(const char* key_, int number) : BackendOption(key_, int64_t{number}) {}
  BackendOption(const char* key_, const char* text) : etx_option{key_, {}} {
    value.tag = ETX_TAG_STRING;
    value.payload.as_string = text;
    value.count = static_cast<uint32_t>(std::strlen(text));
  }
};

/// The options of a load by the names of backends, as ExecuTorch's class of this name. A view: the
/// options and the names outlive the load.
class LoadBackendOptionsMap {
 public:
  static constexpr size_t kMaxBackends = 8;

  /// Replaces what was set for this backend. Errors: InvalidArgument where the name is null or
  /// empty, or there are kMaxBackends others.
  Error set_options(const char* backend_id, Span<const BackendOption> options) {
    return set_options(backend_id, Span<const etx_option>(options.data(), options.size()));
  }
  Error set_options(const char* backend_id, Span<const etx_option> options) {
    if (backend_id == nullptr || *backend_id == '\0') return Error::InvalidArgument;
    size_t index = find(backend_id);
    if (index == kMaxBackends) return Error::InvalidArgument;
    if (index == size_) ++size_;
    entries_[index] = {backend_id, options};
    return Error::Ok;
  }

  /// Empty where none were set.
  Span<const etx_option> get_options(const char* backend_id) const {
    const size_t index = find(backend_id);
    return index < size_ ? entries_[index].options : Span<const etx_option>();
  }
  bool has_options(const char* backend_id) const { return find(backend_id) < size_; }

  size_t size() const { return size_; }
  /// `index` must be below size().
  const char* backend_id_at(size_t index) const { return entries_[index].backend_id; }

 private:
  struct Entry {
    const char* backend_id;
    Span<const etx_option> options;
  };
  size_t find(const char* backend_id) const {
    size_t index = 0;
    while (index < size_ && !is_same(entries_[index].backend_id, backend_id)) ++index;
    return index;
  }
  static bool is_same(const char* a, const char* b) {
    for (; *a != '\0' && *a == *b; ++a) ++b;
    return *a == *b;
  }

  Entry entries_[kMaxBackends] = {};
  size_t size_ = 0;
};

static_assert(sizeof(BackendOption) == sizeof(etx_option), "spans of one are spans of the other");

}  // namespace etx

#endif  // ETX_BACKEND_OPTIONS_H_
