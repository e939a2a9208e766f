// SPDX-License-Identifier: BSD-3-Clause
#include "check_plugin.h"

#include <cstring>

namespace etx {
namespace {

/// More tables, rows or backends are taken for memory that nobody set.
constexpr size_t kMost = 1 << 20;

std::string item(const std::string& list, size_t index) {
  return list + "[" + std::to_string(index) + "]";
}

/// Why a list of `count` items cannot be read, or empty.
std::string check_list(const std::string& list, const std::string& counter, const void* items,
                       size_t count) {
  if (count > kMost) {
    return counter + " is " + std::to_string(count) + ", expected at most " + std::to_string(kMost);
  }
  return items == nullptr && count != 0 ? list + " is null" : "";
}

std::string check_text(const std::string& member, const char* text) {
  if (text == nullptr) return member + " is null";
  return *text == '\0' ? member + " is empty" : "";
}

std::string check_signature(const std::string& member, const char* signature) {
  if (signature == nullptr) return member + " is null";
  if (std::strcmp(signature, "*") == 0) return "";
  bool has_letter = false;
  for (const char* letter = signature; *letter != '\0'; ++letter) {
    const bool is_mark = *letter == '!' || *letter == '?';
    if (is_mark ? has_letter : std::strchr("TidbscIDBLOv", *letter) != nullptr) {
      has_letter = true;
      continue;
    }
    return member + " is '" + signature + "', whose '" + *letter +
           "' is not a letter of the ABI's signatures";
  }
  return "";
}

std::string check_kernel(const std::string& row, const etx_kernel& kernel) {
  std::string defect = check_text(row + ".name", kernel.name);
  if (defect.empty() && kernel.run == nullptr) defect = row + ".run is null";
  return defect.empty() ? check_signature(row + ".signature", kernel.signature) : defect;
}

std::string check_table(const std::string& place, const etx_kernel_table* table) {
  if (table == nullptr) return place + " is null";
  std::string defect = check_list(place + "->rows", place + "->count", table->rows, table->count);
  for (size_t i = 0; defect.empty() && i < table->count; ++i) {
    defect = check_kernel(item(place + "->rows", i), table->rows[i]);
  }
  return defect;
}

std::string check_size(const std::string& member, size_t size, size_t least) {
  if (size >= least) return "";
  return member + " is " + std::to_string(size) + ", expected at least " + std::to_string(least);
}

std::string check_backend(const std::string& place, const etx_backend* backend) {
  if (backend == nullptr) return place + " is null";
  std::string defect =
      check_size(place + "->struct_size", backend->struct_size, sizeof(etx_backend));
  if (defect.empty()) defect = check_text(place + "->name", backend->name);
  if (!defect.empty()) return defect;
  if (backend->init == nullptr) return place + "->init is null";
  return backend->execute == nullptr ? place + "->execute is null" : "";
}

}  // namespace

std::string find_defect(const etx_plugin& plugin) {
  std::string defect = check_size("struct_size", plugin.struct_size, sizeof(plugin));
  if (defect.empty()) defect = check_text("name", plugin.name);
  if (defect.empty() && plugin.version == nullptr) defect = "version is null";
  if (defect.empty()) defect = check_list("tables", "num_tables", plugin.tables, plugin.num_tables);
  for (size_t i = 0; defect.empty() && i < plugin.num_tables; ++i) {
    defect = check_table(item("tables", i), plugin.tables[i]);
  }
  if (defect.empty()) {
    defect = check_list("backends", "num_backends", plugin.backends, plugin.num_backends);
  }
  for (size_t i = 0; defect.empty() && i < plugin.num_backends; ++i) {
    defect = check_backend(item("backends", i), plugin.backends[i]);
  }
  return defect;
}

}  // namespace etx
