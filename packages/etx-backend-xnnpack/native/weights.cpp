// SPDX-License-Identifier: BSD-3-Clause
#include "weights.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "mutex.h"

namespace etx::xnnpack {

/// In front of the bytes.
struct alignas(64) PackedWeights {
  PackedWeights* next;
  uint64_t hash;
  size_t size;
  size_t users;

  char* bytes() { return reinterpret_cast<char*>(this + 1); }
};

namespace {

constexpr size_t kBuckets = 1024;

Mutex mutex;
PackedWeights* buckets[kBuckets];
WeightsInUse in_use;

uint64_t hash_of(const char* bytes, size_t size) {
  uint64_t hash = size;
  for (size_t i = 0; i + sizeof(uint64_t) <= size; i += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + i, sizeof(word));
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  }
  return hash;
}

/// The kept weights that equal `fresh`, which are kept from now on if there were none.
PackedWeights* keep(PackedWeights* fresh) {
  const Lock lock(mutex);
  PackedWeights** bucket = &buckets[fresh->hash % kBuckets];
  in_use.asked += fresh->size;
  for (PackedWeights* each = *bucket; each != nullptr; each = each->next) {
    const bool is_equal = each->hash == fresh->hash && each->size == fresh->size &&
                          std::memcmp(each->bytes(), fresh->bytes(), fresh->size) == 0;
    if (!is_equal) continue;
    ++each->users;
    return each;
  }
  fresh->users = 1;
  fresh->next = *bucket;
  *bucket = fresh;
  in_use.kept += fresh->size;
  return fresh;
}

void let_go(PackedWeights* weights) {
  const Lock lock(mutex);
  in_use.asked -= weights->size;
  if (--weights->users != 0) return;
  in_use.kept -= weights->size;
  for (PackedWeights** each = &buckets[weights->hash % kBuckets];; each = &(*each)->next) {
    if (*each != weights) continue;
    *each = weights->next;
    break;
  }
  std::free(weights);
}

}  // namespace

Weights::Weights() : provider_{} {
  provider_.context = this;
  provider_.look_up = [](void*, const xnn_weights_cache_look_up_key*) { return SIZE_MAX; };
  provider_.reserve_space = reserve;
  provider_.look_up_or_insert = insert;
  provider_.is_finalized = [](void*) { return true; };
  provider_.offset_to_addr = [](void*, size_t offset) { return reinterpret_cast<void*>(offset); };
  provider_.delete_cache = [](void*) { return xnn_status_success; };
}

void Weights::release() {
  std::free(pending_);
  std::free(pending_use_);
  pending_ = nullptr;
  pending_use_ = nullptr;
  while (uses_ != nullptr) {
    Use* const use = uses_;
    uses_ = use->next;
    let_go(use->weights);
    std::free(use);
  }
}

void* Weights::reserve(void* self, size_t size) {
  auto& own = *static_cast<Weights*>(self);
  std::free(own.pending_);
  own.pending_ = nullptr;
  if (own.pending_use_ == nullptr) own.pending_use_ = static_cast<Use*>(std::malloc(sizeof(Use)));
  if (own.pending_use_ == nullptr) return nullptr;
  void* memory = nullptr;
  if (size > SIZE_MAX / 2 ||
      posix_memalign(&memory, alignof(PackedWeights), sizeof(PackedWeights) + size) != 0) {
    return nullptr;
  }
  own.pending_ = static_cast<PackedWeights*>(memory);
  *own.pending_ = {nullptr, 0, size, 0};
  return own.pending_->bytes();
}

/// What XNNPACK calls the offset is the address.
size_t Weights::insert(void* self, const xnn_weights_cache_look_up_key*, void* data, size_t) {
  auto& own = *static_cast<Weights*>(self);
  PackedWeights* fresh = own.pending_;
  if (fresh == nullptr || data != fresh->bytes()) return SIZE_MAX;
  Use* use = own.pending_use_;
  own.pending_ = nullptr;
  own.pending_use_ = nullptr;
  fresh->hash = hash_of(fresh->bytes(), fresh->size);
  PackedWeights* kept = keep(fresh);
  if (kept != fresh) std::free(fresh);
  *use = {kept, own.uses_};
  own.uses_ = use;
  return reinterpret_cast<size_t>(kept->bytes());
}

WeightsInUse weights_in_use() {
  const Lock lock(mutex);
  return in_use;
}

}  // namespace etx::xnnpack
