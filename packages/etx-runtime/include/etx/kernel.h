// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_KERNEL_H_
#define ETX_KERNEL_H_

#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <etx/abi.h>
#include <etx/error.h>
#include <etx/tensor.h>
#include <etx/value.h>

namespace etx {

/// What a kernel may ask of the runtime; lives for one call.
class Context {
 public:
  explicit Context(etx_context* raw, etx_value* const* args = nullptr, size_t num_args = 0)
      : raw_(raw), args_(args), num_args_(num_args) {}

  /// Uninitialised scratch memory until the kernel returns; null when there is not enough, and the
  /// kernel then returns MemoryAllocationFailed.
  void* allocate_temp(size_t size, size_t alignment = 64) {
    return raw_->allocate_temp(raw_, size, alignment);
  }
  template <typename T>
  T* allocate_temp_array(size_t count) {
    if (count > SIZE_MAX / sizeof(T)) return nullptr;
    return static_cast<T*>(allocate_temp(count * sizeof(T), alignof(T) < 64 ? 64 : alignof(T)));
  }

  /// Records why the kernel fails and returns `error`. `reason` must be a literal: what was
  /// expected, in terms of the operator's argument names. The runtime adds operator, instruction
  /// and the arguments' dtypes and shapes.
  Error fail(Error error, const char* reason) {
    return static_cast<Error>(raw_->fail(raw_, static_cast<etx_status>(error), reason));
  }

  /// True once somebody has cancelled the execution. For kernels that take long: return
  /// Error::Cancelled soon after; outputs need not be complete then. From any thread.
  bool is_cancelled() const { return raw_->is_cancelled(raw_); }

  /// True in the call that only checks the arguments, of a kernel with kChecksAtLoad.
  bool is_loading() const { return raw_->is_loading; }
  /// False while a method is loaded and the tensor's elements, or sizes, may still change.
  bool has_data(const Tensor& tensor) const { return !is_loading() || tensor.is_constant(); }
  bool has_sizes(const Tensor& tensor) const {
    return !is_loading() || tensor.shape_dynamism() == TensorShapeDynamism::Static;
  }

  uint32_t num_threads() const { return raw_->num_threads; }

  /// Begins a draw of random numbers: the method's seed, and how many draws were before. Not within
  /// a body.
  etx_random next_draw() {
    etx_random* const random = raw_->random;
    return {random->seed, random->draws++};
  }

  /// Calls `body(begin, end)` over disjoint ranges covering [begin, end), on several threads where
  /// there is a thread pool and more than `grain` items. `body` must not fail or throw.
  template <typename Body>
  void parallel_for(int64_t begin, int64_t end, int64_t grain, const Body& body) {
    if (end <= begin) return;
    const uint64_t count = static_cast<uint64_t>(end) - static_cast<uint64_t>(begin);
    const bool is_small = grain > 0 && count <= static_cast<uint64_t>(grain);
    if (raw_->num_threads <= 1 || raw_->parallel_for == nullptr || is_small) {
      body(begin, end);
      return;
    }
    raw_->parallel_for(
        raw_, begin, end, grain,
        [](void* user, int64_t b, int64_t e) { (*static_cast<const Body*>(user))(b, e); },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

  /// True when more than one argument, or item of an argument, is this very tensor: to resize it
  /// changes the sizes of an input too.
  bool is_shared(const Tensor& tensor) const {
    size_t uses = 0;
    for (size_t i = 0; i < num_args_; ++i) uses += count_uses(*args_[i], tensor.impl());
    return uses > 1;
  }

  etx_context* raw() const { return raw_; }

 private:
  static size_t count_uses(const etx_value& value, const etx_tensor* tensor) {
    if (value.tag == ETX_TAG_TENSOR) return value.payload.as_tensor == tensor ? 1 : 0;
    if (value.tag != ETX_TAG_LIST_TENSOR && value.tag != ETX_TAG_LIST_OPTIONAL_TENSOR) return 0;
    size_t uses = 0;
    for (uint32_t i = 0; i < value.count; ++i) {
      const etx_value* const item = value.payload.as_tensor_list[i];
      uses += item != nullptr && item->tag == ETX_TAG_TENSOR && item->payload.as_tensor == tensor;
    }
    return uses;
  }

  etx_context* raw_;
  etx_value* const* args_;
  size_t num_args_;
};

/// How one C++ parameter type is read from a value slot, and its letter in the signature.
template <typename T>
struct Unbox;

#define ETX_UNBOX(type, letter, expression)       \
  template <>                                     \
  struct Unbox<type> {                            \
    static constexpr char kLetter = letter;       \
    static constexpr bool kOptional = false;      \
    static type get(etx_value* raw) {             \
      EValue& value = *static_cast<EValue*>(raw); \
      return expression;                          \
    }                                             \
  };
ETX_UNBOX(Tensor, 'T', value.to_tensor())
ETX_UNBOX(int64_t, 'i', value.to_int())
ETX_UNBOX(double, 'd', value.to_double())
ETX_UNBOX(bool, 'b', value.to_bool())
ETX_UNBOX(Scalar, 's', value.to_scalar())
ETX_UNBOX(ScalarType, 'i', static_cast<ScalarType>(value.to_int()))
ETX_UNBOX(std::string_view, 'c', value.to_string_view())
ETX_UNBOX(IntList, 'I', value.to_int_list())
ETX_UNBOX(DoubleList, 'D', value.to_double_list())
ETX_UNBOX(BoolList, 'B', value.to_bool_list())
ETX_UNBOX(TensorList, 'L', value.to_tensor_list())
ETX_UNBOX(OptionalTensorList, 'O', value.to_optional_tensor_list())
#undef ETX_UNBOX

template <>
struct Unbox<EValue&> {
  static constexpr char kLetter = 'v';
  static constexpr bool kOptional = false;
  static EValue& get(etx_value* raw) { return *static_cast<EValue*>(raw); }
};

template <typename T>
struct Unbox<std::optional<T>> {
  static constexpr char kLetter = Unbox<T>::kLetter;
  static constexpr bool kOptional = true;
  static std::optional<T> get(etx_value* raw) {
    if (raw->tag == ETX_TAG_NONE) return std::nullopt;
    return Unbox<T>::get(raw);
  }
};

namespace detail {
template <typename T>
using UnboxAs = Unbox<std::conditional_t<std::is_same_v<T, EValue&>, EValue&,
                                         std::remove_cv_t<std::remove_reference_t<T>>>>;

/// A tensor that the kernel writes: a parameter `Tensor&`.
template <typename T>
constexpr bool kIsWritten = std::is_same_v<T, Tensor&> || std::is_same_v<T, std::optional<Tensor>&>;

/// Parameters are passed as the unboxed object itself, so that `Tensor&` binds to it.
template <typename T>
struct Slot {
  decltype(UnboxAs<T>::get(nullptr)) value;
};
}  // namespace detail

/// Makes an `etx_kernel_fn` and its signature of a function
/// `Error kernel(Context&, arguments…, outputs…)` with typed parameters: `const Tensor&`,
/// `Tensor&`, `int64_t`, `double`, `bool`, `Scalar`, `ScalarType`, `IntList`, `DoubleList`,
/// `BoolList`, `TensorList`, `OptionalTensorList`, `std::string_view`, `EValue&`, and
/// `std::optional` of these.
template <auto fn>
struct Boxed;

template <typename... Args, Error (*fn)(Context&, Args...)>
struct Boxed<fn> {
  static etx_status run(etx_context* raw, etx_value* const* args) {
    return call(raw, args, std::index_sequence_for<Args...>{});
  }

  static constexpr size_t kLength =
      (size_t{0} + ... +
       (1u + (detail::kIsWritten<Args> ? 1u : 0u) + (detail::UnboxAs<Args>::kOptional ? 1u : 0u)));
  struct Text {
    char text[kLength + 1];
  };
  static constexpr Text make_signature() {
    Text s{};
    size_t n = 0;
    ((s.text[n++] = detail::UnboxAs<Args>::kLetter,
      (detail::kIsWritten<Args> ? void(s.text[n++] = '!') : void()),
      (detail::UnboxAs<Args>::kOptional ? void(s.text[n++] = '?') : void())),
     ...);
    s.text[n] = '\0';
    return s;
  }
  static constexpr Text kSignature = make_signature();

 private:
  template <size_t... I>
  static etx_status call(etx_context* raw, [[maybe_unused]] etx_value* const* args,
                         std::index_sequence<I...>) {
    Context context(raw, args, sizeof...(Args));
    std::tuple<detail::Slot<Args>...> slots{
        detail::Slot<Args>{detail::UnboxAs<Args>::get(args[I])}...};
    return static_cast<etx_status>(fn(context, std::get<I>(slots).value...));
  }
};

/// Bit of `type` in `etx_kernel::dtypes`.
constexpr uint64_t dtype_bit(ScalarType type) { return uint64_t{1} << static_cast<int>(type); }

/// With the dtypes of a row: the result may be written over an argument of its dtype, sizes and
/// layout, since the kernel reads an element of any such argument before it writes that element.
constexpr uint64_t kInPlace = uint64_t{1} << 63;

/// With the dtypes of a row: the kernel checks constant arguments while a method is loaded, and
/// returns before it computes where `Context::is_loading()` is true (bit 62 of
/// `etx_kernel::dtypes`).
constexpr uint64_t kChecksAtLoad = uint64_t{1} << 62;

/// A special row, beside a general one of its name and signature: it is taken where all tensors of
/// the call have one of its dtypes, are contiguous, are channels last (bits 61 to 59 of
/// `etx_kernel::dtypes`). The row with the most of these wins.
constexpr uint64_t kOnlyDtypes = uint64_t{1} << 61;
constexpr uint64_t kOnlyContiguous = uint64_t{1} << 60;
constexpr uint64_t kOnlyChannelsLast = uint64_t{1} << 59;
constexpr uint64_t kSpecial = kOnlyDtypes | kOnlyContiguous | kOnlyChannelsLast;

}  // namespace etx

/// A row of a kernel table: `ETX_KERNEL("aten::relu.out", relu_out)`; a third argument states the
/// dtypes (`etx_kernel::dtypes`): `RealBool::bits | kInPlace`.
#define ETX_KERNEL(name, ...) ETX_KERNEL_(name, __VA_ARGS__, 0, 0)
#define ETX_KERNEL_(name, fn, dtypes, ...) \
  etx_kernel { name, ::etx::Boxed<&fn>::run, ::etx::Boxed<&fn>::kSignature.text, dtypes }

/// Defines the table of a family from its array of rows: `ETX_KERNEL_TABLE(matmul_kernels, kRows);`
/// It is found by `extern const etx_kernel_table matmul_kernels;` in namespace of the definition.
#define ETX_KERNEL_TABLE(name, rows)  \
  extern const etx_kernel_table name; \
  const etx_kernel_table name = {rows, sizeof(rows) / sizeof((rows)[0])}

/// In a kernel with `Context& context`: fails with `error` and the literal `reason` unless
/// `condition`.
#define ETX_CHECK(context, condition, error, reason)                      \
  do {                                                                    \
    if (!(condition)) return (context).fail(::etx::Error::error, reason); \
  } while (false)

#endif  // ETX_KERNEL_H_
