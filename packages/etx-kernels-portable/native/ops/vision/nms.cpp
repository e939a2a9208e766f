// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/dispatch.h"
#include "core/min_max.h"
#include "core/operand.h"
#include "core/scratch.h"
#include "core/shape.h"
#include "ops/index/sort_rows.h"

namespace etx::portable {
namespace {

/// Boxes as rows (left, top, right, bottom).
template <typename T>
struct Boxes {
  const T* corners;

  T area(int64_t i) const {
    const T* const box = corners + 4 * i;
    return (box[2] - box[0]) * (box[3] - box[1]);
  }
  /// What two boxes share, as a part of what they cover; NaN where they cover nothing.
  T overlap(int64_t i, int64_t j) const {
    const T *const a = corners + 4 * i, *const b = corners + 4 * j;
    const T width = max(T(0), min(a[2], b[2]) - max(a[0], b[0]));
    const T height = max(T(0), min(a[3], b[3]) - max(a[1], b[1]));
    const T shared = width * height;
    return shared / (area(i) + area(j) - shared);
  }
};

/// Moves the items that stay to the front, in their order; returns how many. A box goes when it
/// overlaps by more than `threshold` with one before it that stays. One without an area, as those
/// that fill up a fixed number of detections, shares 0 with one that has an area, and NaN with any
/// other: it is not compared, nor is one whose area is NaN. Keys of sorted items are of no more
/// use, and become the indices of the boxes to compare with.
template <typename T>
int64_t suppress(Boxes<T> boxes, double threshold, Item* items, int64_t count) {
  int64_t kept = 0, sized = 0;
  bool any_flat = false;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t box = items[i].index;
    const T area = boxes.area(box);
    const bool is_flat = area == 0, is_sized = area < 0 || area > 0;
    bool stays = !(threshold < 0 && ((is_flat && sized > 0) || (is_sized && any_flat)));
    for (int64_t k = 0; k < sized && stays && is_sized; ++k) {
      const T overlap = boxes.overlap(static_cast<int64_t>(items[k].key), box);
      stays = !(static_cast<double>(overlap) > threshold);
    }
    if (!stays) continue;
    items[kept++].index = box;
    items[sized].key = static_cast<decltype(Item::key)>(box);
    sized += is_sized;
    any_flat |= is_flat;
  }
  return kept;
}

/// out = the rows of dets that stay, by falling scores.
Error nms_out(Context& context, const Tensor& dets, const Tensor& scores, double iou_threshold,
              Tensor& out) {
  ETX_CHECK(context, dets.dim() == 2 && dets.size(1) == 4, InvalidArgument,
            "dets must be (N, 4): left, top, right, bottom");
  ETX_CHECK(context, scores.dim() == 1 && scores.size(0) == dets.size(0), InvalidArgument,
            "scores must have an element for each of dets");
  ETX_CHECK(context, dets.scalar_type() == scores.scalar_type(), InvalidArgument,
            "dets and scores must have the same dtype");
  ETX_CHECK(context, out.scalar_type() == ScalarType::Long, InvalidArgument, "out must be int64");
  const int64_t count = dets.size(0);
  ETX_ASSIGN(Item* const items,
             scratch<Item>(context, count, "no temporary memory to sort the scores"));
  const ScalarType type = wide(dets.scalar_type());
  int64_t kept = 0;
  const Error found = dispatch(context, Join<Float32, Float64>{}, type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *corners, *score;
    ETX_TRY(read_operand(context, dets, type, corners));
    ETX_TRY(read_operand(context, scores, type, score));
    for (int64_t i = 0; i < count; ++i) items[i] = {~key_of(score[i]), i};
    sort_items(items, count);
    kept = suppress(Boxes<T>{corners}, iou_threshold, items, count);
    return Error::Ok;
  });
  if (found != Error::Ok) return found;
  Shape shape;
  shape.push(kept);
  ETX_TRY(resize_out(context, out, shape));
  for (int64_t i = 0; i < kept; ++i) out.mutable_data_ptr<int64_t>()[i] = items[i].index;
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("torchvision::nms.out", nms_out, Floating::bits | Int64::bits),
};

}  // namespace

ETX_KERNEL_TABLE(nms_kernels, kRows);

}  // namespace etx::portable
