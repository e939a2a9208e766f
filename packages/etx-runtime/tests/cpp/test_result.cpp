// SPDX-License-Identifier: BSD-3-Clause
#include <etx/loader.h>
#include <etx/result.h>
#include <etx/span.h>
#include <etx/tensor.h>

#include <memory>

#include "check.h"

namespace {

etx::Result<std::unique_ptr<int>> make(bool ok) {
  if (!ok) return etx::Error::NotFound;
  return std::make_unique<int>(7);
}

etx::Error use(bool ok, int* value) {
  ETX_ASSIGN(const std::unique_ptr<int> made, make(ok));
  *value = *made;
  return etx::Error::Ok;
}

void results() {
  int value = 0;
  CHECK(use(true, &value) == etx::Error::Ok && value == 7);
  CHECK(use(false, &value) == etx::Error::NotFound);
  const etx::Result<int> never(etx::Error::Ok);
  CHECK(never.error() == etx::Error::Internal);
}

void spans() {
  int numbers[] = {1, 2, 3};
  const etx::Span<int> span(numbers);
  const etx::Span<const int> view = span;
  CHECK(view.size() == 3 && view.back() == 3 && view.subspan(1, 2)[0] == 2);
  CHECK(etx::equal(view, span) && !etx::equal(view, view.subspan(0, 2)));
}

void buffers() {
  int freed = 0;
  {
    etx::FreeableBuffer first(
        "x", 1, [](void* count, void*, size_t) { ++*static_cast<int*>(count); }, &freed);
    etx::FreeableBuffer second(std::move(first));
    CHECK(freed == 0 && second.size() == 1);
    second = etx::FreeableBuffer();
    CHECK(freed == 1);
  }
  CHECK(freed == 1);
}

void resizes() {
  int32_t sizes[] = {4, 6};
  int32_t strides[] = {6, 1};
  const uint8_t order[] = {0, 1};
  etx_tensor raw = {};
  raw.sizes = sizes;
  raw.strides = strides;
  raw.dim_order = order;
  raw.numel = raw.capacity = 24;
  raw.dtype = 6;
  raw.rank = 2;
  raw.dynamism = 1;
  const etx::Tensor tensor(&raw);
  CHECK(tensor.resize({8, 3}) == etx::Error::Ok && tensor.stride(0) == 3 && tensor.numel() == 24);
  CHECK(tensor.resize({5, 5}) == etx::Error::NotSupported);
  CHECK(tensor.resize({-1, 3}) == etx::Error::NotSupported);
  CHECK(tensor.resize({24}) == etx::Error::NotSupported);
  CHECK(tensor.resize({INT32_MAX, INT32_MAX}) == etx::Error::NotSupported);
  CHECK(tensor.resize({0, INT32_MAX}) == etx::Error::Ok && tensor.numel() == 0);
  raw.dynamism = 0;
  CHECK(tensor.resize({1, 1}) == etx::Error::NotSupported);
  CHECK(tensor.resize({0, INT32_MAX}) == etx::Error::Ok);
}

}  // namespace

int main() {
  results();
  spans();
  buffers();
  resizes();
  return 0;
}
