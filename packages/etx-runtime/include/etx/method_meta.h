// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_METHOD_META_H_
#define ETX_METHOD_META_H_

#include <cstddef>
#include <cstdint>

#include <etx/dtype.h>
#include <etx/result.h>
#include <etx/span.h>
#include <etx/tensor.h>
#include <etx/value.h>

namespace etx {

/// What the file says of a tensor. A view: lives as long as its Program.
class TensorInfo {
 public:
  /// Sizes; upper bounds where the shape is dynamic.
  Span<const int32_t> sizes() const { return sizes_; }
  Span<const uint8_t> dim_order() const { return dim_order_; }
  ScalarType scalar_type() const { return scalar_type_; }
  TensorShapeDynamism shape_dynamism() const { return dynamism_; }
  /// True when it lies in a planned arena: its bytes are copied in or out.
  bool is_memory_planned() const { return is_planned_; }
  /// Bytes at the upper bounds.
  size_t nbytes() const { return nbytes_; }
  /// Fully qualified name of a buffer or parameter, else empty.
  std::string_view name() const { return name_; }

 private:
  friend class MethodMeta;
  friend class Method;
  explicit TensorInfo(const void* tensor);

  Span<const int32_t> sizes_;
  Span<const uint8_t> dim_order_;
  std::string_view name_;
  size_t nbytes_;
  ScalarType scalar_type_;
  TensorShapeDynamism dynamism_;
  bool is_planned_;
};

/// What the file says of a method; needs no kernels and no memory. A view: lives as long as its
/// Program.
class MethodMeta {
 public:
  const char* name() const;

  size_t num_inputs() const;
  /// Errors: InvalidArgument when there is no input `index`.
  Result<Tag> input_tag(size_t index) const;
  /// Errors: InvalidArgument when there is no input `index` or it is not a tensor.
  Result<TensorInfo> input_tensor_meta(size_t index) const;

  size_t num_outputs() const;
  Result<Tag> output_tag(size_t index) const;
  Result<TensorInfo> output_tensor_meta(size_t index) const;

  /// Named tensors that live in planned memory: the module's mutable buffers.
  size_t num_attributes() const;
  Result<TensorInfo> attribute_tensor_meta(size_t index) const;

  /// Tensors whose bytes lie outside of the program, in a `.ptd` file.
  size_t num_external_tensors() const;
  Result<TensorInfo> external_tensor_meta(size_t index) const;

  size_t num_memory_planned_buffers() const;
  /// Bytes of planned arena `index`. Errors: InvalidArgument.
  Result<size_t> memory_planned_buffer_size(size_t index) const;

  size_t num_backends() const;
  /// Errors: InvalidArgument.
  Result<const char*> get_backend_name(size_t index) const;
  bool uses_backend(const char* backend_name) const;

  size_t num_operators() const;
  /// Name and overload of operator `index`; overload is never null. Errors: InvalidArgument.
  struct OperatorName {
    const char* name;
    const char* overload;
  };
  Result<OperatorName> operator_name(size_t index) const;

  size_t num_instructions() const;

  /// Pytree specs of (args, kwargs) and of the outputs, as JSON; null when absent.
  const char* input_spec() const;
  const char* output_spec() const;

  /// Bytes that loading the method takes from the method allocator, wherever its memory begins:
  /// at most 16 more than are used. What backends take for themselves is not counted. The planned
  /// arenas come beside it, see memory_planned_buffer_size.
  size_t required_bytes() const;

 private:
  friend class Program;
  friend class Method;
  friend class LoadedMethod;
  explicit MethodMeta(const void* plan) : plan_(plan) {}
  Result<TensorInfo> tensor_info(int32_t value) const;

  const void* plan_;
};

}  // namespace etx

#endif  // ETX_METHOD_META_H_
