// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_REGISTRY_H_
#define ETX_REGISTRY_H_

#include <etx/abi.h>
#include <etx/error.h>
#include <etx/span.h>

namespace etx {

class MethodLoader;

class Registry;

namespace detail {
Error init_delegates(MethodLoader& loader);
const etx_kernel* find_special(const Registry& registry, const etx_kernel& general,
                               Span<etx_value* const> args);
}  // namespace detail

/// The kernels and backends that a method may use. The first match wins: pass your own first.
///
/// A view that does not change, so threads may share it: the tables must outlive the methods that
/// were loaded with it.
class Registry {
 public:
  Registry() = default;
  /// Of plugins, whose ABI version must have been checked.
  explicit Registry(Span<const etx_plugin* const> plugins)
      : plugins_(plugins),
        init_delegates_(detail::init_delegates),
        find_special_(detail::find_special) {}
  /// Of plugins' kernels, for firmware: what delegates and special rows need is not linked.
  static Registry of_kernels(Span<const etx_plugin* const> plugins) {
    Registry registry;
    registry.plugins_ = plugins;
    return registry;
  }
  /// Of single tables, for firmware. Without backends, what delegates need is not linked.
  explicit Registry(Span<const etx_kernel_table* const> tables) : tables_(tables) {}
  Registry(Span<const etx_kernel_table* const> tables, Span<const etx_backend* const> backends)
      : tables_(tables), backends_(backends), init_delegates_(detail::init_delegates) {}

  /// The general kernel `name.overload` (`name` when `overload` is null or empty), or null.
  const etx_kernel* find_kernel(const char* name, const char* overload) const;
  /// The row of `general`'s name and signature that is the most special one for a call with `args`;
  /// `general` where none fits, and in registries for firmware.
  const etx_kernel* find_kernel(const etx_kernel& general, Span<etx_value* const> args) const {
    return find_special_ == nullptr ? &general : find_special_(*this, general, args);
  }
  /// The backend called `name`, or null.
  const etx_backend* find_backend(const char* name) const;

 private:
  friend class MethodLoader;
  friend const etx_kernel* detail::find_special(const Registry&, const etx_kernel&,
                                                Span<etx_value* const>);
  Span<const etx_plugin* const> plugins_;
  Span<const etx_kernel_table* const> tables_;
  Span<const etx_backend* const> backends_;
  Error (*init_delegates_)(MethodLoader&) = nullptr;
  const etx_kernel* (*find_special_)(const Registry&, const etx_kernel&,
                                     Span<etx_value* const>) = nullptr;
};

/// Why a plugin cannot be used with this runtime, or null when it can.
const char* check_abi(const etx_plugin& plugin);

}  // namespace etx

#endif  // ETX_REGISTRY_H_
