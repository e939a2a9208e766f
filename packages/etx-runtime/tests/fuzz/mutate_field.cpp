// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>

#include "../../native/core/tables.h"
#include "mutate.h"

#include <flat_tensor_generated.h>
#include <program_generated.h>

namespace etx::fuzz {
namespace {

using ::flatbuffers::ElementaryType;
using ::flatbuffers::TypeCode;
using ::flatbuffers::TypeTable;

constexpr size_t kMostFields = 1 << 14;
constexpr size_t kMostItems = 32;
constexpr uint8_t kSizes[] = {1, 1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 4, 4};

/// A number in the file that decides what the rest means.
struct Field {
  enum class Kind { Number, Length, Offset, Presence };
  Kind kind;
  size_t at;
  size_t size;
  const void* type;
};

/// All fields of a flatbuffer that was verified.
class Walk {
 public:
  explicit Walk(const Bytes& file) : file_(file) {}

  void table(size_t at, const TypeTable& type) {
    const size_t vtable = at - static_cast<size_t>(static_cast<int64_t>(read<int32_t>(at)));
    const size_t vtable_size = read<uint16_t>(vtable);
    size_t tag = 0;
    for (size_t i = 0; i < type.num_elems && fields.size() < kMostFields; ++i) {
      const size_t slot = vtable + 4 + 2 * i;
      if (slot >= vtable + vtable_size) break;
      const size_t offset = read<uint16_t>(slot);
      const TypeCode code = type.type_codes[i];
      if (offset != 0) {
        fields.push_back({Field::Kind::Presence, slot, 2, nullptr});
        field(at + offset, code, type, tag);
      }
      const bool is_tag = code.base_type == ElementaryType::ET_UTYPE;
      tag = is_tag && offset != 0 ? file_[at + offset] : 0;
    }
  }

  std::vector<Field> fields;

 private:
  template <typename T>
  T read(size_t at) const {
    T value;
    std::memcpy(&value, &file_[at], sizeof(T));
    return value;
  }

  void field(size_t at, TypeCode code, const TypeTable& type, size_t tag) {
    const size_t size = kSizes[code.base_type];
    const bool is_offset = code.base_type >= ElementaryType::ET_STRING;
    if (!is_offset && code.is_repeating == 0) {
      fields.push_back({Field::Kind::Number, at, size, nullptr});
      return;
    }
    fields.push_back({Field::Kind::Offset, at, 4, key(code, type)});
    const size_t target = at + read<uint32_t>(at);
    if (code.is_repeating == 0) return follow(target, code, type, tag);
    fields.push_back({Field::Kind::Length, target, 4, nullptr});
    const size_t count = read<uint32_t>(target);
    for (size_t i = 0; i < count && i < kMostItems; ++i) {
      const size_t item = target + 4 + i * size;
      if (!is_offset) {
        fields.push_back({Field::Kind::Number, item, size, nullptr});
        continue;
      }
      fields.push_back({Field::Kind::Offset, item, 4, key(code, type)});
      follow(item + read<uint32_t>(item), code, type, 0);
    }
  }

  static const void* key(TypeCode code, const TypeTable& type) {
    if (code.base_type == ElementaryType::ET_STRING) return nullptr;
    if (code.sequence_ref < 0) return &type;
    return reinterpret_cast<const void*>(type.type_refs[code.sequence_ref]);
  }

  void follow(size_t target, TypeCode code, const TypeTable& type, size_t tag) {
    if (fields.size() >= kMostFields) return;
    if (code.base_type == ElementaryType::ET_STRING) {
      fields.push_back({Field::Kind::Length, target, 4, nullptr});
      return;
    }
    const TypeTable* member = type.type_refs[code.sequence_ref]();
    if (member->st == ::flatbuffers::ST_UNION) {
      if (tag >= member->num_elems || member->type_codes[tag].sequence_ref < 0) return;
      member = member->type_refs[member->type_codes[tag].sequence_ref]();
    }
    table(target, *member);
  }

  const Bytes& file_;
};

void change(Bytes& file, const std::vector<Field>& fields, Random& random) {
  const Field& field = random.pick(fields);
  const Field& other = random.pick(fields);
  uint64_t value = 0;
  std::memcpy(&value, &file[field.at], field.size);
  switch (field.kind) {
    case Field::Kind::Number:
      if (other.kind == Field::Kind::Number && other.size == field.size && random.one_in(2)) {
        std::memcpy(&value, &file[other.at], field.size);
      } else {
        value = random.one_in(3) ? value + random.below(33) - 16
                                 : static_cast<uint64_t>(random.number());
      }
      break;
    case Field::Kind::Length:
      value =
          random.one_in(3) ? static_cast<uint64_t>(random.number()) : value + random.below(3) - 1;
      break;
    case Field::Kind::Offset: {
      uint32_t offset = 0;
      std::memcpy(&offset, &file[other.at], sizeof(offset));
      const bool same = other.kind == field.kind && other.type == field.type;
      value = same ? other.at + offset - field.at : value + random.below(9) - 4;
      break;
    }
    case Field::Kind::Presence: value = random.one_in(4) ? value + random.below(9) - 4 : 0; break;
  }
  std::memcpy(&file[field.at], &value, field.size);
}

std::vector<Field> fields_of(const Bytes& file) {
  if (file.size() < 64) return {};
  const bool is_data = std::memcmp(&file[4], "FT01", 4) == 0;
  const TypeTable* type =
      is_data ? etx_fbs::flat_tensor::FlatTensorTypeTable() : etx_fbs::ProgramTypeTable();
  size_t where = 0;
  if (!verify_tables(file.data(), file.size(), type, &where)) return {};
  uint32_t root = 0;
  std::memcpy(&root, file.data(), sizeof(root));
  Walk walk(file);
  walk.table(root, *type);
  return std::move(walk.fields);
}

}  // namespace

void corrupt_each_field(const Bytes& file, const std::function<void(const Bytes&)>& use) {
  std::vector<Field> fields = fields_of(file);
  for (size_t at = 0; at < 48 && at + 4 <= file.size(); at += 4) {
    fields.push_back({Field::Kind::Number, at, 4, nullptr});
  }
  for (const Field& field : fields) {
    uint64_t value = 0;
    std::memcpy(&value, &file[field.at], field.size);
    const uint64_t all = UINT64_MAX >> (64 - 8 * field.size);
    for (const uint64_t wrong :
         {uint64_t{0}, value + 1, value - 1, all, all >> 1, (all >> 1) + 1, value ^ 4}) {
      if (((wrong ^ value) & all) == 0) continue;
      Bytes copy = file;
      std::memcpy(&copy[field.at], &wrong, field.size);
      use(copy);
    }
  }
}

bool mutate_field(Bytes& file, Random& random) {
  if (file.size() < 64) return false;
  if (random.one_in(16)) {
    const size_t at = 8 + 4 * random.below(10);
    const auto number = static_cast<uint32_t>(random.number());
    std::memcpy(&file[at], &number, sizeof(number));
    return true;
  }
  const std::vector<Field> fields = fields_of(file);
  if (fields.empty()) return false;
  change(file, fields, random);
  return true;
}

}  // namespace etx::fuzz
