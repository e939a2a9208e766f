// SPDX-License-Identifier: BSD-3-Clause
#include <etx/hosted/module.h>
#include <etx/hosted/plugins.h>
#include <etx/kernel.h>

namespace etx {
namespace {

/// `etx-kernels-portable`, `demo: float32, channels last`.
std::string describe_row(const etx_plugin& plugin, const etx_kernel& row) {
  std::string text;
  const auto add = [&](const char* word) {
    text += (text.empty() ? ": " : ", ") + std::string(word);
  };
  for (int i = 0; (row.dtypes & kOnlyDtypes) != 0 && i < 59; ++i) {
    if ((row.dtypes >> i & 1) != 0) add(to_string(static_cast<ScalarType>(i)));
  }
  if ((row.dtypes & kOnlyContiguous) != 0) add("contiguous");
  if ((row.dtypes & kOnlyChannelsLast) != 0) add("channels last");
  return plugin.name + text;
}

std::string find_row(const std::vector<const etx_plugin*>& plugins, etx_kernel_fn run) {
  for (const etx_plugin* plugin : plugins) {
    for (size_t i = 0; i < plugin->num_tables; ++i) {
      const etx_kernel_table& table = *plugin->tables[i];
      for (size_t k = 0; k < table.count; ++k) {
        if (table.rows[k].run == run) return describe_row(*plugin, table.rows[k]);
      }
    }
  }
  return "";
}

}  // namespace

std::vector<std::string> LoadedMethod::kernel_rows() const {
  std::vector<etx_plugin> rest;
  const auto plugins = Plugins::shared().list(program_->kernels(), &rest);
  std::vector<std::string> rows(method_->method_meta().num_instructions());
  for (size_t i = 0; i < rows.size(); ++i) {
    const etx_kernel_fn run = method_->instruction_kernel(i);
    if (run != nullptr) rows[i] = find_row(plugins, run);
  }
  return rows;
}

}  // namespace etx
