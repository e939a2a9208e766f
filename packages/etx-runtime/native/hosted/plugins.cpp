// SPDX-License-Identifier: BSD-3-Clause
#include <etx/hosted/log.h>
#include <etx/hosted/plugins.h>

#include <algorithm>

#include "../platform/os.h"
#include "check_plugin.h"

namespace etx {
namespace {

std::string number(const char* label, uint16_t major, uint16_t minor) {
  return std::string(label) + std::to_string(major) + "." + std::to_string(minor);
}

bool is_usable(const etx_plugin& plugin, std::string* message) {
  const bool has_abi = plugin.abi_major == ETX_ABI_MAJOR && plugin.abi_minor <= ETX_ABI_MINOR;
  if (has_abi) {
    std::string defect = find_defect(plugin);
    if (defect.empty()) return true;
    const bool is_named = plugin.struct_size >= sizeof(plugin) && plugin.name != nullptr;
    *message = "the plugin " + (is_named ? "'" + std::string(plugin.name) + "' " : "") +
               "is broken: " + defect + "; rebuild or reinstall it";
    return false;
  }
  const bool newer = plugin.abi_major > ETX_ABI_MAJOR ||
                     (plugin.abi_major == ETX_ABI_MAJOR && plugin.abi_minor > ETX_ABI_MINOR);
  const bool has_name = plugin.name != nullptr && plugin.abi_major == ETX_ABI_MAJOR;
  const std::string name = has_name ? plugin.name : "the plugin";
  *message = name + number(" is built for ETX ABI ", plugin.abi_major, plugin.abi_minor) +
             number(", this etx-runtime provides ABI ", ETX_ABI_MAJOR, ETX_ABI_MINOR) +
             "; upgrade " + (newer ? "etx-runtime" : name);
  return false;
}

}  // namespace

Plugins& Plugins::shared() {
  static Plugins& plugins = *new Plugins();
  return plugins;
}

const etx_plugin* Plugins::load(const std::string& path, std::string* message) {
  const etx_plugin* plugin = open(path, message);
  return plugin != nullptr && add(plugin, message) ? plugin : nullptr;
}

const etx_plugin* Plugins::open(const std::string& path, std::string* message) {
  const etx_plugin* plugin = open_unlogged(path, message);
  if (plugin == nullptr) {
    log(ETX_LOG_INFO, *message);
  } else {
    log(ETX_LOG_INFO, path + ": plugin " + plugin->name + " " + plugin->version);
  }
  return plugin;
}

const etx_plugin* Plugins::open_unlogged(const std::string& path, std::string* message) {
  void* library = os::open_library(path, message);
  if (library == nullptr) return nullptr;
  const auto entry = reinterpret_cast<etx_plugin_entry>(os::find_symbol(library, "etx_plugin_v1"));
  if (entry == nullptr) {
    *message = path + ": no ETX plugin, it exports no etx_plugin_v1";
    return nullptr;
  }
  const etx_plugin* plugin = entry();
  if (plugin == nullptr || !is_usable(*plugin, message)) {
    *message = path + ": " + (plugin == nullptr ? "the plugin has no table" : *message);
    return nullptr;
  }
  return plugin;
}

bool Plugins::add(const etx_plugin* plugin, std::string* message) {
  if (!is_usable(*plugin, message)) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (std::find(plugins_.begin(), plugins_.end(), plugin) == plugins_.end()) {
    plugins_.push_back(plugin);
  }
  return true;
}

bool Plugins::add_first(const etx_plugin* plugin, std::string* message) {
  if (!is_usable(*plugin, message)) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  plugins_.insert(plugins_.begin(), plugin);
  ++num_first_;
  return true;
}

bool Plugins::remove(const etx_plugin* plugin) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = std::find(plugins_.begin(), plugins_.end(), plugin);
  if (found == plugins_.end()) return false;
  if (static_cast<size_t>(found - plugins_.begin()) < num_first_) --num_first_;
  plugins_.erase(found);
  return true;
}

std::vector<const etx_plugin*> Plugins::list() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return plugins_;
}

std::vector<const etx_plugin*> Plugins::list(const std::vector<const etx_plugin*>& kernels,
                                             std::vector<etx_plugin>* rest) const {
  if (kernels.empty()) return list();
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto end_of_first = plugins_.begin() + static_cast<std::ptrdiff_t>(num_first_);
  std::vector<const etx_plugin*> found(plugins_.begin(), end_of_first);
  found.insert(found.end(), kernels.begin(), kernels.end());
  rest->reserve(plugins_.size());
  for (auto plugin = end_of_first; plugin != plugins_.end(); ++plugin) {
    rest->push_back(**plugin);
    rest->back().num_tables = 0;
    found.push_back(&rest->back());
  }
  return found;
}

}  // namespace etx
