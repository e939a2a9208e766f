// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_XNNPACK_WEIGHTS_H_
#define ETX_XNNPACK_WEIGHTS_H_

#include <cstddef>

#include <xnnpack.h>

#include "cache/folder.h"
#include "cache/key.h"
#include "cache/mapped_file.h"

namespace etx::xnnpack {

struct PackedWeights;

/// The packed weights of a delegate. Equal bytes are kept once in the process, as long as a
/// delegate uses them: what is in the cache is bounded by what is loaded.
///
/// XNNPACK asks with pointers that a file chose; without a folder only the packed bytes decide what
/// is equal, which hold scales and biases as well. With a folder, weights of at least kLeastFile
/// bytes are mapped from its files, found by what WeightKey says.
///
/// Weights that were packed and lie in a mapped file leave memory: they are not held twice.
class Weights {
 public:
  static constexpr size_t kLeastFile = size_t{64} << 10;

  Weights();
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;
  /// After what was created with the cache.
  ~Weights() { release(); }

  /// `folder` may be null. Both outlive this object.
  void use(const Graph* graph, const WeightFolder* folder);

  /// For xnn_create_runtime_v4.
  xnn_weights_cache_t cache() { return &provider_; }

  /// Lets go of all; nothing that was created with the cache may be used any more.
  void release();

 private:
  struct Use {
    PackedWeights* weights;
    Use* next;
  };

  static size_t look_up(void* self, const xnn_weights_cache_look_up_key* key);
  static void* reserve(void* self, size_t size);
  static size_t insert(void* self, const xnn_weights_cache_look_up_key* key, void* data,
                       size_t size);
  bool make_use();
  size_t add(PackedWeights* kept);
  bool make_key(const xnn_weights_cache_look_up_key& asked);
  PackedWeights* store(PackedWeights* fresh);
  void drop_source(const void* kernel);

  xnn_weights_cache_provider provider_;
  const Graph* graph_ = nullptr;
  const WeightFolder* folder_ = nullptr;
  MappedFile file_;
  WeightKey key_;  ///< Of what XNNPACK packs next, where `has_key_`.
  bool has_key_ = false;
  const void* kernel_ = nullptr;  ///< Which XNNPACK looked up last.
  char* hit_ = nullptr;           ///< What was found then: convolutions insert it once more.
  bool has_complained_ = false;
  PackedWeights* pending_ = nullptr;  ///< Being written.
  Use* pending_use_ = nullptr;
  Use* uses_ = nullptr;
};

}  // namespace etx::xnnpack

#endif  // ETX_XNNPACK_WEIGHTS_H_
