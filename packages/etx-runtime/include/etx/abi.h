/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ETX_ABI_H_
#define ETX_ABI_H_

/// The binary interface between the runtime and plugins (kernel libraries and backends).
///
/// Plain C structs and function pointers only, so that nothing has to link across shared libraries.
/// Structs that may grow begin with their size; later additions are appended and never reordered.
/// No member is null unless its text says so. C++ uses tensor.h, value.h, kernel.h and plugin.h.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Raised when existing members change; a plugin of another major version is refused.
#if UINTPTR_MAX > UINT32_MAX
#define ETX_ABI_MAJOR 1
#else
#define ETX_ABI_MAJOR 2
#endif
/// Raised when members are appended; a plugin of a newer minor version is refused.
#define ETX_ABI_MINOR 6

#ifdef __cplusplus
extern "C" {
#endif

/// An `etx::Error`, 0 is success.
typedef uint32_t etx_status;

/// A strided tensor whose strides follow from sizes and dim order.
typedef struct etx_tensor {
  void* data;                ///< First element; null until memory is bound.
  int32_t* sizes;            ///< `rank` current sizes; read-only memory when static.
  int32_t* strides;          ///< `rank` current strides, in elements.
  const uint8_t* dim_order;  ///< `rank` dimensions, outermost to innermost.
  intptr_t numel;            ///< Product of the current sizes.
  intptr_t capacity;         ///< Most elements a resize may ask for.
  int8_t dtype;              ///< An `etx::ScalarType`.
  uint8_t rank;              ///< At most ETX_MAX_RANK.
  uint8_t dynamism;          ///< An `etx::TensorShapeDynamism`.
  uint8_t flags;             ///< ETX_TENSOR_* bits.
#if UINTPTR_MAX > UINT32_MAX
  uint32_t reserved;
#endif
} etx_tensor;

#define ETX_MAX_RANK 16
/// The bytes belong to the program and must not be written.
#define ETX_TENSOR_CONSTANT 1

/// What a value slot holds; the numbers are those of the program format's error reports.
enum etx_tag {
  ETX_TAG_NONE = 0,
  ETX_TAG_TENSOR = 1,
  ETX_TAG_STRING = 2,
  ETX_TAG_DOUBLE = 3,
  ETX_TAG_INT = 4,
  ETX_TAG_BOOL = 5,
  ETX_TAG_LIST_BOOL = 6,
  ETX_TAG_LIST_DOUBLE = 7,
  ETX_TAG_LIST_INT = 8,
  ETX_TAG_LIST_TENSOR = 9,
  ETX_TAG_LIST_SCALAR = 10,
  ETX_TAG_LIST_OPTIONAL_TENSOR = 11
};

struct etx_kernel;
struct etx_value;

/// A list of integers. `boxed` is null when all items are constant; otherwise they are copied from
/// these slots into `items` at each use.
typedef struct etx_int_list {
  int64_t* items;
  const struct etx_value* const* boxed;
} etx_int_list;

/// A slot of a method's register file.
typedef struct etx_value {
  union {
    int64_t as_int;
    double as_double;
    bool as_bool;
    etx_tensor* as_tensor;
    const char* as_string;         ///< `count` bytes, then a zero.
    etx_int_list* as_int_list;     ///< `count` items.
    const double* as_double_list;  ///< `count` items.
    const bool* as_bool_list;      ///< `count` items.
    const struct etx_value* const*
        as_tensor_list;  ///< `count` slots, each a tensor or (optional) none.
  } payload;
  uint32_t tag;    ///< An `etx_tag`.
  uint32_t count;  ///< Items of a list, bytes of a string.
} etx_value;

/// Where a method's random numbers are. A kernel that draws some takes both members and adds 1 to
/// `draws`; with an index of its own for each number they are all that a counter-based generator
/// needs, so that order and threads do not matter.
typedef struct etx_random {
  uint64_t seed;
  uint64_t draws;  ///< Since the method was loaded or seeded.
} etx_random;

/// What a delegate tells of itself while it executes; copied before the call returns.
typedef struct etx_delegate_event {
  /// What ran, or null where `id` says it: a number that the compiler noted for the delegate.
  const char* name;
  int32_t id;
  /// From and to, in ticks of etx_context::ticks. Both 0: only `value` is told.
  uint64_t start;
  uint64_t end;
  /// Anything that whoever reads the recording understands; may be null.
  const void* metadata;
  size_t metadata_size;
  /// A result, or null.
  const etx_value* value;
} etx_delegate_event;

/// What a kernel or backend may ask of the runtime while it executes.
typedef struct etx_context {
  uint32_t struct_size;
  /// Threads that `parallel_for` may use; 1 where there is no thread pool.
  uint32_t num_threads;
  /// Scratch memory, freed when the kernel returns. Null when there is not enough.
  void* (*allocate_temp)(struct etx_context* self, size_t size, size_t alignment);
  /// Records why the kernel fails; `reason` must be a literal. Returns `status`.
  etx_status (*fail)(struct etx_context* self, etx_status status, const char* reason);
  /// Calls `body(user, b, e)` over disjoint ranges that cover [begin, end), each at least `grain`
  /// long unless it is the last; returns when all have. Null where there is no thread pool. The
  /// threads are those of all kernels and delegates; a call within a body runs only on its thread.
  /// The other functions of the context, except is_cancelled, are not for bodies.
  void (*parallel_for)(struct etx_context* self, int64_t begin, int64_t end, int64_t grain,
                       void (*body)(void* user, int64_t begin, int64_t end), void* user);
  /// The kernel that runs and the number of its arguments; only for kernels of signature `*`.
  const struct etx_kernel* kernel;
  size_t num_args;
  /// True once the execution shall end: long kernels and delegates that ask return
  /// `etx::Error::Cancelled`. From any thread of theirs. Since 1.2.
  bool (*is_cancelled)(const struct etx_context* self);
  /// True in the one call at load of a kernel whose row has bit 62. Since 1.3.
  bool is_loading;
  /// The method's own; not for bodies. Since 1.3.
  etx_random* random;
  /// Records an event of a delegate. Null where nobody watches. Not for bodies. Since 1.5.
  void (*trace)(struct etx_context* self, const etx_delegate_event* event);
  /// The clock of events; null as `trace` is. Since 1.5.
  uint64_t (*ticks)(void);
} etx_context;

/// Runs one operator. `args` are the values of the instruction, already checked against
/// `signature`.
typedef etx_status (*etx_kernel_fn)(etx_context* context, etx_value* const* args);

/// A row of a kernel library.
typedef struct etx_kernel {
  /// Registered name with overload: `aten::add.out`.
  const char* name;
  etx_kernel_fn run;
  /// One letter an argument, out-arguments included, the repeated returns not: T tensor, i int,
  /// d double, b bool, s scalar, c string, I D B lists of int, double and bool, L list of tensors,
  /// O list of optional tensors, v writable scalar slot. After the letter: `!` the kernel writes
  /// the tensor, `?` the value may be None. Only `*`: any arguments, which the kernel checks; the
  /// returns repeat arguments at the end, one by one or as a list, and tensors have memory.
  const char* signature;
  /// Bit n: the kernel takes ScalarType n for its principal tensors. 0: not stated.
  /// Bit 63: the result may lie on an argument of its dtype, sizes and layout. Target files tell
  /// exporters so; the runtime does not look at these bits.
  /// Bit 62: `run` is called for each instruction while a method is loaded, too, with `is_loading`
  /// set, where no number or list of it changes: it checks what it can, and neither
  /// computes nor allocates. Only
  /// tensors with ETX_TENSOR_CONSTANT have data then, and dynamic ones their largest sizes. Its
  /// failure is that of the load. Since 1.3; older runtimes refuse a plugin that says 1.3.
  /// Bits 61, 60, 59: a special row beside the general one of its name and signature. It is taken
  /// for calls all of whose tensors have a stated dtype (61), are contiguous (60), are channels
  /// last (59); of several that fit the one with the most of these bits, then the first. Since 1.6.
  uint64_t dtypes;
} etx_kernel;

/// A family of kernels; a library is a list of these, and a build may leave families out.
typedef struct etx_kernel_table {
  const etx_kernel* rows;
  size_t count;
} etx_kernel_table;

/// A word that the exporter left to the backend; key and value live as long as the program.
typedef struct etx_compile_spec {
  const char* key;
  const void* value;
  size_t size;
} etx_compile_spec;

/// What the caller of a load asks of a backend: an ETX_TAG_BOOL, ETX_TAG_INT or ETX_TAG_STRING.
typedef struct etx_option {
  const char* key;
  etx_value value;
} etx_option;

/// What a backend may ask of the runtime while a method is loaded.
typedef struct etx_init_context {
  uint32_t struct_size;
  const char* method;
  /// Memory that lives as long as the method. Null when there is not enough.
  void* (*allocate)(struct etx_init_context* self, size_t size, size_t alignment);
  /// Looks up named data of the program or its external data files; the bytes outlive the method.
  etx_status (*named_data)(struct etx_init_context* self, const char* key, const void** data,
                           size_t* size);
  /// Records why init fails; `reason` must be a literal. Returns `status`.
  etx_status (*fail)(struct etx_init_context* self, etx_status status, const char* reason);
  /// As in etx_context. Since 1.2.
  uint32_t num_threads;
  void (*parallel_for)(struct etx_init_context* self, int64_t begin, int64_t end, int64_t grain,
                       void (*body)(void* user, int64_t begin, int64_t end), void* user);
  /// What the caller asks of this backend, until init returns. A key or a type that the backend
  /// does not know is for it to refuse. Since 1.4.
  const etx_option* options;
  size_t num_options;
  /// Executions will be watched: a backend whose events cost something prepares them only then.
  /// Since 1.5.
  bool is_traced;
} etx_init_context;

/// A delegate. `user` belongs to the backend and may be null; the runtime only passes it back.
typedef struct etx_backend {
  uint32_t struct_size;
  /// The id programs refer to, e.g. `XnnpackBackend`.
  const char* name;
  void* user;
  bool (*is_available)(const struct etx_backend* self);  ///< Null: always.
  /// Prepares `blob`, which stays valid until `destroy`; `*handle` is given back to the others.
  etx_status (*init)(const struct etx_backend* self, etx_init_context* context, const void* blob,
                     size_t size, const etx_compile_spec* specs, size_t num_specs, void** handle);
  /// Inputs come first in `args`, then outputs; outputs are resized by the backend. Tensors have
  /// memory; kinds, dtypes, shapes and ETX_TENSOR_CONSTANT are for the backend to check.
  etx_status (*execute)(const struct etx_backend* self, void* handle, etx_context* context,
                        etx_value* const* args, size_t num_args);
  void (*destroy)(const struct etx_backend* self, void* handle);  ///< Null: nothing to do.
} etx_backend;

/// What a plugin's entry point returns: constant data that lives as long as the library is loaded.
typedef struct etx_plugin {
  uint32_t struct_size;
  uint16_t abi_major;
  uint16_t abi_minor;
  /// Distribution the plugin comes from, e.g. `etx-kernels-portable`, and its version.
  const char* name;
  const char* version;
  const etx_kernel_table* const* tables;
  size_t num_tables;
  const etx_backend* const* backends;
  size_t num_backends;
} etx_plugin;

/// The one symbol a shared plugin exports (`etx_plugin_v1`).
typedef const etx_plugin* (*etx_plugin_entry)(void);

#ifdef __cplusplus
}
#endif

#endif  // ETX_ABI_H_
