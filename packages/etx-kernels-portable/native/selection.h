// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_SELECTION_H_
#define ETX_PORTABLE_SELECTION_H_

/// What a build takes in: everything, or what the header ETX_SELECTION names, which `etx select`
/// writes from files: ETX_SELECTED_OPERATORS(X) with an X("aten::add.out") each,
/// ETX_SELECTED_DTYPES, bits of ScalarType, ETX_LEFT_OUT_DTYPES(X), numbers and names of the rest,
/// and ETX_SELECTED_DIM_ORDERS: 0 where all tensors are row-major.

#include <cstddef>
#include <cstdint>
#include <utility>

#include <etx/dtype.h>
#include <etx/kernel.h>

#if defined(ETX_SELECTION)
#include ETX_SELECTION
#else
#define ETX_SELECTED_DTYPES ~uint64_t{0}
#define ETX_SELECTED_DIM_ORDERS 1
#endif

namespace etx::portable {

constexpr bool is_built(ScalarType type) {
  return (ETX_SELECTED_DTYPES >> static_cast<int>(type) & 1) != 0;
}

/// False: tensors are row-major, and what is there for others is left out.
constexpr bool kDimOrdersBuilt = ETX_SELECTED_DIM_ORDERS != 0;

template <typename... Types>
constexpr bool any_built(Types... types) {
  return (is_built(types) || ...);
}

constexpr bool kComplexBuilt =
    any_built(ScalarType::ComplexHalf, ScalarType::ComplexFloat, ScalarType::ComplexDouble);

/// Whether tensors are computed in this type: integers and bool are in int64, float16 and bfloat16
/// in float32 too.
constexpr bool is_computed(ScalarType type) {
  switch (type) {
    case ScalarType::Float:
      return kComplexBuilt || any_built(type, ScalarType::Half, ScalarType::BFloat16);
    case ScalarType::Long:
      return any_built(type, ScalarType::Bool, ScalarType::Byte, ScalarType::Char,
                       ScalarType::Short, ScalarType::Int, ScalarType::UInt16, ScalarType::UInt32,
                       ScalarType::UInt64);
    default: return kComplexBuilt || is_built(type);
  }
}

/// Whether numbers are converted from and to it: scalars are int64 or float64 in any build.
constexpr bool is_cast(ScalarType type) {
  return is_built(type) || type == ScalarType::Long || type == ScalarType::Float ||
         type == ScalarType::Double;
}

#if defined(ETX_SELECTION)
constexpr bool same_text(const char* a, const char* b) {
  while (*a != 0 && *a == *b) ++a, ++b;
  return *a == *b;
}

constexpr bool is_selected(const char* name) {
#define ETX_NAME(selected) \
  if (same_text(name, selected)) return true;
  ETX_SELECTED_OPERATORS(ETX_NAME)
#undef ETX_NAME
  return false;
}

constexpr const char* why_left_out(ScalarType type) {
  switch (static_cast<int>(type)) {
#define ETX_REASON(number, name) \
  case number: return "left out by etx select: --dtype " name;
    ETX_LEFT_OUT_DTYPES(ETX_REASON)
#undef ETX_REASON
    default: return nullptr;
  }
}

/// Why a tensor is refused; null: it is not.
inline const char* why_left_out(const etx_tensor& tensor) {
  if (!kDimOrdersBuilt) {
    for (uint8_t i = 0; i < tensor.rank; ++i) {
      if (tensor.dim_order[i] != i) return "left out by etx select: --dim-orders";
    }
  }
  return why_left_out(static_cast<ScalarType>(tensor.dtype));
}

/// The same of a value, which may be a list of tensors.
inline const char* why_left_out(const etx_value& value) {
  if (value.tag == ETX_TAG_TENSOR) return why_left_out(*value.payload.as_tensor);
  if (value.tag != ETX_TAG_LIST_TENSOR && value.tag != ETX_TAG_LIST_OPTIONAL_TENSOR) return nullptr;
  const char* reason = nullptr;
  for (uint32_t i = 0; i < value.count && reason == nullptr; ++i) {
    const etx_value* const item = value.payload.as_tensor_list[i];
    if (item != nullptr && item->tag == ETX_TAG_TENSOR) {
      reason = why_left_out(*item->payload.as_tensor);
    }
  }
  return reason;
}

/// Refuses an instruction with a tensor that is left out.
[[gnu::noinline]] inline etx_status check_tensors(etx_context* context, const char* signature,
                                                  etx_value* const* args) {
  for (; *signature != 0 && *signature != '*'; ++signature) {
    if (*signature == '!' || *signature == '?') continue;
    const char* const reason = why_left_out(**args++);
    if (reason == nullptr) continue;
    return context->fail(context, static_cast<etx_status>(Error::NotSupported), reason);
  }
  return 0;
}

/// The kernel of a row, which refuses tensors that are left out when a method is loaded.
template <const auto& all, size_t index>
etx_status run_selected(etx_context* context, etx_value* const* args) {
  constexpr etx_kernel row = all[index];
  if (context->is_loading) {
    const etx_status status = check_tensors(context, row.signature, args);
    if (status != 0) return status;
    if ((row.dtypes & kChecksAtLoad) == 0) return 0;
  }
  return row.run(context, args);
}

template <size_t n>
struct SelectedRows {
  etx_kernel rows[n];
};

template <const auto& all, size_t index>
constexpr void take_row(etx_kernel*& row) {
  if constexpr (is_selected(all[index].name)) {
    *row = all[index];
    row->run = &run_selected<all, index>;
    row->dtypes |= kChecksAtLoad;
    ++row;
  }
}

/// The rows of a family that are built.
template <const auto& all, size_t... i>
constexpr auto selected_rows(std::index_sequence<i...>) {
  constexpr size_t count = (size_t{0} + ... + size_t{is_selected(all[i].name)});
  static_assert(count > 0, "a family without a selected operator is left out of the build");
  SelectedRows<count> kept{};
  etx_kernel* row = kept.rows;
  (take_row<all, i>(row), ...);
  return kept;
}

#define ETX_EVERY_ROW(all) std::make_index_sequence<sizeof(all) / sizeof((all)[0])>()
#undef ETX_KERNEL_TABLE
#define ETX_KERNEL_TABLE(name, all)                                    \
  namespace {                                                          \
  constexpr auto name##_rows = selected_rows<all>(ETX_EVERY_ROW(all)); \
  }                                                                    \
  extern const etx_kernel_table name;                                  \
  const etx_kernel_table name = {name##_rows.rows, sizeof(name##_rows.rows) / sizeof(etx_kernel)}
#endif

}  // namespace etx::portable

#endif  // ETX_PORTABLE_SELECTION_H_
