// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_HOSTED_BACKEND_OPTIONS_H_
#define ETX_HOSTED_BACKEND_OPTIONS_H_

#include <deque>
#include <string>
#include <vector>

#include <etx/backend_options.h>

namespace etx {

struct ErrorText;

/// Options of backends with memory of their own.
class StoredBackendOptions {
 public:
  StoredBackendOptions() = default;
  explicit StoredBackendOptions(const LoadBackendOptionsMap& options);
  StoredBackendOptions(StoredBackendOptions&&) = default;
  StoredBackendOptions& operator=(StoredBackendOptions&&) = default;

  /// Copies key and string; a later value of a key of a backend follows the earlier one. False
  /// where there are LoadBackendOptionsMap::kMaxBackends other backends.
  bool add(const char* backend_id, const etx_option& option);
  /// Valid as long as this object, and until `add`.
  LoadBackendOptionsMap map() const;

 private:
  struct Entry {
    const char* backend_id;
    std::vector<etx_option> options;
  };
  const char* keep(const char* text, size_t size);

  /// Their addresses stay.
  std::deque<std::string> texts_;
  std::vector<Entry> entries_;
};

/// False, and an `error` that names it, where a backend of the options is in no plugin or cannot
/// read options.
bool check_backends(const LoadBackendOptionsMap& options,
                    const std::vector<const etx_plugin*>& plugins, ErrorText* error);

}  // namespace etx

#endif  // ETX_HOSTED_BACKEND_OPTIONS_H_
