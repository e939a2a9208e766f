// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_XNNPACK_CACHE_KEY_H_
#define ETX_XNNPACK_CACHE_KEY_H_

#include "../graph/graph.h"
#include "digest.h"
#include "mapped_file.h"

namespace etx::xnnpack {

/// All that the packed weights of a node depend on, as bytes to compare: the state of the file that
/// holds the filter and where in it, bias and scales, types and windows, what XNNPACK was built of
/// and which microkernels it chooses on this processor.
struct WeightKey {
  FileState file;
  uint64_t offset;
  char build[32];
  uint64_t hardware[2];  ///< Digest of XNNPACK's description of this processor.
  uint64_t seed;         ///< XNNPACK's: it depends on the tiles of the microkernel.
  uint64_t form, operation, kind_flags, flags;
  Window window;
  uint64_t types[4];  ///< Of input, filter, bias, output.
  uint64_t rank, sizes[kMaxRank];
  uint64_t channel_dim, group_size;
  double scales[4];
  int64_t zero_points[4];
  Digest bias, filter_scales, bias_scales;

  Digest name() const { return digest_of(this, sizeof(*this)); }
};

/// The node of `graph` that packs `kernel` and `bias`, which XNNPACK leaves out where rows are
/// quantized at run time; null where none does, or where two do it in ways that differ.
const Node* find_packing_node(const Graph& graph, const void* kernel, const void* bias);

/// Sets `key`; file and offset are zeros.
void describe(const Graph& graph, const Node& node, uint32_t seed, WeightKey* key);

}  // namespace etx::xnnpack

#endif  // ETX_XNNPACK_CACHE_KEY_H_
