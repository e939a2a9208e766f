// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PLUGIN_H_
#define ETX_PLUGIN_H_

#include <etx/abi.h>
#include <etx/span.h>

#if defined(_WIN32)
#define ETX_EXPORT __declspec(dllexport)
#else
#define ETX_EXPORT __attribute__((visibility("default")))
#endif

/// Defines a plugin's entry point: `etx_plugin_v1` in a shared library, or, with
/// ETX_PLUGIN_STATIC defined, `etx_plugin_<symbol>` for firmware that registers it by hand.
/// `tables` is a constant `Span<const etx_kernel_table* const>`, `backends` a constant
/// `Span<const etx_backend* const>`.
#if defined(ETX_PLUGIN_STATIC)
#define ETX_PLUGIN_ENTRY_(symbol) etx_plugin_##symbol
#define ETX_PLUGIN_EXPORT_
#else
#define ETX_PLUGIN_ENTRY_(symbol) etx_plugin_v1
#define ETX_PLUGIN_EXPORT_ ETX_EXPORT
#endif

#define ETX_PLUGIN(symbol, distribution, version, tables, backends)                              \
  extern "C" ETX_PLUGIN_EXPORT_ const etx_plugin* ETX_PLUGIN_ENTRY_(symbol)(void) {              \
    static const etx_plugin plugin = {sizeof(etx_plugin), ETX_ABI_MAJOR,     ETX_ABI_MINOR,      \
                                      distribution,       version,           (tables).data(),    \
                                      (tables).size(),    (backends).data(), (backends).size()}; \
    return &plugin;                                                                              \
  }

#endif  // ETX_PLUGIN_H_
