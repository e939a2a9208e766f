/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ETX_ETX_H_
#define ETX_ETX_H_

/// The runtime for C and every language that calls C: CMake target `etx::c`, the shared library
/// `libetx_runtime`, or statically `etx::runtime`.
///
/// Handles are opaque. Functions that can fail return an `etx_status`, 0 for success, and leave
/// their results unchanged on failure; `etx_last_error()` then says in words what failed, and
/// where. Structs begin with their size, which the caller sets: newer libraries fill in what an
/// older caller knows of. Strings are UTF-8. No function throws. A null pointer is
/// ETX_INVALID_ARGUMENT unless a function says what it means; functions without a status return 0
/// or null, or do nothing.
///
/// Threads: a program may be shared, and given up by any thread while methods of it are in use. A
/// method, and what it gives pointers to, is used by one thread at a time; `etx_method_cancel`
/// alone may be called by others meanwhile, until the method is freed. All else is safe from any
/// thread. What the caller says is there (elements, strings, counted lists) is read unchecked.

#include <etx/abi.h>
#include <etx/platform.h>

/// Raised when existing functions or members change.
#define ETX_API_MAJOR 1
/// Raised when functions or members are added.
#define ETX_API_MINOR 1

#if defined(ETX_BUILDING_SHARED) && defined(_WIN32)
#define ETX_API __declspec(dllexport)
#elif defined(ETX_BUILDING_SHARED)
#define ETX_API __attribute__((visibility("default")))
#else
#define ETX_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/// What an `etx_status` may be. Numbers below 0x40 are ExecuTorch's; more may be added.
enum etx_error {
  ETX_OK = 0x00,
  ETX_INTERNAL = 0x01,
  ETX_INVALID_STATE = 0x02,
  ETX_NOT_SUPPORTED = 0x10,
  ETX_INVALID_ARGUMENT = 0x12,
  ETX_INVALID_TYPE = 0x13,
  ETX_OPERATOR_MISSING = 0x14,
  ETX_NOT_FOUND = 0x20,
  ETX_MEMORY_ALLOCATION_FAILED = 0x21,
  ETX_ACCESS_FAILED = 0x22,
  ETX_INVALID_PROGRAM = 0x23,
  ETX_INVALID_EXTERNAL_DATA = 0x24,
  ETX_OUT_OF_RESOURCES = 0x25,
  ETX_DELEGATE_INVALID_COMPATIBILITY = 0x30,
  ETX_DELEGATE_MEMORY_ALLOCATION_FAILED = 0x31,
  ETX_DELEGATE_INVALID_HANDLE = 0x32,
  ETX_CANCELLED = 0x40
};

/// Element types, numbered as in ATen; the ones that a caller is likely to meet.
enum etx_dtype {
  ETX_UINT8 = 0,
  ETX_INT8 = 1,
  ETX_INT16 = 2,
  ETX_INT32 = 3,
  ETX_INT64 = 4,
  ETX_FLOAT16 = 5,
  ETX_FLOAT32 = 6,
  ETX_FLOAT64 = 7,
  ETX_BOOL = 11,
  ETX_BFLOAT16 = 15,
  ETX_UINT16 = 27,
  ETX_UINT32 = 28,
  ETX_UINT64 = 29
};

/// A program file, verified; counted by the methods that were loaded from it.
typedef struct etx_program etx_program;
/// A method with memory of its own.
typedef struct etx_method etx_method;

/// ETX_API_MAJOR and ETX_API_MINOR of the library, as major * 65536 + minor. A program that was
/// compiled with another major number, or a larger minor one, must not go on.
ETX_API uint32_t etx_api_version(void);
/// "InvalidArgument" and so on; "Unknown" for other numbers. A literal.
ETX_API const char* etx_status_name(etx_status status);
/// What the last call of this thread that failed has to say: which input, operator, instruction or
/// byte, what was expected and what given. Empty before the first failure. Valid until the next
/// failure on this thread.
ETX_API const char* etx_last_error(void);

/// How a program is loaded; made by ETX_LOAD_OPTIONS_INIT. A null pointer means just that.
typedef struct etx_load_options {
  size_t struct_size;
  /// 1: check everything, so that no file can do harm. 0: trust the file.
  int32_t verify;
  /// 1: map files; they must not be cut short or written to in place while a program or method of
  /// theirs lives. 0: read them whole; what becomes of them afterwards does not matter.
  int32_t use_mmap;
  /// Paths of the `.ptd` files with the program's external weights; read during the call.
  const char* const* data_paths;
  size_t num_data_paths;
} etx_load_options;
#define ETX_LOAD_OPTIONS_INIT {sizeof(etx_load_options), 1, 1, NULL, 0}

/// Loads the file at `path`.
/// Errors: ETX_ACCESS_FAILED, ETX_INVALID_PROGRAM, ETX_NOT_SUPPORTED (of a newer format),
/// ETX_INVALID_EXTERNAL_DATA, ETX_MEMORY_ALLOCATION_FAILED, ETX_INVALID_ARGUMENT (the options).
ETX_API etx_status etx_program_load_file(const char* path, const etx_load_options* options,
                                         etx_program** program);
/// Loads from memory, which is not copied where it is aligned to 16. It must stay as it is until
/// `release(context, data)` is called: once, by whatever thread, when neither the program nor a
/// method of it needs it, or before this function returns an error. `release` may be null; then it
/// must stay until all of them are freed. Errors: as etx_program_load_file.
ETX_API etx_status etx_program_load_memory(const void* data, size_t size,
                                           void (*release)(void* context, const void* data),
                                           void* context, const etx_load_options* options,
                                           etx_program** program);
/// Loads `size` bytes of an open file from `offset`, 0 meaning up to its end: an asset in an
/// Android package. The caller keeps the descriptor, whose position stays, and may close it.
/// Errors: as etx_program_load_file.
ETX_API etx_status etx_program_load_fd(int descriptor, uint64_t offset, uint64_t size,
                                       const etx_load_options* options, etx_program** program);
/// Gives a program up; its methods keep what they need. Null does nothing.
ETX_API void etx_program_free(etx_program* program);

/// Methods of the program.
ETX_API size_t etx_program_num_methods(const etx_program* program);
/// The name lives as long as the program; null when there is no method `index`.
ETX_API const char* etx_program_method_name(const etx_program* program, size_t index);
/// The bytes that the file stores under `key`, for instance "etx/constraints", copied to `data`
/// where `*size` is enough; `*size` becomes theirs, then and when it is too small. `data` may be
/// null, with a size of 0, to ask. Errors: ETX_NOT_FOUND, ETX_INVALID_ARGUMENT when `*size` is too
/// small, ETX_ACCESS_FAILED.
ETX_API etx_status etx_program_named_data(const etx_program* program, const char* key, void* data,
                                          size_t* size);

/// What the file says of an input, an output or a buffer; pointers live as long as the program.
typedef struct etx_value_info {
  size_t struct_size;
  /// An `etx_tag`. The following members are those of tensors; otherwise 0.
  uint32_t tag;
  /// An `etx_dtype`, or another number of ATen's.
  int32_t dtype;
  uint32_t rank;
  /// 1 when the sizes are upper bounds.
  int32_t is_dynamic;
  /// 1 when it lies in a planned arena: inputs are copied there.
  int32_t is_planned;
  const int32_t* sizes;
  /// Dimensions from the outermost to the innermost.
  const uint8_t* dim_order;
  /// At the upper bounds.
  size_t nbytes;
  /// Fully qualified name of a buffer or parameter, else empty.
  const char* name;
} etx_value_info;

/// Numbers of inputs, outputs and mutable buffers of a method that need not be loaded.
/// Errors: ETX_NOT_FOUND when the program has no such method.
ETX_API etx_status etx_program_method_counts(const etx_program* program, const char* method,
                                             size_t* num_inputs, size_t* num_outputs,
                                             size_t* num_buffers);
/// Errors: ETX_NOT_FOUND (no such method), ETX_INVALID_ARGUMENT (no such index, or `struct_size`).
ETX_API etx_status etx_program_input_info(const etx_program* program, const char* method,
                                          size_t index, etx_value_info* info);
ETX_API etx_status etx_program_output_info(const etx_program* program, const char* method,
                                           size_t index, etx_value_info* info);
ETX_API etx_status etx_program_buffer_info(const etx_program* program, const char* method,
                                           size_t index, etx_value_info* info);
/// Bytes that loading the method takes: `*method_bytes` for what lives as long as it, and those of
/// its planned arenas, of which the first `*num_arenas` are written to `arena_bytes`. `*num_arenas`
/// becomes the number of arenas; `arena_bytes` may be null when it is 0. Backends take more.
/// Errors: ETX_NOT_FOUND.
ETX_API etx_status etx_program_required_bytes(const etx_program* program, const char* method,
                                              size_t* method_bytes, size_t* arena_bytes,
                                              size_t* num_arenas);

/// Loads a method with the kernels and backends of the plugins that are loaded by now.
/// Errors: ETX_NOT_FOUND (method or backend), ETX_OPERATOR_MISSING (the text names all of them),
/// ETX_MEMORY_ALLOCATION_FAILED, ETX_INVALID_PROGRAM, ETX_INVALID_EXTERNAL_DATA, and backends' own.
ETX_API etx_status etx_method_load(etx_program* program, const char* name, etx_method** method);

/// What the caller asks of a backend while a method is loaded; `tag` is ETX_TAG_BOOL or
/// ETX_TAG_INT, of `as_int`, or ETX_TAG_STRING, of `as_string`. Since 1.1.
typedef struct etx_backend_option {
  const char* backend;
  const char* key;
  uint32_t tag;
  uint32_t reserved;
  int64_t as_int;
  const char* as_string;
} etx_backend_option;

/// How a method is loaded; made by ETX_METHOD_OPTIONS_INIT. A null pointer means just that.
typedef struct etx_method_options {
  size_t struct_size;
  /// Read during the call.
  const etx_backend_option* backend_options;
  size_t num_backend_options;
} etx_method_options;
#define ETX_METHOD_OPTIONS_INIT {sizeof(etx_method_options), NULL, 0}

/// As etx_method_load. Errors also: ETX_INVALID_ARGUMENT and what a backend says of a key or a type
/// that it does not know, ETX_NOT_FOUND for a backend that is in no plugin, ETX_NOT_SUPPORTED for
/// one that is built for an ABI without options. Since 1.1.
ETX_API etx_status etx_method_load_with(etx_program* program, const char* name,
                                        const etx_method_options* options, etx_method** method);
/// Not while it executes. Null does nothing.
ETX_API void etx_method_free(etx_method* method);
/// Flat inputs and outputs of the method.
ETX_API size_t etx_method_num_inputs(const etx_method* method);
ETX_API size_t etx_method_num_outputs(const etx_method* method);

/// Sets a tensor input of `rank` `sizes`, whose elements lie `strides` elements apart; null strides
/// mean row-major. Copied where the input is planned or its layout differs; else `data` is read in
/// place and must stay valid until the execution is over. An output of the method itself is copied
/// by the caller before any input is set, as setting one may write over it.
/// Errors: ETX_INVALID_ARGUMENT (index, kind, dtype), ETX_NOT_SUPPORTED (shape).
ETX_API etx_status etx_method_set_tensor(etx_method* method, size_t index, const void* data,
                                         int32_t dtype, size_t rank, const int32_t* sizes,
                                         const int64_t* strides);
/// Sets a number; one that the program does not read must have the value that it had at export.
/// Errors: ETX_INVALID_ARGUMENT.
ETX_API etx_status etx_method_set_int(etx_method* method, size_t index, int64_t value);
ETX_API etx_status etx_method_set_double(etx_method* method, size_t index, double value);
ETX_API etx_status etx_method_set_bool(etx_method* method, size_t index, bool value);

/// Runs the method. Errors: those of kernels and backends, ETX_OUT_OF_RESOURCES (the instruction
/// budget), ETX_CANCELLED.
ETX_API etx_status etx_method_execute(etx_method* method);
/// Ends the running execution, or the next one where none is running, with ETX_CANCELLED; whatever
/// ends an execution takes the request back. From any thread and from signal handlers.
ETX_API void etx_method_cancel(etx_method* method);
/// Takes back a request that came after the end of an execution.
ETX_API void etx_method_clear_cancel(etx_method* method);
/// Instructions after which an execution that jumps backwards is ended; 10 million unless set.
ETX_API void etx_method_set_instruction_budget(etx_method* method, uint64_t instructions);
/// Begins the method's random numbers with those of `seed`; loading does so with 0. Equal seeds
/// give equal numbers on any machine and number of threads. Null does nothing.
ETX_API void etx_method_seed(etx_method* method, uint64_t seed);

/// A value of a method. `data`, `sizes` and `strides` point into its memory: valid until it
/// executes again or is freed.
typedef struct etx_output {
  size_t struct_size;
  /// An `etx_tag`; ETX_TAG_INT and ETX_TAG_BOOL are in `as_int`, ETX_TAG_DOUBLE in `as_double`, and
  /// the other members are those of tensors.
  uint32_t tag;
  int32_t dtype;
  uint32_t rank;
  uint32_t reserved;
  const int32_t* sizes;
  /// In elements.
  const int32_t* strides;
  void* data;
  size_t nbytes;
  int64_t as_int;
  double as_double;
} etx_output;

/// Output `index` of the last execution. Errors: ETX_INVALID_ARGUMENT (index or `struct_size`).
ETX_API etx_status etx_method_get_output(const etx_method* method, size_t index,
                                         etx_output* output);
/// A mutable buffer by its name (etx_program_buffer_info): `data` may be read, and written to set
/// it, while the method does not execute. Errors: ETX_NOT_FOUND, ETX_INVALID_ARGUMENT.
ETX_API etx_status etx_method_get_buffer(etx_method* method, const char* name, etx_output* buffer);
/// Copies `size` bytes, all of them, into a buffer of that name. One whose memory the file leaves
/// to the caller has none before this gives it some; an execution needs it. Errors: ETX_NOT_FOUND,
/// ETX_INVALID_ARGUMENT when the buffer has another size.
ETX_API etx_status etx_method_set_buffer(etx_method* method, const char* name, const void* data,
                                         size_t size);
/// Puts the initial values back into all buffers. Errors: those of reading them.
ETX_API etx_status etx_method_reset_state(etx_method* method);

/// Loads a library of kernels or backends for the process; doing it again does nothing.
/// Errors: ETX_NOT_FOUND when it is not a plugin, one of another ABI, or one that lacks a member:
/// the text names path and member.
ETX_API etx_status etx_load_plugin(const char* path);
/// Adds a plugin that is linked into the program and lives as long. Errors: ETX_NOT_SUPPORTED when
/// it is of another ABI or lacks a member.
ETX_API etx_status etx_add_plugin(const etx_plugin* plugin);

/// Threads that kernels may use, shared by all methods; 0 means one for each usable core.
ETX_API void etx_set_num_threads(uint32_t num_threads);
ETX_API uint32_t etx_num_threads(void);

/// Drops messages below `minimum`; ETX_LOG_ERROR unless set.
ETX_API void etx_set_log_level(enum etx_log_level minimum);
/// Sends messages to `sink`, or to stderr again when it is null. `message` is valid during the
/// call; several threads may call at once. The former sink is not called after the return.
/// Errors: ETX_INVALID_STATE from within a sink.
ETX_API etx_status etx_set_log_sink(void (*sink)(void* user, enum etx_log_level level,
                                                 const char* message),
                                    void* user);

#ifdef __cplusplus
}
#endif

#endif  // ETX_ETX_H_
