// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>
#include <etx/registry.h>

#include "format.h"

namespace etx {
namespace {

bool matches(const char* registered, const char* name, const char* overload) {
  const char* rest = skip(registered, name);
  if (rest == nullptr || overload == nullptr || *overload == '\0') {
    return rest != nullptr && *rest == '\0';
  }
  return *rest == '.' && equals(rest + 1, overload);
}

const etx_kernel* find_in(Span<const etx_kernel_table* const> tables, const char* name,
                          const char* overload) {
  for (const etx_kernel_table* table : tables) {
    for (size_t i = 0; i < table->count; ++i) {
      const etx_kernel& row = table->rows[i];
      if ((row.dtypes & kSpecial) == 0 && matches(row.name, name, overload)) return &row;
    }
  }
  return nullptr;
}

const etx_backend* find_in(Span<const etx_backend* const> backends, const char* name) {
  for (const etx_backend* backend : backends) {
    if (equals(backend->name, name)) return backend;
  }
  return nullptr;
}

}  // namespace

const etx_kernel* Registry::find_kernel(const char* name, const char* overload) const {
  const etx_kernel* kernel = find_in(tables_, name, overload);
  for (size_t i = 0; kernel == nullptr && i < plugins_.size(); ++i) {
    kernel = find_in({plugins_[i]->tables, plugins_[i]->num_tables}, name, overload);
  }
  return kernel;
}

const etx_backend* Registry::find_backend(const char* name) const {
  const etx_backend* backend = find_in(backends_, name);
  for (size_t i = 0; backend == nullptr && i < plugins_.size(); ++i) {
    backend = find_in({plugins_[i]->backends, plugins_[i]->num_backends}, name);
  }
  return backend;
}

const char* check_abi(const etx_plugin& plugin) {
  if (plugin.abi_major > ETX_ABI_MAJOR ||
      (plugin.abi_major == ETX_ABI_MAJOR && plugin.abi_minor > ETX_ABI_MINOR)) {
    return "it is built for a newer ABI than the runtime provides; upgrade etx-runtime";
  }
  if (plugin.abi_major < ETX_ABI_MAJOR) {
    return "it is built for an older ABI than the runtime provides; upgrade the plugin";
  }
  if (plugin.struct_size < sizeof(etx_plugin)) return "its table is too small; rebuild it";
  return nullptr;
}

}  // namespace etx
