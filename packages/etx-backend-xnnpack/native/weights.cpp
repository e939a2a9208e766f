// SPDX-License-Identifier: BSD-3-Clause
#include "weights.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "mutex.h"

namespace etx::xnnpack {

/// In front of the bytes, or beside those of a file.
struct alignas(64) PackedWeights {
  PackedWeights* next;
  Digest name;  ///< Of the bytes; of the key where a file is mapped.
  size_t size;
  size_t users;
  char* bytes;
  MappedWeights mapped;  ///< Without a mapping: the bytes follow.
};

namespace {

constexpr size_t kBuckets = 1024;

Mutex mutex;
PackedWeights* buckets[kBuckets];

/// Of some of the bytes: where names are equal, all are compared.
Digest name_of(const char* bytes, size_t size) {
  constexpr size_t kPart = 1024;
  constexpr size_t kParts = 64;
  if (size <= kPart * kParts) return digest_of(bytes, size);
  Digest parts[kParts + 1];
  for (size_t i = 0; i < kParts; ++i) {
    parts[i] = digest_of(bytes + (size - kPart) / (kParts - 1) * i, kPart);
  }
  parts[kParts] = {size, 0};
  return digest_of(parts, sizeof(parts));
}

/// Advises the system of the whole pages of this size between the ends of `memory`.
void advise(void* memory, size_t size, size_t page, int advice) {
  const auto first = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t begin = (first + page - 1) / page * page;
  const uintptr_t end = (first + size) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, advice);
}

/// Large pages, where the system has some, for memory of short use: one fault for 512.
void use_large_pages(void* memory, size_t size) {
#ifdef MADV_HUGEPAGE
  advise(memory, size, size_t{2} << 20, MADV_HUGEPAGE);
#else
  static_cast<void>(memory);
  static_cast<void>(size);
#endif
}

/// Has the system find all pages in one call, not in a fault for each. Linux before 5.14 refuses.
void fault_in(void* memory, size_t size) {
#ifdef __linux__
  constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, which older headers do not have.
  constexpr size_t kLeast = size_t{64} << 10;
  if (size < kLeast) return;
  advise(memory, size, static_cast<size_t>(sysconf(_SC_PAGESIZE)), kPopulateWrite);
#else
  static_cast<void>(memory);
  static_cast<void>(size);
#endif
}

PackedWeights** bucket_of(const Digest& name) { return &buckets[name.low % kBuckets]; }

void destroy(PackedWeights* weights) {
  if (weights->mapped.mapping != nullptr) unmap(weights->mapped);
  std::free(weights);
}

bool is_equal(const PackedWeights& kept, const PackedWeights& fresh) {
  const bool is_mapped = fresh.mapped.mapping != nullptr;
  if (!(kept.name == fresh.name) || kept.size != fresh.size) return false;
  if ((kept.mapped.mapping != nullptr) != is_mapped) return false;
  return is_mapped || std::memcmp(kept.bytes, fresh.bytes, fresh.size) == 0;
}

/// The kept weights that equal `fresh`, which are kept from now on if there were none.
PackedWeights* keep(PackedWeights* fresh) {
  const Lock lock(mutex);
  PackedWeights** bucket = bucket_of(fresh->name);
  for (PackedWeights* each = *bucket; each != nullptr; each = each->next) {
    if (!is_equal(*each, *fresh)) continue;
    ++each->users;
    return each;
  }
  fresh->users = 1;
  fresh->next = *bucket;
  *bucket = fresh;
  return fresh;
}

void let_go(PackedWeights* weights) {
  const Lock lock(mutex);
  if (--weights->users != 0) return;
  for (PackedWeights** each = bucket_of(weights->name);; each = &(*each)->next) {
    if (*each != weights) continue;
    *each = weights->next;
    break;
  }
  destroy(weights);
}

bool is_mapped(const Digest& name) {
  const Lock lock(mutex);
  for (const PackedWeights* each = *bucket_of(name); each != nullptr; each = each->next) {
    if (each->mapped.mapping != nullptr && each->name == name) return true;
  }
  return false;
}

PackedWeights* map(const WeightFolder& folder, const WeightKey& key) {
  MappedWeights mapped;
  const Digest name = key.name();
  if (!folder.find(name, &key, sizeof(key), &mapped)) return nullptr;
  void* memory = nullptr;
  if (posix_memalign(&memory, alignof(PackedWeights), sizeof(PackedWeights)) != 0) {
    unmap(mapped);
    return nullptr;
  }
  auto* weights = static_cast<PackedWeights*>(memory);
  *weights = {nullptr, name, mapped.size, 0, mapped.bytes, mapped};
  PackedWeights* kept = keep(weights);
  if (kept != weights) destroy(weights);
  return kept;
}

}  // namespace

Weights::Weights() : provider_{} {
  provider_.context = this;
  provider_.look_up = look_up;
  provider_.reserve_space = reserve;
  provider_.look_up_or_insert = insert;
  provider_.is_finalized = [](void*) { return true; };
  provider_.offset_to_addr = [](void*, size_t offset) { return reinterpret_cast<void*>(offset); };
  provider_.delete_cache = [](void*) { return xnn_status_success; };
}

void Weights::use(const Graph* graph, const WeightFolder* folder) {
  graph_ = graph;
  folder_ = folder;
}

void Weights::release() {
  std::free(pending_);
  std::free(pending_use_);
  pending_ = nullptr;
  pending_use_ = nullptr;
  has_key_ = false;
  hit_ = nullptr;
  while (uses_ != nullptr) {
    Use* const use = uses_;
    uses_ = use->next;
    let_go(use->weights);
    std::free(use);
  }
}

bool Weights::make_use() {
  if (pending_use_ == nullptr) pending_use_ = static_cast<Use*>(std::malloc(sizeof(Use)));
  return pending_use_ != nullptr;
}

/// What XNNPACK calls the offset is the address.
size_t Weights::add(PackedWeights* kept) {
  *pending_use_ = {kept, uses_};
  uses_ = pending_use_;
  pending_use_ = nullptr;
  return reinterpret_cast<size_t>(kept->bytes);
}

bool Weights::make_key(const xnn_weights_cache_look_up_key& asked) {
  if (folder_ == nullptr) return false;
  const Node* node = find_packing_node(*graph_, asked.kernel, asked.bias);
  if (node == nullptr) return false;
  const size_t size = size_of_constant(graph_->input(*node, 1));
  if (size < kLeastFile) return false;
  FileState state;
  const bool is_found = file_.find(asked.kernel, size);
  if (!is_found || !file_.read_state(&state)) {
    if (!has_complained_) {
      complain("weights are not kept: %s",
               is_found ? file_.reason() : "they do not lie in a mapped file");
    }
    has_complained_ = true;
    return false;
  }
  describe(*graph_, *node, asked.seed, &key_);
  key_.file = state;
  key_.offset = file_.offset_of(asked.kernel);
  return true;
}

size_t Weights::look_up(void* self, const xnn_weights_cache_look_up_key* asked) {
  auto& own = *static_cast<Weights*>(self);
  own.has_key_ = own.make_key(*asked);
  own.kernel_ = asked->kernel;
  own.hit_ = nullptr;
  if (!own.has_key_ || !own.make_use()) return SIZE_MAX;
  PackedWeights* kept = map(*own.folder_, own.key_);
  if (kept == nullptr) return SIZE_MAX;
  own.has_key_ = false;
  own.hit_ = kept->bytes;
  return own.add(kept);
}

void* Weights::reserve(void* self, size_t size) {
  auto& own = *static_cast<Weights*>(self);
  std::free(own.pending_);
  own.pending_ = nullptr;
  own.hit_ = nullptr;
  if (!own.make_use()) return nullptr;
  void* memory = nullptr;
  if (size > SIZE_MAX / 2 ||
      posix_memalign(&memory, alignof(PackedWeights), sizeof(PackedWeights) + size) != 0) {
    return nullptr;
  }
  if (own.has_key_) use_large_pages(memory, sizeof(PackedWeights) + size);
  fault_in(memory, sizeof(PackedWeights) + size);
  own.pending_ = static_cast<PackedWeights*>(memory);
  *own.pending_ = {nullptr,
                   {0, 0},
                   size,
                   0,
                   static_cast<char*>(memory) + sizeof(PackedWeights),
                   {nullptr, 0, nullptr, 0}};
  return own.pending_->bytes;
}

/// Maps the file that it makes of `fresh`, which is freed then. Null when it cannot.
PackedWeights* Weights::store(PackedWeights* fresh) {
  FileState now;
  if (!file_.read_state(&now) || std::memcmp(&now, &key_.file, sizeof(now)) != 0) return nullptr;
  const Digest name = key_.name();
  if (!folder_->store(name, &key_, sizeof(key_), fresh->bytes, fresh->size, is_mapped)) {
    return nullptr;
  }
  PackedWeights* kept = map(*folder_, key_);
  if (kept != nullptr) std::free(fresh);
  return kept;
}

size_t Weights::insert(void* self, const xnn_weights_cache_look_up_key* asked, void* data, size_t) {
  auto& own = *static_cast<Weights*>(self);
  PackedWeights* fresh = own.pending_;
  if (own.hit_ != nullptr && own.kernel_ == asked->kernel) {
    return reinterpret_cast<size_t>(std::exchange(own.hit_, nullptr));
  }
  if (fresh == nullptr || data != fresh->bytes) return SIZE_MAX;
  own.pending_ = nullptr;
  PackedWeights* kept = own.has_key_ && own.kernel_ == asked->kernel ? own.store(fresh) : nullptr;
  own.has_key_ = false;
  if (kept == nullptr) {
    fresh->name = name_of(fresh->bytes, fresh->size);
    kept = keep(fresh);
    if (kept != fresh) std::free(fresh);
  }
  own.drop_source(asked->kernel);
  return own.add(kept);
}

/// XNNPACK reads weights once, to pack them.
void Weights::drop_source(const void* kernel) {
  for (uint32_t i = 0; i < graph_->num_values; ++i) {
    const Value& value = graph_->values[i];
    if (value.data != kernel || !value.is_constant()) continue;
    const size_t size = size_of_constant(value);
    if (size >= kLeastFile && file_.find(kernel, size)) file_.drop(kernel, size);
    return;
  }
}

}  // namespace etx::xnnpack
