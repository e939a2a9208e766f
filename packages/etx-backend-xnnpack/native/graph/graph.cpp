// SPDX-License-Identifier: BSD-3-Clause
#include "graph.h"

#include <cmath>
#include <cstdarg>
#include <cstdio>

namespace etx::xnnpack {
namespace {

constexpr Kind kKinds[] = {
    {"none", Form::Unknown, 0, 0},
#define ETX_NODE(kind, form, operation, flags) {#kind, Form::form, operation, flags},
#include "nodes.def"
#undef ETX_NODE
};

constexpr const char* kTypeNames[] = {"invalid", "fp32",   "fp16",    "qint8",  "quint8",
                                      "qint32",  "qcint8", "qcint32", "qcint4", "qdint8",
                                      "qpint8",  "int32",  "qbint4",  "pfp32",  "bf16"};

}  // namespace

const Kind* find_kind(uint8_t tag) {
  if (tag >= sizeof(kKinds) / sizeof(kKinds[0])) return nullptr;
  return kKinds[tag].form == Form::Unknown ? nullptr : &kKinds[tag];
}

size_t Shape::count() const {
  size_t total = 1;
  for (uint32_t i = 0; i < rank; ++i) total *= sizes[i];
  return total;
}

bool Shape::operator==(const Shape& other) const {
  if (rank != other.rank) return false;
  for (uint32_t i = 0; i < rank; ++i) {
    if (sizes[i] != other.sizes[i]) return false;
  }
  return true;
}

bool has_range(const Node& node) { return node.lowest != -INFINITY || node.highest != INFINITY; }

const char* name_of(xnn_datatype type) {
  const auto index = static_cast<size_t>(type);
  return index < sizeof(kTypeNames) / sizeof(kTypeNames[0]) ? kTypeNames[index] : "invalid";
}

size_t element_size(xnn_datatype type) {
  switch (type) {
    case xnn_datatype_fp16:
    case xnn_datatype_bf16: return 2;
    case xnn_datatype_qint8:
    case xnn_datatype_quint8:
    case xnn_datatype_qcint8:
    case xnn_datatype_qdint8: return 1;
    default: return 4;
  }
}

size_t size_of_constant(const Value& value) {
  if (value.type != xnn_datatype_qcint4 && value.type != xnn_datatype_qbint4) {
    return value.shape.count() * element_size(value.type);
  }
  const size_t row = value.shape.last();
  return row == 0 ? 0 : value.shape.count() / row * ((row + 1) / 2);
}

Error fail_at(const Node& node, Error error, const char* format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  return fail(error, "node %u (%s): %s", node.place, node.kind->name, text);
}

}  // namespace etx::xnnpack
