// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>
#include <string_view>
#include <unordered_map>

#include <etx/hosted/loaders.h>

#include "../core/tables.h"

#include <flat_tensor_generated.h>

namespace etx {
namespace {

namespace fbs = ::etx_fbs::flat_tensor;

constexpr size_t kHeadSize = 64;
constexpr uint32_t kHeaderSize = 40;

uint64_t read_number(const uint8_t* bytes, int width) {
  uint64_t number = 0;
  for (int i = width; i-- > 0;) number = number << 8 | bytes[i];
  return number;
}

struct Head {
  uint64_t table_size;
  uint64_t base;
  uint64_t size;
};

bool parse_head(const uint8_t* bytes, uint64_t file_size, Head* head) {
  if (std::memcmp(bytes + 4, "FT01", 4) != 0 || std::memcmp(bytes + 8, "FH01", 4) != 0) {
    return false;
  }
  if (read_number(bytes + 12, 4) < kHeaderSize) return false;
  const uint64_t offset = read_number(bytes + 16, 8);
  const uint64_t size = read_number(bytes + 24, 8);
  head->base = read_number(bytes + 32, 8);
  head->size = read_number(bytes + 40, 8);
  if (offset > file_size || size > file_size - offset) return false;
  head->table_size = offset + size;
  return head->table_size >= kHeadSize && head->base <= file_size &&
         head->size <= file_size - head->base;
}

/// The reason why `table` must not be used, or null.
const char* check(const fbs::FlatTensor& table, const Head& head) {
  if (table.version() != 0) return "it is of a newer version; upgrade etx-runtime";
  if (table.segments() == nullptr || table.named_data() == nullptr) return "it has no tables";
  for (const fbs::DataSegment* segment : *table.segments()) {
    if (segment->offset() > head.size || segment->size() > head.size - segment->offset()) {
      return "a segment ends after the file";
    }
  }
  for (const fbs::NamedData* entry : *table.named_data()) {
    if (entry->key() == nullptr || entry->segment_index() >= table.segments()->size()) {
      return "an entry has no key or no segment";
    }
    const fbs::TensorLayout* layout = entry->tensor_layout();
    if (layout == nullptr) continue;
    const size_t rank = layout->sizes() == nullptr ? 0 : layout->sizes()->size();
    const size_t order = layout->dim_order() == nullptr ? 0 : layout->dim_order()->size();
    const auto type = static_cast<ScalarType>(static_cast<int8_t>(layout->scalar_type()));
    if (rank != order || !is_valid(type)) return "a tensor's layout is corrupt";
  }
  return nullptr;
}

class MergedDataMap final : public NamedDataMap {
 public:
  explicit MergedDataMap(std::vector<std::shared_ptr<const NamedDataMap>> maps)
      : maps_(std::move(maps)) {}
  ~MergedDataMap() = default;

  Result<Span<const uint8_t>> get_data(const char* key) const override {
    for (const auto& map : maps_) {
      auto data = map->get_data(key);
      if (data.ok()) return data;
    }
    return Error::NotFound;
  }
  Result<TensorLayout> get_tensor_layout(const char* key) const override {
    for (const auto& map : maps_) {
      auto layout = map->get_tensor_layout(key);
      if (layout.ok()) return layout;
    }
    return Error::NotFound;
  }
  size_t get_num_keys() const override {
    size_t count = 0;
    for (const auto& map : maps_) count += map->get_num_keys();
    return count;
  }
  const char* get_key(size_t index) const override {
    size_t map = 0;
    while (index >= maps_[map]->get_num_keys()) index -= maps_[map++]->get_num_keys();
    return maps_[map]->get_key(index);
  }

 private:
  std::vector<std::shared_ptr<const NamedDataMap>> maps_;
};

}  // namespace

struct PtdDataMap::Contents {
  std::shared_ptr<const DataLoader> loader;
  FreeableBuffer table_bytes;
  const fbs::FlatTensor* table;
  std::vector<FreeableBuffer> segments;
  std::unordered_map<std::string_view, const fbs::NamedData*> entries;

  const fbs::NamedData* find(const char* key) const {
    const auto found = entries.find(key);
    return found == entries.end() ? nullptr : found->second;
  }
};

PtdDataMap::PtdDataMap(std::unique_ptr<Contents> contents) : contents_(std::move(contents)) {}

PtdDataMap::~PtdDataMap() = default;

std::unique_ptr<PtdDataMap> PtdDataMap::from(std::shared_ptr<const DataLoader> loader,
                                             std::string* message) {
  const DataLoader::SegmentInfo info{DataLoader::SegmentInfo::Type::External, 0, nullptr};
  const auto known = loader->size();
  *message = "its size is not known";
  if (!known.ok()) return nullptr;
  const size_t size = *known;
  Head head{};
  *message = "it is not a .ptd file, or was truncated";
  auto bytes = loader->load(0, size < kHeadSize ? size : kHeadSize, info);
  const bool is_whole = size >= kHeadSize && bytes.ok() && bytes->size() >= kHeadSize;
  if (!is_whole || !parse_head(bytes->bytes(), size, &head)) return nullptr;
  auto contents = std::make_unique<Contents>();
  auto table = loader->load(0, static_cast<size_t>(head.table_size), info);
  if (!table.ok()) return nullptr;
  contents->table_bytes = std::move(table.get());
  size_t where = 0;
  if (!verify_tables(contents->table_bytes.bytes(), contents->table_bytes.size(),
                     fbs::FlatTensorTypeTable(), &where)) {
    *message = "its tables are corrupt [byte " + std::to_string(where) + "]";
    return nullptr;
  }
  contents->table = fbs::GetFlatTensor(contents->table_bytes.data());
  if (const char* reason = check(*contents->table, head)) {
    *message = reason;
    return nullptr;
  }
  for (const fbs::DataSegment* segment : *contents->table->segments()) {
    auto data = loader->load(static_cast<size_t>(head.base + segment->offset()),
                             static_cast<size_t>(segment->size()), info);
    *message = "a segment cannot be read";
    if (!data.ok()) return nullptr;
    contents->segments.push_back(std::move(data.get()));
  }
  for (const fbs::NamedData* entry : *contents->table->named_data()) {
    *message = "two entries have the key " + entry->key()->str();
    if (!contents->entries.emplace(entry->key()->c_str(), entry).second) return nullptr;
  }
  message->clear();
  contents->loader = std::move(loader);
  return std::unique_ptr<PtdDataMap>(new PtdDataMap(std::move(contents)));
}

Result<Span<const uint8_t>> PtdDataMap::get_data(const char* key) const {
  const fbs::NamedData* entry = contents_->find(key);
  if (entry == nullptr) return Error::NotFound;
  const FreeableBuffer& segment = contents_->segments[entry->segment_index()];
  return Span<const uint8_t>(segment.bytes(), segment.size());
}

Result<TensorLayout> PtdDataMap::get_tensor_layout(const char* key) const {
  const fbs::NamedData* entry = contents_->find(key);
  if (entry == nullptr || entry->tensor_layout() == nullptr) return Error::NotFound;
  const fbs::TensorLayout& stored = *entry->tensor_layout();
  TensorLayout layout{static_cast<ScalarType>(static_cast<int8_t>(stored.scalar_type())), {}, {}};
  if (stored.sizes() != nullptr) layout.sizes = {stored.sizes()->data(), stored.sizes()->size()};
  if (stored.dim_order() != nullptr) {
    layout.dim_order = {stored.dim_order()->data(), stored.dim_order()->size()};
  }
  return layout;
}

size_t PtdDataMap::get_num_keys() const { return contents_->table->named_data()->size(); }

const char* PtdDataMap::get_key(size_t index) const {
  return contents_->table->named_data()->Get(static_cast<uint32_t>(index))->key()->c_str();
}

std::shared_ptr<const NamedDataMap> merge(std::vector<std::shared_ptr<const NamedDataMap>> maps,
                                          std::string* message) {
  for (size_t i = 0; i < maps.size(); ++i) {
    for (size_t k = 0; k < maps[i]->get_num_keys(); ++k) {
      for (size_t other = 0; other < i; ++other) {
        const char* key = maps[i]->get_key(k);
        if (!maps[other]->get_data(key).ok()) continue;
        *message = std::string("two .ptd files hold the key ") + key;
        return nullptr;
      }
    }
  }
  return std::make_shared<const MergedDataMap>(std::move(maps));
}

}  // namespace etx
