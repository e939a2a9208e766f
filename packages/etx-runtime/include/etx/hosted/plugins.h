// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_HOSTED_PLUGINS_H_
#define ETX_HOSTED_PLUGINS_H_

#include <mutex>
#include <string>
#include <vector>

#include <etx/registry.h>

namespace etx {

/// The plugins of a process, for all threads at once. Libraries stay loaded until it ends.
class Plugins {
 public:
  static Plugins& shared();

  /// Loads the library at `path` and checks its ABI, and that every member which the runtime reads
  /// is there; loading it again does nothing. Null on failure, and `message` then names path and
  /// member.
  const etx_plugin* load(const std::string& path, std::string* message);
  /// The same without adding it: only programs that name it (LoadedProgram::Options) use it.
  const etx_plugin* open(const std::string& path, std::string* message);
  /// Adds a plugin that is linked into the program; false and a `message` when its ABI differs or a
  /// member is missing.
  bool add(const etx_plugin* plugin, std::string* message);
  /// The same, before all others: of kernels with equal names its one is used.
  bool add_first(const etx_plugin* plugin, std::string* message);
  /// Takes a plugin away for methods that are loaded later; false when it is not there.
  bool remove(const etx_plugin* plugin);

  /// The plugins of now, in the order of their loading.
  std::vector<const etx_plugin*> list() const;
  /// Those that were added first, then `kernels`, and of the others copies that have only backends,
  /// which `rest` holds. Without `kernels`: `list()`.
  std::vector<const etx_plugin*> list(const std::vector<const etx_plugin*>& kernels,
                                      std::vector<etx_plugin>* rest) const;

 private:
  const etx_plugin* open_unlogged(const std::string& path, std::string* message);
  mutable std::mutex mutex_;
  std::vector<const etx_plugin*> plugins_;
  size_t num_first_ = 0;
};

}  // namespace etx

#endif  // ETX_HOSTED_PLUGINS_H_
