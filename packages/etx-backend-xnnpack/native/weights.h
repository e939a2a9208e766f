// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_XNNPACK_WEIGHTS_H_
#define ETX_XNNPACK_WEIGHTS_H_

#include <cstddef>

#include <xnnpack.h>

namespace etx::xnnpack {

struct PackedWeights;

/// The packed weights of a delegate. Equal bytes are kept once in the process, as long as a
/// delegate uses them: what is in the cache is bounded by what is loaded.
///
/// XNNPACK asks with pointers that a file chose; here only the packed bytes decide what is equal,
/// which hold scales and biases as well.
class Weights {
 public:
  Weights();
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;
  /// After what was created with the cache.
  ~Weights() { release(); }

  /// For xnn_create_runtime_v4.
  xnn_weights_cache_t cache() { return &provider_; }

  /// Lets go of all; nothing that was created with the cache may be used any more.
  void release();

 private:
  struct Use {
    PackedWeights* weights;
    Use* next;
  };

  static void* reserve(void* self, size_t size);
  static size_t insert(void* self, const xnn_weights_cache_look_up_key* key, void* data,
                       size_t size);

  xnn_weights_cache_provider provider_;
  PackedWeights* pending_ = nullptr;  ///< Being written.
  Use* pending_use_ = nullptr;
  Use* uses_ = nullptr;
};

/// Bytes of packed weights in this process, and how many there would be without sharing.
struct WeightsInUse {
  size_t kept;
  size_t asked;
};
WeightsInUse weights_in_use();

}  // namespace etx::xnnpack

#endif  // ETX_XNNPACK_WEIGHTS_H_
