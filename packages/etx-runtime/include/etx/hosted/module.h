// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_HOSTED_MODULE_H_
#define ETX_HOSTED_MODULE_H_

#include <memory>
#include <string>
#include <vector>

#include <etx/hosted/loaders.h>
#include <etx/hosted/memory.h>
#include <etx/hosted/plugins.h>
#include <etx/hosted/thread_pool.h>
#include <etx/program.h>

namespace etx {

/// A failure as a person reads it.
struct ErrorText {
  Error error = Error::Ok;
  std::string message;
  /// Operator or backend, with overload; empty when none is concerned.
  std::string name;
  /// Index of the instruction, or -1.
  int32_t instruction = -1;
  /// Index of the input concerned, or -1.
  int32_t index = -1;
  /// Of a load: the operators without a kernel, each with the first instruction that needs it.
  std::vector<std::pair<std::string, int32_t>> missing;
};

/// A program with its loader, on the heap; keeps alive what it needs.
class LoadedProgram {
 public:
  struct Options {
    bool use_mmap = true;
    Program::Verification verification = Program::Verification::Full;
    /// `.ptd` files with the program's external weights.
    std::vector<std::string> data_paths;
    /// Such files in memory, aligned to 16; kept alive with the program.
    std::vector<std::shared_ptr<const DataLoader>> data_loaders;
  };

  /// Loads `path`. On failure returns null, fills in `error` and logs it.
  static std::shared_ptr<LoadedProgram> from_file(const std::string& path, const Options& options,
                                                  ErrorText* error);
  /// Loads from memory that `owner` keeps alive; copied when it is not aligned to 16.
  static std::shared_ptr<LoadedProgram> from_memory(const void* data, size_t size,
                                                    std::shared_ptr<void> owner,
                                                    const Options& options, ErrorText* error);

  /// Loads `size` bytes of an open file from `offset`; a `size` of 0 means up to its end. Mapped if
  /// the options say so and `offset` is a multiple of 16, else read. The caller keeps `descriptor`
  /// and may close it.
  static std::shared_ptr<LoadedProgram> from_descriptor(int descriptor, uint64_t offset,
                                                        uint64_t size, const Options& options,
                                                        ErrorText* error);
  /// Loads through a loader of any kind, which lives as long as the program.
  static std::shared_ptr<LoadedProgram> from_loader(std::shared_ptr<const DataLoader> loader,
                                                    const Options& options, ErrorText* error);

  const Program& program() const { return *program_; }
  /// The maps of all data files as one; null when there are none.
  const NamedDataMap* data() const { return data_.get(); }

 private:
  LoadedProgram() = default;
  bool load(const std::string& source, const Options& options, ErrorText* error);
  bool load_data(const Options& options, ErrorText* error);

  std::shared_ptr<void> owner_;
  std::shared_ptr<const DataLoader> loader_;
  std::shared_ptr<const NamedDataMap> data_;
  std::unique_ptr<Program> program_;
};

/// A method with memory from the heap and the process's plugins and threads.
class LoadedMethod {
 public:
  /// On failure returns null, fills in `error` and logs it. Buffers that the file places alike in
  /// the method and in one of `sharing`, methods of the same program, are the same memory and keep
  /// their values; such methods are used, and loaded, by one thread at a time.
  static std::unique_ptr<LoadedMethod> load(std::shared_ptr<LoadedProgram> program,
                                            const std::string& name, ErrorText* error,
                                            const std::vector<LoadedMethod*>& sharing = {});
  ~LoadedMethod();

  Method& method() { return *method_; }
  const std::shared_ptr<LoadedProgram>& program() const { return program_; }

  /// Names for messages, by input; may be shorter than the inputs.
  void set_input_names(std::vector<std::string> names) { input_names_ = std::move(names); }

  /// Sets a tensor input from elements that lie with any strides (in elements; negative ones, too),
  /// copied where the layout differs. Else `data` must stay valid until the execution is over.
  bool set_tensor(size_t index, const void* data, ScalarType scalar_type, Span<const int32_t> sizes,
                  Span<const int64_t> strides, bool is_constant, ErrorText* error);
  bool set_value(size_t index, const EValue& value, ErrorText* error);
  bool execute(ErrorText* error);

  /// Puts the initial values back, those of shared buffers too.
  Error reset_state();
  /// True when mutable buffer `name` has memory: the file plans it, or `bind_state` gave it some.
  bool has_state(const std::string& name) const;
  /// Gives a mutable buffer that the file leaves to the caller memory: `data`, which must outlive
  /// this object or the next call for `name`, be writable and as large as the buffer; or zeros of
  /// this object where `data` is null. No execution starts before each such buffer has some.
  /// Errors: as Method::set_attribute_data_ptr.
  Error bind_state(const std::string& name, void* data = nullptr);
  /// True when it shares buffers with another method.
  bool shares_state() const { return group_ != nullptr && group_->size() > 1; }

  /// True when input `index`, which must exist, is a tensor.
  bool is_tensor_input(size_t index) const { return is_tensor_input_[index]; }
  /// True when the bytes lie in memory that lives as long as this object: planned or of an output.
  bool owns(const void* data, size_t size) const;
  /// True when `data` lies in memory that was given with `set_tensor`.
  bool is_callers(const void* data) const;
  /// `input 0 ('x')`.
  std::string input_label(size_t index) const;
  /// `float32[<=4, 3]`, or the value of a number; `index` must be below the number of inputs.
  std::string expected_input(size_t index) const;

  size_t planned_bytes() const { return planned_->size(); }
  size_t method_bytes() const { return method_arena_.peak_size(); }
  size_t temp_bytes() const { return temp_arena_.peak_size(); }

 private:
  struct OpenState {
    std::string name;
    size_t size;
    bool is_bound;
    std::unique_ptr<uint8_t[]> own;
  };
  explicit LoadedMethod(size_t method_bytes) : method_arena_(method_bytes) {}
  static std::unique_ptr<LoadedMethod> load_unlogged(std::shared_ptr<LoadedProgram> program,
                                                     const std::string& name, ErrorText* error,
                                                     const std::vector<LoadedMethod*>& sharing);
  bool bind_outputs(ErrorText* error);
  void find_open_state();
  void explain(ErrorText* error) const;
  struct Shared;
  Shared find_shared(const MethodMeta& meta, const std::vector<LoadedMethod*>& others) const;

  std::shared_ptr<LoadedProgram> program_;
  GrowableArena method_arena_;
  GrowableArena temp_arena_;
  std::unique_ptr<PlannedMemory> planned_;
  std::unique_ptr<MemoryManager> memory_;
  std::unique_ptr<Method> method_;
  /// Mutable buffers that the file leaves to the caller.
  std::vector<OpenState> open_state_;
  size_t num_unbound_ = 0;
  /// The methods that share state with this one, itself included; null when there are none.
  std::shared_ptr<std::vector<LoadedMethod*>> group_;
  std::vector<std::string> input_names_;
  std::vector<bool> is_tensor_input_;
  std::vector<std::vector<uint8_t>> input_bytes_;
  std::vector<std::unique_ptr<uint8_t[]>> output_bytes_;
};

/// A model file and its methods, for C++ programs; ExecuTorch's `Module` with messages.
class Module {
 public:
  explicit Module(std::string path, std::vector<std::string> data_paths = {})
      : path_(std::move(path)), data_paths_(std::move(data_paths)) {}

  /// Loads the program if it is not loaded. Errors: see last_error().
  Error load();
  Error load_method(const std::string& name);
  /// Executes with `inputs`, which must stay valid meanwhile; outputs stay valid until the next
  /// call.
  Result<std::vector<EValue>> execute(const std::string& name, const std::vector<EValue>& inputs);
  Result<std::vector<EValue>> forward(const std::vector<EValue>& inputs) {
    return execute("forward", inputs);
  }
  std::vector<std::string> method_names();
  /// What the last failed call has to say.
  const ErrorText& last_error() const { return error_; }

 private:
  std::string path_;
  std::vector<std::string> data_paths_;
  std::shared_ptr<LoadedProgram> program_;
  std::vector<std::pair<std::string, std::unique_ptr<LoadedMethod>>> methods_;
  LoadedMethod* find(const std::string& name);
  ErrorText error_;
};

}  // namespace etx

#endif  // ETX_HOSTED_MODULE_H_
