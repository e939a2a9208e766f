// SPDX-License-Identifier: BSD-3-Clause
#include <etx/hosted/backend_options.h>

#include <algorithm>

#include <etx/hosted/module.h>

namespace etx {
namespace {

constexpr uint16_t kFirstMinor = 4;

/// The plugin whose backend of this name is used, or null.
const etx_plugin* find_plugin(const std::vector<const etx_plugin*>& plugins, const char* name) {
  for (const etx_plugin* plugin : plugins) {
    for (size_t i = 0; i < plugin->num_backends; ++i) {
      if (std::strcmp(plugin->backends[i]->name, name) == 0) return plugin;
    }
  }
  return nullptr;
}

std::string list_backends(const std::vector<const etx_plugin*>& plugins) {
  std::string names;
  for (const etx_plugin* plugin : plugins) {
    for (size_t i = 0; i < plugin->num_backends; ++i) {
      names += (names.empty() ? "" : ", ") + std::string(plugin->backends[i]->name);
    }
  }
  return names.empty() ? "none" : names;
}

}  // namespace

StoredBackendOptions::StoredBackendOptions(const LoadBackendOptionsMap& options) {
  for (size_t i = 0; i < options.size(); ++i) {
    const char* backend_id = options.backend_id_at(i);
    for (const etx_option& option : options.get_options(backend_id)) add(backend_id, option);
  }
}

const char* StoredBackendOptions::keep(const char* text, size_t size) {
  texts_.emplace_back(text, size);
  return texts_.back().c_str();
}

bool StoredBackendOptions::add(const char* backend_id, const etx_option& option) {
  auto entry = std::find_if(entries_.begin(), entries_.end(), [backend_id](const Entry& each) {
    return std::strcmp(each.backend_id, backend_id) == 0;
  });
  if (entry == entries_.end()) {
    if (entries_.size() == LoadBackendOptionsMap::kMaxBackends) return false;
    entries_.push_back({keep(backend_id, std::strlen(backend_id)), {}});
    entry = entries_.end() - 1;
  }
  etx_option kept = option;
  kept.key = keep(option.key, std::strlen(option.key));
  if (kept.value.tag == ETX_TAG_STRING) {
    kept.value.payload.as_string = keep(option.value.payload.as_string, option.value.count);
  }
  entry->options.push_back(kept);
  return true;
}

LoadBackendOptionsMap StoredBackendOptions::map() const {
  LoadBackendOptionsMap map;
  for (const Entry& entry : entries_) {
    const Span<const etx_option> options(entry.options.data(), entry.options.size());
    static_cast<void>(map.set_options(entry.backend_id, options));
  }
  return map;
}

bool check_backends(const LoadBackendOptionsMap& options,
                    const std::vector<const etx_plugin*>& plugins, ErrorText* error) {
  for (size_t i = 0; i < options.size(); ++i) {
    const char* name = options.backend_id_at(i);
    const etx_plugin* plugin = find_plugin(plugins, name);
    if (plugin != nullptr && plugin->abi_minor >= kFirstMinor) continue;
    error->error = plugin == nullptr ? Error::NotFound : Error::NotSupported;
    error->name = name;
    error->message = "backend_options: ";
    if (plugin == nullptr) {
      error->message +=
          "there is no backend '" + error->name + "'; there are " + list_backends(plugins);
    } else {
      error->message += "backend '" + error->name + "' takes none: " + plugin->name +
                        " is built for ETX ABI " + std::to_string(plugin->abi_major) + "." +
                        std::to_string(plugin->abi_minor) + ", options came with 1." +
                        std::to_string(kFirstMinor) + "; upgrade it";
    }
    return false;
  }
  return true;
}

}  // namespace etx
