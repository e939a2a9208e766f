// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "../../native/core/tables.h"

#include <etx/dtype.h>
#include <program_objects.h>

#include "mutate.h"
#include "run.h"

namespace etx::fuzz {
namespace {

namespace fb = ::etx_fuzz_fbs;

using Values = std::vector<std::unique_ptr<fb::EValueT>>;
using Instructions = std::vector<std::unique_ptr<fb::InstructionT>>;

constexpr size_t kMostValues = 300;
constexpr size_t kMostInstructions = 100;
constexpr int64_t kArena = 4096;

template <typename T>
std::unique_ptr<fb::EValueT> value_of(T member) {
  auto value = std::make_unique<fb::EValueT>();
  value->val.Set(std::move(member));
  return value;
}

/// One method, seen as what may be done to it.
class Method {
 public:
  Method(fb::ExecutionPlanT& plan, Random& random) : plan_(plan), random_(random) {
    if (plan.chains.empty()) plan.chains.push_back(std::make_unique<fb::ChainT>());
  }

  void mutate() {
    switch (random_.below(13)) {
      case 0: return rearrange();
      case 1:
      case 2:
      case 3:
      case 4: return insert(call());
      case 5: return insert(other());
      case 6: return change_arguments();
      case 7:
      case 8: return change_tensor();
      case 9: return change_value();
      case 10: return change_io();
      case 11: return enlarge();
      default: return change_memory();
    }
  }

  /// Makes one size another, mostly a large one, in all tensors that have it, so that they go on
  /// fitting together, and numbers ones that such sizes are critical for.
  void enlarge() {
    const std::vector<fb::TensorT*> all = tensors();
    std::vector<int32_t> found;
    for (const fb::TensorT* tensor : all) {
      found.insert(found.end(), tensor->sizes.begin(), tensor->sizes.end());
    }
    if (!found.empty()) {
      const int32_t from = random_.pick(found);
      for (size_t tries = 0; tries < 4 && !rename_size(all, from, random_.pick(kLarge));) ++tries;
    }
    for (auto& value : plan_.values) {
      if (auto* number = value->val.AsInt()) {
        if (random_.one_in(4)) number->int_val = critical(all);
      } else if (auto* real = value->val.AsDouble()) {
        if (random_.one_in(8)) real->double_val = random_.pick(kReals);
      }
    }
  }

 private:
  std::vector<fb::TensorT*> tensors() {
    std::vector<fb::TensorT*> all;
    for (auto& value : plan_.values) {
      if (fb::TensorT* tensor = value->val.AsTensor()) all.push_back(tensor);
    }
    return all;
  }

  /// In all places, or in one of each tensor; bounds of a dynamic tensor may be one more than what
  /// it holds. False, and nothing changes, when a tensor became too large.
  bool rename_size(const std::vector<fb::TensorT*>& all, int32_t from, int32_t to) {
    const bool everywhere = random_.one_in(2), bounds_too = to > from && random_.one_in(2);
    std::vector<std::vector<int32_t>> renamed;
    for (const fb::TensorT* tensor : all) {
      std::vector<int32_t> sizes = tensor->sizes;
      const bool is_static = tensor->shape_dynamism == fb::TensorShapeDynamism::STATIC;
      const auto fits = [&](int32_t size) {
        return size == from || (size == from + 1 && bounds_too && !is_static);
      };
      if (everywhere) {
        std::replace_if(sizes.begin(), sizes.end(), fits, to);
      } else if (!sizes.empty()) {
        int32_t& size = random_.pick(sizes);
        size = fits(size) ? to : size;
      }
      int64_t bytes = 16;
      for (const int32_t size : sizes) {
        if (__builtin_mul_overflow(bytes, size, &bytes) || bytes > kMostBytes) return false;
      }
      renamed.push_back(std::move(sizes));
    }
    for (size_t i = 0; i < all.size(); ++i) {
      if (renamed[i] == all[i]->sizes) continue;
      all[i]->sizes = std::move(renamed[i]);
      move_to_own_arena(*all[i]);
    }
    for (auto& value : plan_.values) {
      auto* number = value->val.AsInt();
      if (number != nullptr && number->int_val == from && !random_.one_in(4)) number->int_val = to;
    }
    return true;
  }

  void move_to_own_arena(fb::TensorT& tensor) {
    auto& sizes = plan_.non_const_buffer_sizes;
    if (sizes.empty()) sizes.push_back(0);
    int64_t bytes = element_bytes(tensor);
    for (const int32_t size : tensor.sizes) bytes *= size;
    sizes.push_back(bytes);
    tensor.data_buffer_idx = 0;
    tensor.allocation_info = std::make_unique<fb::AllocationDetailsT>();
    tensor.allocation_info->memory_id = static_cast<uint32_t>(sizes.size() - 1);
  }

  static int64_t element_bytes(const fb::TensorT& tensor) {
    const auto type = static_cast<ScalarType>(tensor.scalar_type);
    return is_valid(type) ? static_cast<int64_t>(element_size(type)) : 16;
  }

  /// A number near to how many elements a tensor has, or that times a size is near to 2^63.
  int64_t critical(const std::vector<fb::TensorT*>& all) {
    if (all.empty() || random_.one_in(3)) return random_.number();
    const fb::TensorT& tensor = *all[random_.below(all.size())];
    int64_t count = 1;
    for (const int32_t size : tensor.sizes) {
      if (!__builtin_mul_overflow(count, size, &count) && random_.one_in(4)) break;
    }
    if (random_.one_in(4) && count > 0) count = INT64_MAX / count;
    return count + static_cast<int64_t>(random_.below(3)) - 1;
  }

  Instructions& code() { return plan_.chains[0]->instructions; }

  void insert(std::unique_ptr<fb::InstructionT> instruction) {
    if (code().size() >= kMostInstructions) code().erase(code().begin());
    const auto at = static_cast<std::ptrdiff_t>(random_.below(code().size() + 1));
    code().insert(code().begin() + at, std::move(instruction));
  }

  void rearrange() {
    if (code().empty()) return insert(call());
    const size_t at = random_.below(code().size());
    if (random_.one_in(3)) return std::swap(code()[at], random_.pick(code()));
    if (random_.one_in(2)) return insert(std::make_unique<fb::InstructionT>(*code()[at]));
    code().erase(code().begin() + static_cast<std::ptrdiff_t>(at));
  }

  /// The index of a value of one of these kinds; `make` adds one when there is none, and sometimes
  /// when there is.
  template <typename Fits, typename Make>
  int32_t find(const Fits& fits, const Make& make) {
    std::vector<int32_t> found;
    for (size_t i = 0; i < plan_.values.size(); ++i) {
      if (fits(*plan_.values[i])) found.push_back(static_cast<int32_t>(i));
    }
    const bool is_full = plan_.values.size() >= kMostValues;
    if (!found.empty() && (is_full || !random_.one_in(4))) return random_.pick(found);
    plan_.values.push_back(make());
    return static_cast<int32_t>(plan_.values.size() - 1);
  }

  int32_t find_kind(fb::KernelTypes kind) {
    return find([&](const fb::EValueT& value) { return value.val.type == kind; },
                [&] { return make(kind); });
  }

  int32_t find_tensor(int dtype, size_t rank) {
    const bool any_rank = random_.one_in(3);
    return find(
        [&](const fb::EValueT& value) {
          const fb::TensorT* tensor = value.val.AsTensor();
          return tensor != nullptr && static_cast<int>(tensor->scalar_type) == dtype &&
                 (any_rank || tensor->sizes.size() == rank);
        },
        [&] { return value_of(make_tensor(dtype, rank)); });
  }

  fb::TensorT make_tensor(int dtype, size_t rank) {
    fb::TensorT tensor;
    tensor.scalar_type = static_cast<fb::ScalarType>(dtype);
    const bool is_dynamic = random_.one_in(2);
    for (size_t d = 0; d < rank; ++d) {
      tensor.sizes.push_back(static_cast<int32_t>(random_.below(is_dynamic ? 8 : 5)));
      tensor.dim_order.push_back(static_cast<uint8_t>(d));
    }
    if (rank == 4 && random_.one_in(3)) tensor.dim_order = {0, 2, 3, 1};
    if (is_dynamic) tensor.shape_dynamism = fb::TensorShapeDynamism::DYNAMIC_BOUND;
    place(tensor);
    return tensor;
  }

  void place(fb::TensorT& tensor) {
    auto& sizes = plan_.non_const_buffer_sizes;
    while (sizes.size() < 2) sizes.push_back(0);
    sizes[1] = std::max(sizes[1], kArena);
    uint64_t bytes = 16;
    for (const int32_t size : tensor.sizes) bytes *= static_cast<uint64_t>(size);
    tensor.allocation_info = std::make_unique<fb::AllocationDetailsT>();
    tensor.allocation_info->memory_id = 1;
    const uint64_t room = static_cast<uint64_t>(sizes[1]);
    if (bytes < room) {
      const auto slots = static_cast<size_t>((room - bytes) / 16 + 1);
      tensor.allocation_info->memory_offset_low = static_cast<uint32_t>(random_.below(slots) * 16);
    }
  }

  template <typename List, typename Item>
  List make_list(const Item& item) {
    List list;
    for (size_t count = random_.below(5); count > 0; --count) list.items.push_back(item());
    return list;
  }

  std::unique_ptr<fb::EValueT> make(fb::KernelTypes kind) {
    switch (kind) {
      case fb::KernelTypes::Int: {
        fb::IntT number;
        number.int_val = random_.number();
        return value_of(std::move(number));
      }
      case fb::KernelTypes::Double: {
        fb::DoubleT number;
        number.double_val = static_cast<double>(random_.number()) / 2;
        return value_of(std::move(number));
      }
      case fb::KernelTypes::Bool: {
        fb::BoolT flag;
        flag.bool_val = random_.one_in(2);
        return value_of(std::move(flag));
      }
      case fb::KernelTypes::String: {
        fb::StringT text;
        text.string_val = random_.one_in(2) ? "floor" : "none";
        return value_of(std::move(text));
      }
      case fb::KernelTypes::Tensor: return value_of(make_tensor(dtype(), random_.below(5)));
      case fb::KernelTypes::IntList:
        return value_of(
            make_list<fb::IntListT>([&] { return int64_t{find_kind(fb::KernelTypes::Int)}; }));
      case fb::KernelTypes::DoubleList:
        return value_of(
            make_list<fb::DoubleListT>([&] { return static_cast<double>(random_.below(5)) / 2; }));
      case fb::KernelTypes::BoolList:
        return value_of(make_list<fb::BoolListT>([&] { return random_.one_in(2); }));
      case fb::KernelTypes::TensorList: {
        const int type = dtype();
        const size_t rank = random_.below(5);
        return value_of(make_list<fb::TensorListT>([&] { return find_tensor(type, rank); }));
      }
      case fb::KernelTypes::OptionalTensorList:
        return value_of(make_list<fb::OptionalTensorListT>([&] {
          return random_.one_in(3) ? -1 : find_tensor(random_.one_in(4) ? 11 : 4, random_.below(3));
        }));
      default: return value_of(fb::NullT());
    }
  }

  int dtype() {
    static constexpr int kTypes[] = {6, 6, 6, 6, 4, 4, 4, 11, 11, 3, 0, 1, 5, 7, 15};
    return random_.pick(kTypes);
  }

  /// A call of any kernel, with arguments of the kinds of its signature.
  std::unique_ptr<fb::InstructionT> call() {
    const etx_plugin& plugin = *plugins()[0];
    const etx_kernel_table& table = *plugin.tables[random_.below(plugin.num_tables)];
    const etx_kernel& kernel = table.rows[random_.below(table.count)];
    fb::KernelCallT call;
    call.op_index = find_operator(kernel.name);
    const int type = dtype();
    const size_t rank = random_.below(5);
    for (const char* letter = kernel.signature; *letter != '\0';) {
      const char kind = *letter++;
      const bool optional = *letter == '?' || (*letter == '!' && letter[1] == '?');
      while (*letter == '!' || *letter == '?') ++letter;
      call.args.push_back(optional && random_.one_in(3) ? find_kind(fb::KernelTypes::Null)
                                                        : argument(kind, type, rank));
    }
    auto instruction = std::make_unique<fb::InstructionT>();
    instruction->instr_args.Set(std::move(call));
    return instruction;
  }

  int32_t argument(char kind, int type, size_t rank) {
    static constexpr fb::KernelTypes kNumbers[] = {fb::KernelTypes::Int, fb::KernelTypes::Double,
                                                   fb::KernelTypes::Bool};
    switch (kind) {
      case 'T': return find_tensor(random_.one_in(5) ? dtype() : type, rank);
      case 'i': return find_kind(fb::KernelTypes::Int);
      case 'd': return find_kind(fb::KernelTypes::Double);
      case 'b': return find_kind(fb::KernelTypes::Bool);
      case 'c': return find_kind(fb::KernelTypes::String);
      case 'I': return find_kind(fb::KernelTypes::IntList);
      case 'D': return find_kind(fb::KernelTypes::DoubleList);
      case 'B': return find_kind(fb::KernelTypes::BoolList);
      case 'L': return find_kind(fb::KernelTypes::TensorList);
      case 'O': return find_kind(fb::KernelTypes::OptionalTensorList);
      default: return find_kind(random_.pick(kNumbers));
    }
  }

  int32_t find_operator(const char* registered) {
    const std::string full(registered);
    const size_t dot = full.find('.');
    const std::string name = full.substr(0, dot);
    const std::string overload = dot == std::string::npos ? "" : full.substr(dot + 1);
    for (size_t i = 0; i < plan_.operators.size(); ++i) {
      const fb::OperatorT& op = *plan_.operators[i];
      if (op.name == name && op.overload == overload) return static_cast<int32_t>(i);
    }
    plan_.operators.push_back(std::make_unique<fb::OperatorT>());
    plan_.operators.back()->name = name;
    plan_.operators.back()->overload = overload;
    return static_cast<int32_t>(plan_.operators.size() - 1);
  }

  int32_t any_value() { return static_cast<int32_t>(random_.below(plan_.values.size() + 1)) - 1; }

  std::unique_ptr<fb::InstructionT> other() {
    auto instruction = std::make_unique<fb::InstructionT>();
    switch (random_.below(4)) {
      case 0: {
        fb::MoveCallT move;
        move.move_to = find_kind(fb::KernelTypes::Tensor);
        const fb::TensorT* to = plan_.values[static_cast<size_t>(move.move_to)]->val.AsTensor();
        move.move_from = find_tensor(static_cast<int>(to->scalar_type), to->sizes.size());
        if (random_.one_in(4)) move = fb::MoveCallT(), move.move_to = any_value();
        instruction->instr_args.Set(std::move(move));
        break;
      }
      case 1: {
        fb::JumpFalseCallT jump;
        jump.cond_value_index =
            random_.one_in(2) ? find_kind(fb::KernelTypes::Bool) : find_tensor(11, 1);
        jump.destination_instruction = static_cast<int32_t>(random_.below(code().size() + 2));
        instruction->instr_args.Set(std::move(jump));
        break;
      }
      case 2: {
        fb::FreeCallT free;
        free.value_index = find_kind(fb::KernelTypes::Tensor);
        instruction->instr_args.Set(std::move(free));
        break;
      }
      default: {
        fb::DelegateCallT call;
        call.delegate_index = 0;
        for (size_t count = random_.below(4); count > 0; --count) call.args.push_back(any_value());
        call.args.push_back(find_kind(fb::KernelTypes::Tensor));
        instruction->instr_args.Set(std::move(call));
      }
    }
    return instruction;
  }

  void change_arguments() {
    if (code().empty()) return;
    auto& arguments = random_.pick(code())->instr_args;
    std::vector<int32_t>* list = nullptr;
    if (auto* kernel = arguments.AsKernelCall()) list = &kernel->args;
    if (auto* delegate = arguments.AsDelegateCall()) list = &delegate->args;
    if (auto* jump = arguments.AsJumpFalseCall()) {
      jump->destination_instruction = static_cast<int32_t>(random_.below(code().size() + 2));
    }
    if (list == nullptr || list->empty()) return;
    if (random_.one_in(8)) return list->pop_back();
    int32_t& item = random_.pick(*list);
    const auto index = static_cast<size_t>(item);
    item = index < plan_.values.size() && !random_.one_in(4)
               ? find_kind(plan_.values[index]->val.type)
               : any_value();
  }

  void change_tensor() {
    const auto index = static_cast<size_t>(find_kind(fb::KernelTypes::Tensor));
    fb::TensorT& tensor = *plan_.values[index]->val.AsTensor();
    if (random_.one_in(4)) tensor.scalar_type = static_cast<fb::ScalarType>(dtype());
    if (random_.one_in(4)) {
      tensor.shape_dynamism = random_.pick(kDynamism);
    }
    if (!tensor.sizes.empty() && random_.one_in(2)) {
      random_.pick(tensor.sizes) = static_cast<int32_t>(random_.number());
    }
    if (tensor.dim_order.size() > 1 && random_.one_in(4)) {
      std::swap(random_.pick(tensor.dim_order), random_.pick(tensor.dim_order));
    }
    if (random_.one_in(6)) {
      tensor.sizes.push_back(static_cast<int32_t>(random_.below(4)));
      tensor.dim_order.push_back(static_cast<uint8_t>(tensor.dim_order.size()));
    }
    if (random_.one_in(4)) return void(tensor.allocation_info = nullptr);
    if (random_.one_in(2)) place(tensor);
    if (random_.one_in(8)) tensor.data_buffer_idx = static_cast<uint32_t>(random_.below(3));
  }

  void change_value() {
    if (plan_.values.empty()) return;
    auto& value = random_.pick(plan_.values)->val;
    if (auto* number = value.AsInt()) {
      number->int_val = random_.number();
    } else if (auto* flag = value.AsBool()) {
      flag->bool_val = !flag->bool_val;
    } else if (auto* real = value.AsDouble()) {
      real->double_val = static_cast<double>(random_.number());
    } else if (auto* list = value.AsIntList()) {
      list->items.push_back(find_kind(fb::KernelTypes::Int));
    } else if (auto* tensors = value.AsTensorList()) {
      tensors->items.push_back(find_kind(fb::KernelTypes::Tensor));
    } else if (plan_.values.size() < kMostValues) {
      plan_.values.push_back(make(static_cast<fb::KernelTypes>(1 + random_.below(11))));
    }
  }

  void change_io() {
    auto& list = random_.one_in(2) ? plan_.inputs : plan_.outputs;
    if (list.size() > 8 || (!list.empty() && random_.one_in(3))) return list.pop_back();
    list.push_back(random_.one_in(4) ? any_value() : find_kind(fb::KernelTypes::Tensor));
  }

  void change_memory() {
    auto& sizes = plan_.non_const_buffer_sizes;
    if (sizes.empty() || random_.one_in(4)) return sizes.push_back(random_.number());
    random_.pick(sizes) = random_.one_in(2) ? kArena : random_.number();
  }

  static constexpr fb::TensorShapeDynamism kDynamism[] = {fb::TensorShapeDynamism::STATIC,
                                                          fb::TensorShapeDynamism::DYNAMIC_BOUND,
                                                          fb::TensorShapeDynamism::DYNAMIC_BOUND};

  static constexpr int32_t kLarge[] = {
      INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX - 1, 1 << 30, 0x55555556, 1 << 16, 46341, 4, 0};
  static constexpr int64_t kMostBytes = int64_t{1} << 38;
  static constexpr double kReals[] = {0,
                                      -1,
                                      1e300,
                                      -1e300,
                                      5e-324,
                                      9223372036854775808.0,
                                      std::numeric_limits<double>::infinity(),
                                      -std::numeric_limits<double>::infinity(),
                                      std::numeric_limits<double>::quiet_NaN()};

  fb::ExecutionPlanT& plan_;
  Random& random_;
};

/// Fills in the members of unions that the file leaves out: the packer asks for them.
void complete(fb::ExecutionPlanT& plan) {
  for (auto& value : plan.values) {
    if (value->val.value == nullptr) value = value_of(fb::NullT());
  }
  for (auto& chain : plan.chains) {
    for (auto& instruction : chain->instructions) {
      if (instruction->instr_args.value == nullptr) instruction->instr_args.Set(fb::FreeCallT());
    }
  }
}

uint64_t read_number(const Bytes& file, size_t at) {
  uint64_t number = 0;
  std::memcpy(&number, &file[at], sizeof(number));
  return number;
}

/// The program as a file: the extended header after the identifier, then the segments.
Bytes write(const fb::ProgramT& program, const Bytes& segments) {
  ::flatbuffers::FlatBufferBuilder builder;
  builder.Finish(fb::Program::Pack(builder, &program), "ET12");
  const uint8_t* packed = builder.GetBufferPointer();
  Bytes file(packed, packed + builder.GetSize());
  uint8_t header[32] = {'e', 'h', '0', '0', sizeof(header)};
  const uint64_t size = file.size() + sizeof(header);
  const uint64_t base = (size + 15) / 16 * 16;
  const uint64_t rest = segments.size();
  std::memcpy(header + 8, &size, sizeof(size));
  std::memcpy(header + 16, &base, sizeof(base));
  std::memcpy(header + 24, &rest, sizeof(rest));
  uint32_t root = 0;
  std::memcpy(&root, file.data(), sizeof(root));
  root += sizeof(header);
  std::memcpy(file.data(), &root, sizeof(root));
  file.insert(file.begin() + 8, header, header + sizeof(header));
  file.resize(base);
  file.insert(file.end(), segments.begin(), segments.end());
  return file;
}

}  // namespace

namespace {

/// Calls `change` with one of the program's methods and writes the program again.
template <typename Change>
bool rewrite(Bytes& file, Random& random, const Change& change) {
  if (file.size() < 64 || std::memcmp(&file[4], "ET12", 4) != 0) return false;
  size_t where = 0;
  if (!verify_tables(file.data(), file.size(), fb::ProgramTypeTable(), &where)) return false;
  const auto program = fb::UnPackProgram(file.data());
  Bytes segments;
  if (std::memcmp(&file[8], "eh00", 4) == 0 && read_number(file, 24) <= file.size()) {
    segments.assign(file.begin() + static_cast<std::ptrdiff_t>(read_number(file, 24)), file.end());
  }
  if (program->execution_plan.empty()) return false;
  for (auto& plan : program->execution_plan) complete(*plan);
  Method method(*random.pick(program->execution_plan), random);
  change(method);
  file = write(*program, segments);
  return true;
}

}  // namespace

bool mutate_program(Bytes& file, Random& random) {
  return rewrite(file, random, [&](Method& method) {
    for (size_t count = 1 + random.below(4); count > 0; --count) method.mutate();
  });
}

bool enlarge_program(Bytes& file, Random& random) {
  return rewrite(file, random, [&](Method& method) {
    for (size_t count = 1 + random.below(3); count > 0; --count) method.enlarge();
  });
}

}  // namespace etx::fuzz
