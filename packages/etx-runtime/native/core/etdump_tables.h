// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NATIVE_CORE_ETDUMP_TABLES_H_
#define ETX_NATIVE_CORE_ETDUMP_TABLES_H_

#include <cstddef>
#include <cstdint>

#include <etx/tensor.h>
#include <etx/value.h>

// How the tables of etdump.fbs lie that the writer makes, and what of values goes into them.

namespace etx {
namespace dump {

/// Two bytes each: the vtable's size, the table's, where its fields lie. At the end of the memory.
constexpr uint16_t kVtables[] = {
    0,  0,                                  // fills
    20, 32, 4,  28, 24, 0,  0,  0,  8, 16,  // ProfileEvent of the runtime
    20, 32, 0,  0,  24, 0,  4,  28, 8, 16,  // ProfileEvent of a delegate with a name
    20, 32, 0,  0,  24, 4,  0,  28, 8, 16,  // ProfileEvent of a delegate with a number
    6,  8,  4,                              // Event with a ProfileEvent
    10, 8,  0,  0,  4,                      // Event with a DebugEvent
    12, 16, 4,  0,  8,  12,                 // RunData
    8,  12, 4,  8,                          // ETDump
    6,  8,  4,                              // Allocator, Bool, TensorList
    14, 24, 8,  4,  16, 0,  20,             // DebugEvent, within a delegate
    14, 24, 8,  4,  16, 0,  0,              // DebugEvent
    6,  16, 8,                              // Int, Double
    12, 24, 12, 4,  8,  16,                 // Tensor
    8,  8,  0,  4,                          // Value, a summary's tensor
    20, 16, 0,  4,  0,  0,  0,  0,  0, 8,   // Value, that of an output
    24, 48, 8,  4,  44, 0,  0,  0,          // DebugEvent of a thread
    40, 32, 16, 24,                         //
    4,  4,                                  // Value without any
    0,  0,  0,  0,                          // fills
};

/// Where the vtable of this position lies, from the end.
constexpr uint16_t vtable(size_t index) {
  size_t at = 2;
  for (size_t i = 0; i < index; ++i) at += kVtables[at] / 2u;
  return static_cast<uint16_t>(sizeof(kVtables) - 2 * at);
}

constexpr uint16_t kProfile = vtable(0);
constexpr uint16_t kDelegateNamed = vtable(1);
constexpr uint16_t kDelegateNumbered = vtable(2);
constexpr uint16_t kProfileEvent = vtable(3);
constexpr uint16_t kDebugEvent = vtable(4);
constexpr uint16_t kRun = vtable(5);
constexpr uint16_t kDump = vtable(6);
constexpr uint16_t kOne = vtable(7);
constexpr uint16_t kDebugInDelegate = vtable(8);
constexpr uint16_t kDebug = vtable(9);
constexpr uint16_t kNumber = vtable(10);
constexpr uint16_t kTensor = vtable(11);
constexpr uint16_t kSummary = vtable(12);
constexpr uint16_t kSummaryOutput = vtable(13);
constexpr uint16_t kThread = vtable(14);
constexpr uint16_t kNothing = vtable(15);
static_assert(sizeof(kVtables) % 8 == 0, "what follows is aligned");

/// A vector without elements.
constexpr uint32_t kEmpty = 4;

/// Event and ProfileEvent in one.
struct Profile {
  int32_t event_vtable;
  uint32_t event_profile;
  int32_t vtable;
  /// Where the name or the delegate's lies, or the delegate's number.
  uint32_t name;
  uint64_t start;
  uint64_t end;
  uint32_t instruction;
  /// The chain; of delegates where the metadata lies.
  uint32_t last;
};
static_assert(sizeof(Profile) == 40, "as in kVtables");

/// Event and DebugEvent in one, of a thread.
struct Thread {
  int32_t event_vtable;
  uint32_t event_debug;
  int32_t vtable;
  uint32_t instruction;
  uint64_t chain;
  uint64_t start;
  uint64_t end;
  uint64_t items;
  uint32_t thread;
  uint32_t entry;
};
static_assert(sizeof(Thread) == 56, "as in kVtables");

/// As etdump.fbs numbers them.
enum class ValueType : uint8_t { Null, Int, Bool, Float, Double, Tensor, TensorList };

/// Of a text or null; longer ones are cut.
inline size_t length_of(const char* text) {
  constexpr size_t kMost = 4096;
  size_t size = 0;
  while (text != nullptr && size < kMost && text[size] != '\0') ++size;
  return size;
}

/// The tensors of a value: one, those of a list, or none.
struct Tensors {
  explicit Tensors(const etx_value& value) {
    if (value.tag == ETX_TAG_TENSOR) {
      count = 1;
      one = &value;
      items = &one;
    } else if (value.tag == ETX_TAG_LIST_TENSOR || value.tag == ETX_TAG_LIST_OPTIONAL_TENSOR) {
      count = value.count;
      items = value.payload.as_tensor_list;
    }
  }
  /// Null for a list's absent item.
  const etx_tensor* at(size_t index) const {
    const etx_value* item = items[index];
    return item == nullptr || item->tag != ETX_TAG_TENSOR ? nullptr : item->payload.as_tensor;
  }
  size_t count = 0;
  const etx_value* one = nullptr;
  const etx_value* const* items = nullptr;
};

inline size_t bytes_of(const etx_tensor& tensor) {
  const Tensor view(const_cast<etx_tensor*>(&tensor));
  return tensor.data == nullptr ? 0 : view.nbytes();
}

}  // namespace dump
}  // namespace etx

#endif  // ETX_NATIVE_CORE_ETDUMP_TABLES_H_
