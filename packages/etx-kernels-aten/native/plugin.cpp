// SPDX-License-Identifier: BSD-3-Clause
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include <etx/plugin.h>

#include "call.h"
#include "forked.h"
#include "operation.h"
#include "prims.h"

namespace etx::aten {
namespace {

/// The out variant by ETX's naming rule: `ns::op` -> `ns::op.out`, `ns::op.x` -> `ns::op.x_out`.
c10::OperatorName derived(const c10::OperatorName& name) {
  return {name.name, name.overload_name.empty() ? "out" : name.overload_name + "_out"};
}

class Table {
 public:
  /// The rows of torch's registry as it is now; those of before stay, as methods use them.
  const etx_plugin* current() {
    const std::lock_guard<std::mutex> lock(mutex_);
    const uint64_t now = registry_generation();
    if (plugin_ == nullptr || now != generation_) rebuild();
    generation_ = now;
    return plugin_;
  }

 private:
  void rebuild() {
    tables_ = new std::vector<const etx_kernel_table*>{&prim_kernels};
    const std::vector<c10::OperatorName> names = c10::Dispatcher::singleton().getAllOpNames();
    std::set<std::string> known;
    for (const c10::OperatorName& name : names) known.insert(c10::toString(name));
    for (const c10::OperatorName& name : names) {
      add(name, name, false);
      const c10::OperatorName out = derived(name);
      const bool is_torchs = name.name.compare(0, 6, "aten::") == 0;
      if (!is_torchs && known.count(c10::toString(out)) == 0) add(out, name, true);
    }
    plugin_ = new etx_plugin{sizeof(etx_plugin), ETX_ABI_MAJOR,    ETX_ABI_MINOR,
                             "etx-kernels-aten", ETX_ATEN_VERSION, tables_->data(),
                             tables_->size(),    nullptr,          0};
  }

  void add(const c10::OperatorName& name, const c10::OperatorName& target, bool is_functional) {
    std::unique_ptr<Row>& row = rows_[c10::toString(name)];
    const bool is_same = row != nullptr && row->kernel.is_functional == is_functional;
    if (!is_same) {
      static_cast<void>(row.release());  // methods may use it
      row = std::make_unique<Row>(c10::toString(name), target, is_functional);
    }
    tables_->push_back(&row->table);
  }

  /// One table a row, since tables are arrays of etx_kernel, which Kernel is more than.
  struct Row {
    Row(std::string name, c10::OperatorName target, bool is_functional)
        : kernel(std::move(name), std::move(target), is_functional), table{&kernel, 1} {}
    Kernel kernel;
    etx_kernel_table table;
  };

  std::map<std::string, std::unique_ptr<Row>> rows_;
  std::vector<const etx_kernel_table*>* tables_ = nullptr;
  const etx_plugin* plugin_ = nullptr;
  uint64_t generation_ = 0;
  std::mutex mutex_;
};

}  // namespace
}  // namespace etx::aten

/// Called at each load that names these kernels, so that operators registered since are there.
extern "C" ETX_EXPORT const etx_plugin* etx_plugin_v1(void) {
  etx::aten::watch_forks();
  static etx::aten::Table& table = *new etx::aten::Table();
  return table.current();
}
