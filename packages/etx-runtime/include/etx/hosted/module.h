// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_HOSTED_MODULE_H_
#define ETX_HOSTED_MODULE_H_

#include <atomic>
#include <memory>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include <etx/hosted/backend_options.h>
#include <etx/hosted/loaders.h>
#include <etx/hosted/memory.h>
#include <etx/hosted/plugins.h>
#include <etx/hosted/tensor_ptr.h>
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
    /// True: files are mapped and must not be cut short or written to in place while the program
    /// lives (see MmapDataLoader). False: they are read whole, and what becomes of them afterwards
    /// does not matter.
    bool use_mmap = true;
    Program::Verification verification = Program::Verification::Full;
    /// `.ptd` files with the program's external weights.
    std::vector<std::string> data_paths;
    /// Such files in memory, aligned to 16; kept alive with the program.
    std::vector<std::shared_ptr<const DataLoader>> data_loaders;
    /// The plugins whose kernels methods use, of equal names the first; empty: all that are loaded.
    /// Backends are those of all, and what `Plugins::add_first` added goes before.
    std::vector<const etx_plugin*> kernels;
  };

  /// Loads `path`. On failure returns null, fills in `error`.
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
  /// `Options::kernels`.
  const std::vector<const etx_plugin*>& kernels() const { return kernels_; }

 private:
  LoadedProgram() = default;
  bool load(const std::string& source, const Options& options, ErrorText* error);
  bool load_data(const Options& options, ErrorText* error);

  std::shared_ptr<void> owner_;
  std::shared_ptr<const DataLoader> loader_;
  std::shared_ptr<const NamedDataMap> data_;
  std::unique_ptr<Program> program_;
  std::vector<const etx_plugin*> kernels_;
};

/// A method with memory from the heap and the process's plugins and threads.
class LoadedMethod {
 public:
  /// On failure returns null, fills in `error`. Buffers that the file places alike in
  /// the method and in one of `sharing`, methods of the same program, are the same memory and keep
  /// their values; such methods are used, and loaded, by one thread at a time.
  /// `backend_options` are read during the call; a backend that is not there, or is built for an
  /// ABI without options, is an error. `tracer` watches the load, not what follows.
  static std::unique_ptr<LoadedMethod> load(std::shared_ptr<LoadedProgram> program,
                                            const std::string& name, ErrorText* error,
                                            const std::vector<LoadedMethod*>& sharing = {},
                                            const LoadBackendOptionsMap* backend_options = nullptr,
                                            EventTracer* tracer = nullptr);
  ~LoadedMethod();
  /// Destroys the method and its delegates but not the memory of its tensors, other than what
  /// `bind_state` gave; nothing else of this object is used afterwards.
  void unload();

  Method& method() { return *method_; }
  const std::shared_ptr<LoadedProgram>& program() const { return program_; }
  /// Of each instruction the row of a kernel table that it takes: the plugin's name, and of a
  /// special row its conditions; empty where it is none.
  std::vector<std::string> kernel_rows() const;

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
  /// Mutable buffer `name` where its values are, whatever the program made of the slot while it
  /// executed. Errors: NotFound.
  Result<Tensor> state(const std::string& name);
  /// Gives a mutable buffer that the file leaves to the caller memory: `data`, which must be
  /// writable and as large as the buffer; or zeros where `data` is null. `owner` keeps `data` alive
  /// until the next call for `name`; without one it must outlive that, or this object. What was
  /// bound before is let go. No execution starts before each such buffer has some.
  /// Errors: as Method::set_attribute_data_ptr.
  Error bind_state(const std::string& name, void* data = nullptr,
                   std::shared_ptr<void> owner = nullptr);
  /// What keeps the memory at `data` alive when it is that of a buffer which `bind_state` gave some
  /// with an owner or as zeros: it may have to outlive this binding. Else null.
  std::shared_ptr<void> state_owner(const void* data) const;
  /// True when it shares buffers with another method.
  bool shares_state() const { return group_ != nullptr && group_->size() > 1; }

  /// True when input `index`, which must exist, is a tensor.
  bool is_tensor_input(size_t index) const { return is_tensor_input_[index]; }
  /// True when the bytes lie in memory that lives as long as this object: planned or of an output.
  bool owns(const void* data, size_t size) const;
  /// True when `data` lies in memory that was given with `set_tensor`, or with `bind_state` without
  /// an owner.
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
    void* data;
    std::shared_ptr<void> owner;

    bool contains(const void* address) const;
  };
  explicit LoadedMethod(size_t method_bytes) : method_arena_(method_bytes) {}
  static std::unique_ptr<LoadedMethod> load_unlogged(std::shared_ptr<LoadedProgram> program,
                                                     const std::string& name, ErrorText* error,
                                                     const std::vector<LoadedMethod*>& sharing,
                                                     const LoadBackendOptionsMap* backend_options,
                                                     EventTracer* tracer);
  bool bind_outputs(ErrorText* error);
  bool has_input(size_t index, ErrorText* error) const;
  void find_state();
  void explain(ErrorText* error) const;
  struct Shared;
  Shared find_shared(const MethodMeta& meta, const std::vector<LoadedMethod*>& others) const;

  std::shared_ptr<LoadedProgram> program_;
  GrowableArena method_arena_;
  GrowableArena temp_arena_;
  std::unique_ptr<PlannedMemory> planned_;
  std::unique_ptr<MemoryManager> memory_;
  std::unique_ptr<Method> method_;
  /// The mutable buffers as they were before the first execution, which may move the slots.
  std::vector<std::pair<std::string, Tensor>> state_;
  /// Those that the file leaves to the caller.
  std::vector<OpenState> open_state_;
  size_t num_unbound_ = 0;
  /// The methods that share state with this one, itself included; null when there are none.
  std::shared_ptr<std::vector<LoadedMethod*>> group_;
  std::vector<std::string> input_names_;
  std::vector<bool> is_tensor_input_;
  std::vector<std::vector<uint8_t>> input_bytes_;
  std::vector<std::unique_ptr<uint8_t[]>> output_bytes_;
};

/// A model and its methods, for C++ programs: ExecuTorch's `Module`, and each failure with a text.
///
/// Used by one thread at a time; only `cancel` may be called by others while it executes.
class Module {
 public:
  /// File: read whole into memory. Mmap: mapped, so that pages are read when they are touched; the
  /// files must not be cut short or written to in place while the program lives.
  enum class LoadMode { File, Mmap };

  /// Of the file at `path`, with the `.ptd` files that hold its external weights. Nothing is loaded
  /// until it is needed.
  explicit Module(std::string path, std::vector<std::string> data_paths = {},
                  LoadMode load_mode = LoadMode::Mmap)
      : path_(std::move(path)), data_paths_(std::move(data_paths)), load_mode_(load_mode) {}
  Module(std::string path, LoadMode load_mode) : Module(std::move(path), {}, load_mode) {}
  /// Of a program that is loaded already, from memory for instance.
  explicit Module(std::shared_ptr<LoadedProgram> program) : program_(std::move(program)) {}

  /// Loads the program if it is not loaded. Errors: those of Program::load and the loader.
  Error load(Program::Verification verification = Program::Verification::Full);
  /// The same, and copies what is asked of backends by the methods that are loaded from now on.
  Error load(const LoadBackendOptionsMap& backend_options,
             Program::Verification verification = Program::Verification::Full);
  bool is_loaded() const { return program_ != nullptr; }
  /// Null before the program is loaded.
  const std::shared_ptr<LoadedProgram>& program() const { return program_; }

  /// These load the program first. Errors: as load; InvalidArgument when there is no such method.
  Result<size_t> num_methods();
  Result<std::unordered_set<std::string>> method_names();
  Result<MethodMeta> method_meta(const std::string& name);

  /// Loads a method if it is not loaded, with the plugins of the process. Errors: as load, and
  /// those of Program::load_method.
  Error load_method(const std::string& name);
  Error load_forward() { return load_method("forward"); }
  /// False when it was not loaded. Its outputs are gone.
  bool unload_method(const std::string& name);
  bool unload_forward() { return unload_method("forward"); }
  bool is_method_loaded(const std::string& name) const { return find(name) != nullptr; }
  /// The method itself, for what this class does not offer; loaded if need be, valid until it is
  /// unloaded. Errors: as load_method.
  Result<Method*> method(const std::string& name);

  /// Sets an input for the executions that follow. A tensor of another layout is copied; the bytes
  /// of another one must stay valid until the last of them is over. Errors: as Method::set_input.
  Error set_input(const std::string& name, const EValue& value, size_t index);
  Error set_input(const EValue& value, size_t index = 0) {
    return set_input("forward", value, index);
  }
  /// Sets all of them, which may be outputs of the method. Errors: InvalidArgument for another
  /// number of inputs; as set_input.
  Error set_inputs(const std::string& name, const std::vector<EValue>& values);
  Error set_inputs(const std::vector<EValue>& values) { return set_inputs("forward", values); }
  /// Has an output that is not planned written to the tensor's bytes from now on.
  /// Errors: as Method::set_output_data_ptr.
  Error set_output(const std::string& name, const EValue& tensor, size_t index = 0);
  Error set_output(const EValue& tensor, size_t index = 0) {
    return set_output("forward", tensor, index);
  }

  /// Executes with `inputs`, or with those that were set; loads what is not loaded. The outputs are
  /// valid until the method executes again or is unloaded. Errors: as load_method, set_inputs and
  /// Method::execute; InvalidState when an input was never set.
  Result<std::vector<EValue>> execute(const std::string& name, const std::vector<EValue>& inputs);
  Result<std::vector<EValue>> execute(const std::string& name);
  template <typename T, typename = std::enable_if_t<std::is_constructible_v<EValue, const T&>>>
  Result<std::vector<EValue>> execute(const std::string& name, const T& input) {
    return execute(name, std::vector<EValue>{EValue(input)});
  }
  Result<std::vector<EValue>> forward(const std::vector<EValue>& inputs) {
    return execute("forward", inputs);
  }
  template <typename T, typename = std::enable_if_t<std::is_constructible_v<EValue, const T&>>>
  Result<std::vector<EValue>> forward(const T& input) {
    return execute("forward", input);
  }
  Result<std::vector<EValue>> forward() { return execute("forward"); }
  /// Only the first output. Errors: as execute.
  Result<EValue> get(const std::string& name, const std::vector<EValue>& inputs);

  /// Outputs of the last execution. Errors: InvalidState when the method is not loaded,
  /// InvalidArgument for an index.
  Result<EValue> get_output(const std::string& name, size_t index = 0);
  Result<EValue> get_output(size_t index = 0) { return get_output("forward", index); }
  Result<std::vector<EValue>> get_outputs(const std::string& name = "forward");

  /// Gives a mutable buffer of a method that the file leaves to the caller memory: `data`, or zeros
  /// of the module's own. Errors: as load_method and LoadedMethod::bind_state.
  Error bind_state(const std::string& name, const std::string& buffer, void* data = nullptr);

  /// Begins a method's random numbers with those of `seed`. Errors: as load_method.
  Error seed(uint64_t seed, const std::string& name = "forward");

  /// Ends the running execution, or the next one where none is running, with Error::Cancelled; what
  /// ends an execution takes the request back. From any thread and from signal handlers, while no
  /// method is unloaded.
  void cancel();
  /// Takes back a request that came after the end of an execution. On the module's own thread.
  void clear_cancel();

  /// What the last failed call has to say; the log says it at its level of information.
  const ErrorText& last_error() const { return error_; }

 private:
  struct Entry {
    std::string name;
    std::unique_ptr<LoadedMethod> loaded;
    std::vector<bool> is_set;
    /// Of inputs that were given in the method's own memory.
    std::vector<TensorPtr> copies;
  };
  const Entry* find(const std::string& name) const;
  Result<Entry*> entry(const std::string& name);
  Error set(Entry& entry, const EValue& value, size_t index);
  Error fail(Error error, std::string message);
  Error fail(ErrorText text);

  std::string path_;
  std::vector<std::string> data_paths_;
  LoadMode load_mode_ = LoadMode::Mmap;
  std::shared_ptr<LoadedProgram> program_;
  StoredBackendOptions backend_options_;
  std::vector<std::unique_ptr<Entry>> methods_;
  struct Execution;
  /// The method that executes, or null.
  std::atomic<Method*> running_{nullptr};
  std::atomic<bool> is_cancelled_{false};
  ErrorText error_;
};

}  // namespace etx

#endif  // ETX_HOSTED_MODULE_H_
