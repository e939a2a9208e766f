// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>
#include <etx/registry.h>

#include "format.h"

namespace etx {
namespace {

bool fits(const etx_tensor& tensor, uint64_t row) {
  if ((row & kOnlyDtypes) != 0 && (row >> tensor.dtype & 1) == 0) return false;
  for (uint8_t i = 0; i < tensor.rank; ++i) {
    const int last = i + 1 < tensor.rank ? i + 1 : 1;
    if ((row & kOnlyContiguous) != 0 && tensor.dim_order[i] != i) return false;
    if ((row & kOnlyChannelsLast) != 0 && tensor.dim_order[i] != (i == 0 ? 0 : last)) return false;
  }
  return true;
}

bool fits(const etx_value& value, uint64_t row) {
  if (value.tag == ETX_TAG_TENSOR) return fits(*value.payload.as_tensor, row);
  if (value.tag != ETX_TAG_LIST_TENSOR && value.tag != ETX_TAG_LIST_OPTIONAL_TENSOR) return true;
  for (uint32_t i = 0; i < value.count; ++i) {
    const etx_value* const item = value.payload.as_tensor_list[i];
    if (item != nullptr && item->tag == ETX_TAG_TENSOR && !fits(*item->payload.as_tensor, row)) {
      return false;
    }
  }
  return true;
}

bool fits(Span<etx_value* const> args, uint64_t row) {
  for (const etx_value* arg : args) {
    if (!fits(*arg, row)) return false;
  }
  return true;
}

unsigned rank_of(const etx_kernel& row) {
  const auto bits = static_cast<unsigned>(row.dtypes >> 59);
  return (bits & 1) + (bits >> 1 & 1) + (bits >> 2 & 1);
}

const etx_kernel* best_in(Span<const etx_kernel_table* const> tables, const etx_kernel* best,
                          Span<etx_value* const> args) {
  for (const etx_kernel_table* table : tables) {
    for (size_t i = 0; i < table->count; ++i) {
      const etx_kernel& row = table->rows[i];
      if (rank_of(row) > rank_of(*best) && equals(row.name, best->name) &&
          equals(row.signature, best->signature) && fits(args, row.dtypes)) {
        best = &row;
      }
    }
  }
  return best;
}

}  // namespace

const etx_kernel* detail::find_special(const Registry& registry, const etx_kernel& general,
                                       Span<etx_value* const> args) {
  const etx_kernel* best = best_in(registry.tables_, &general, args);
  for (const etx_plugin* plugin : registry.plugins_) {
    best = best_in({plugin->tables, plugin->num_tables}, best, args);
  }
  return best;
}

}  // namespace etx
