// SPDX-License-Identifier: BSD-3-Clause
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "../hosted/describe.h"
#include "convert.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace etx {
namespace python {
namespace {

nb::tuple sizes_of(const TensorInfo& info) {
  nb::list sizes;
  for (const int32_t size : info.sizes()) sizes.append(size);
  return nb::tuple(sizes);
}

std::optional<std::string> text_or_none(const char* text) {
  if (text == nullptr) return std::nullopt;
  return clean(text);
}

std::string describe_info(const TensorInfo& info) {
  std::string text;
  const bool bounds = info.shape_dynamism() != TensorShapeDynamism::Static;
  if (!info.name().empty()) text = clean(std::string(info.name())) + ": ";
  return text + describe_tensor(info.scalar_type(), info.sizes(), bounds);
}

/// `forward(float32[2, 16]) -> (float32[2, 4])`.
std::string describe_method(const MethodMeta& meta) {
  static constexpr const char* kKinds[] = {"None", "tensor", "str", "float", "int", "bool"};
  std::string text = clean(meta.name());
  for (const bool is_input : {true, false}) {
    const size_t count = is_input ? meta.num_inputs() : meta.num_outputs();
    text += is_input ? "(" : ") -> (";
    for (size_t i = 0; i < count; ++i) {
      if (i != 0) text += ", ";
      const auto info = is_input ? meta.input_tensor_meta(i) : meta.output_tensor_meta(i);
      const auto tag = is_input ? meta.input_tag(i) : meta.output_tag(i);
      const size_t kind = tag.ok() ? static_cast<size_t>(*tag) : 0;
      text += info.ok() ? describe_info(*info) : kind < 6 ? kKinds[kind] : "list";
    }
  }
  return text + ")";
}

void bind_tensor_info(nb::module_& m) {
  nb::class_<TensorInfo>(m, "TensorInfo", "What the file says of a tensor.")
      .def("sizes", sizes_of, nb::sig("def sizes(self) -> tuple[int, ...]"),
           "Sizes; upper bounds where the shape is dynamic.")
      .def(
          "dtype", [](const TensorInfo& t) { return static_cast<int>(t.scalar_type()); },
          "ATen's number of the element type.")
      .def(
          "dtype_name", [](const TensorInfo& t) { return to_string(t.scalar_type()); },
          "NumPy's name of the element type.")
      .def(
          "is_dynamic",
          [](const TensorInfo& t) { return t.shape_dynamism() != TensorShapeDynamism::Static; },
          "True when the sizes are upper bounds.")
      .def("is_memory_planned", &TensorInfo::is_memory_planned)
      .def("nbytes", &TensorInfo::nbytes, "Bytes at the upper bounds.")
      .def(
          "name", [](const TensorInfo& t) { return clean(std::string(t.name())); },
          "Fully qualified name of a buffer, else empty.")
      .def("__repr__", [](const TensorInfo& t) { return "TensorInfo(" + describe_info(t) + ")"; });
}

}  // namespace

void bind_metadata(nb::module_& m) {
  bind_tensor_info(m);
  const char* const no_tensor = "there is no such tensor";
  nb::class_<MethodMeta>(m, "MethodMeta", "What the file says of a method.")
      .def("name", [](const MethodMeta& meta) { return clean(meta.name()); })
      .def("__repr__",
           [](const MethodMeta& meta) { return "MethodMeta(" + describe_method(meta) + ")"; })
      .def("num_inputs", &MethodMeta::num_inputs)
      .def("num_outputs", &MethodMeta::num_outputs)
      .def("num_attributes", &MethodMeta::num_attributes)
      .def("num_external_tensors", &MethodMeta::num_external_tensors)
      .def("num_instructions", &MethodMeta::num_instructions)
      .def("required_bytes", &MethodMeta::required_bytes,
           "Bytes a load takes besides the planned arenas.")
      .def("input_spec", [](const MethodMeta& meta) { return text_or_none(meta.input_spec()); })
      .def("output_spec", [](const MethodMeta& meta) { return text_or_none(meta.output_spec()); })
      .def("input_tag",
           [](const MethodMeta& meta, size_t i) {
             return static_cast<int>(value_of(meta.input_tag(i), "there is no such input"));
           })
      .def("output_tag",
           [](const MethodMeta& meta, size_t i) {
             return static_cast<int>(value_of(meta.output_tag(i), "there is no such output"));
           })
      .def(
          "input_tensor_meta",
          [no_tensor](const MethodMeta& meta, size_t index) {
            return value_of(meta.input_tensor_meta(index), no_tensor);
          },
          "index"_a, nb::keep_alive<0, 1>())
      .def(
          "output_tensor_meta",
          [no_tensor](const MethodMeta& meta, size_t index) {
            return value_of(meta.output_tensor_meta(index), no_tensor);
          },
          "index"_a, nb::keep_alive<0, 1>())
      .def(
          "attribute_tensor_meta",
          [no_tensor](const MethodMeta& meta, size_t index) {
            return value_of(meta.attribute_tensor_meta(index), no_tensor);
          },
          "index"_a, nb::keep_alive<0, 1>())
      .def(
          "external_tensor_meta",
          [no_tensor](const MethodMeta& meta, size_t index) {
            return value_of(meta.external_tensor_meta(index), no_tensor);
          },
          "index"_a, nb::keep_alive<0, 1>())
      .def("memory_planned_buffer_sizes",
           [](const MethodMeta& meta) {
             std::vector<size_t> sizes;
             for (size_t i = 0; i < meta.num_memory_planned_buffers(); ++i) {
               sizes.push_back(*meta.memory_planned_buffer_size(i));
             }
             return sizes;
           })
      .def("operator_names",
           [](const MethodMeta& meta) {
             std::vector<std::string> names;
             for (size_t i = 0; i < meta.num_operators(); ++i) {
               const MethodMeta::OperatorName op = *meta.operator_name(i);
               names.push_back(
                   clean(std::string(op.name) + (*op.overload ? "." : "") + op.overload));
             }
             return names;
           })
      .def("backend_names", [](const MethodMeta& meta) {
        std::vector<std::string> names;
        for (size_t i = 0; i < meta.num_backends(); ++i) {
          names.push_back(clean(*meta.get_backend_name(i)));
        }
        return names;
      });
}

}  // namespace python
}  // namespace etx
