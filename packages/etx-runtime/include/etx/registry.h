// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_REGISTRY_H_
#define ETX_REGISTRY_H_

#include <etx/abi.h>
#include <etx/error.h>
#include <etx/span.h>

namespace etx {

class MethodLoader;

namespace detail {
Error init_delegates(MethodLoader& loader);
}

/// The kernels and backends that a method may use. The first match wins: pass your own first.
///
/// A view that does not change, so threads may share it: the tables must outlive the methods that
/// were loaded with it.
class Registry {
 public:
  Registry() = default;
  /// Of plugins, whose ABI version must have been checked.
  explicit Registry(Span<const etx_plugin* const> plugins)
      : plugins_(plugins), init_delegates_(detail::init_delegates) {}
  /// Of plugins' kernels, for firmware: what delegates need is not linked.
  static Registry of_kernels(Span<const etx_plugin* const> plugins) {
    Registry registry;
    registry.plugins_ = plugins;
    return registry;
  }
  /// Of single tables, for firmware. Without backends, what delegates need is not linked.
  explicit Registry(Span<const etx_kernel_table* const> tables) : tables_(tables) {}
  Registry(Span<const etx_kernel_table* const> tables, Span<const etx_backend* const> backends)
      : tables_(tables), backends_(backends), init_delegates_(detail::init_delegates) {}

  /// The kernel `name.overload` (`name` when `overload` is null or empty), or null.
  const etx_kernel* find_kernel(const char* name, const char* overload) const;
  /// The backend called `name`, or null.
  const etx_backend* find_backend(const char* name) const;

 private:
  friend class MethodLoader;
  Span<const etx_plugin* const> plugins_;
  Span<const etx_kernel_table* const> tables_;
  Span<const etx_backend* const> backends_;
  Error (*init_delegates_)(MethodLoader&) = nullptr;
};

/// Why a plugin cannot be used with this runtime, or null when it can.
const char* check_abi(const etx_plugin& plugin);

}  // namespace etx

#endif  // ETX_REGISTRY_H_
