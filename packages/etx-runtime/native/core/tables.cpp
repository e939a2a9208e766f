// SPDX-License-Identifier: BSD-3-Clause
#include "tables.h"

namespace etx {
namespace {

using ::flatbuffers::ElementaryType;
using ::flatbuffers::TypeCode;
using ::flatbuffers::TypeTable;

constexpr int kMaxDepth = 32;
constexpr size_t kVtableHead = 4;
/// How often a byte may be visited, on average: writers share vtables, sizes and argument lists.
constexpr size_t kMaxShares = 16;

/// Bytes of an element by ElementaryType; strings and tables are reached by offsets.
constexpr uint8_t kElementSizes[] = {1, 1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 4, 4};

class TableVerifier {
 public:
  TableVerifier(const uint8_t* data, size_t size)
      : data_(data),
        size_(size),
        work_left_(size > SIZE_MAX / kMaxShares ? SIZE_MAX : size * kMaxShares) {}

  bool check_root(const TypeTable* type) {
    size_t table = 0;
    return follow(0, &table) && check_table(table, *type, 0);
  }
  /// The last table or field that was looked at.
  size_t where() const { return where_; }

 private:
  bool has(size_t at, size_t size, size_t alignment) const {
    return at <= size_ && size <= size_ - at && at % alignment == 0;
  }
  template <typename T>
  T read(size_t at) const {
    return ::flatbuffers::ReadScalar<T>(data_ + at);
  }

  /// False when more bytes were visited than a sane buffer shares.
  bool spend(size_t bytes) {
    if (bytes > work_left_) return false;
    work_left_ -= bytes;
    return true;
  }

  /// The target of the offset stored at `at`.
  bool follow(size_t at, size_t* target) const {
    if (!has(at, sizeof(uint32_t), sizeof(uint32_t))) return false;
    const size_t offset = read<uint32_t>(at);
    *target = at + offset;
    return offset != 0 && offset <= size_ - at;
  }

  bool check_table(size_t at, const TypeTable& type, int depth) {
    where_ = at;
    if (depth > kMaxDepth || !spend(sizeof(int32_t))) return false;
    if (!has(at, sizeof(int32_t), sizeof(int32_t))) return false;
    const int64_t start = static_cast<int64_t>(at) - read<int32_t>(at);
    if (start < 0) return false;
    const auto vtable = static_cast<size_t>(start);
    if (!has(vtable, kVtableHead, sizeof(uint16_t))) return false;
    const size_t vtable_size = read<uint16_t>(vtable);
    if (vtable_size < kVtableHead || vtable_size % sizeof(uint16_t) != 0) return false;
    if (!has(vtable, vtable_size, sizeof(uint16_t)) || !spend(vtable_size)) return false;
    size_t tag = 0;
    for (size_t i = 0; i < type.num_elems; ++i) {
      const size_t slot = kVtableHead + i * sizeof(uint16_t);
      const size_t offset = slot < vtable_size ? read<uint16_t>(vtable + slot) : 0;
      const TypeCode code = type.type_codes[i];
      if (offset != 0 && !check_field(at + offset, code, type, tag, depth)) return false;
      const bool is_tag = code.base_type == ElementaryType::ET_UTYPE;
      tag = is_tag && offset != 0 ? read<uint8_t>(at + offset) : 0;
    }
    return true;
  }

  bool check_field(size_t at, TypeCode code, const TypeTable& type, size_t tag, int depth) {
    where_ = at;
    const size_t element = kElementSizes[code.base_type];
    const bool is_offset = code.base_type >= ElementaryType::ET_STRING;
    if (!is_offset && code.is_repeating == 0) return has(at, element, element);
    size_t target = 0;
    if (!follow(at, &target)) return false;
    if (code.is_repeating == 0) return check_target(target, code, type, tag, depth);
    if (!has(target, sizeof(uint32_t), sizeof(uint32_t))) return false;
    const size_t count = read<uint32_t>(target);
    const size_t first = target + sizeof(uint32_t);
    if (count > size_ / element || !has(first, count * element, count == 0 ? 1 : element)) {
      return false;
    }
    if (!spend(count * element)) return false;
    for (size_t i = 0; is_offset && i < count; ++i) {
      if (!follow(first + i * element, &target)) return false;
      if (!check_target(target, code, type, 0, depth)) return false;
    }
    return true;
  }

  /// A string, a table, or the member of a union that `tag` says.
  bool check_target(size_t target, TypeCode code, const TypeTable& type, size_t tag, int depth) {
    if (code.base_type == ElementaryType::ET_STRING) {
      if (!has(target, sizeof(uint32_t), sizeof(uint32_t))) return false;
      const size_t count = read<uint32_t>(target);
      const size_t first = target + sizeof(uint32_t);
      return count < size_ && has(first, count + 1, 1) && data_[first + count] == 0;
    }
    const TypeTable* member = type.type_refs[code.sequence_ref]();
    if (member->st == ::flatbuffers::ST_UNION) {
      const bool is_known = tag < member->num_elems && member->type_codes[tag].sequence_ref >= 0;
      if (!is_known) return true;
      member = member->type_refs[member->type_codes[tag].sequence_ref]();
    }
    return check_table(target, *member, depth + 1);
  }

  const uint8_t* data_;
  size_t size_;
  size_t work_left_;
  size_t where_ = 0;
};

}  // namespace

bool verify_tables(const uint8_t* data, size_t size, const TypeTable* root, size_t* where) {
  TableVerifier verifier(data, size);
  const bool is_sound = size <= INT32_MAX && verifier.check_root(root);
  *where = verifier.where();
  return is_sound;
}

}  // namespace etx
