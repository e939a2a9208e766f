// SPDX-License-Identifier: BSD-3-Clause
#include "describe.h"

#include <cstdio>

namespace etx {
namespace {

std::string join(const std::vector<std::string>& items) {
  std::string result;
  for (const std::string& item : items) result += (result.empty() ? "" : ", ") + item;
  return result;
}

std::string full_name(const Failure& failure) {
  std::string name = failure.name == nullptr ? "" : failure.name;
  if (failure.overload != nullptr && *failure.overload != '\0') {
    name += std::string(".") + failure.overload;
  }
  return name;
}

std::string describe_list(const EValue& value) {
  std::vector<std::string> items;
  const auto count = static_cast<size_t>(value.count);
  for (size_t i = 0; i < count && i < kMaxRank; ++i) {
    switch (value.tag()) {
      case Tag::ListInt: items.push_back(std::to_string(value.to_int_list()[i])); break;
      case Tag::ListDouble: items.push_back(std::to_string(value.to_double_list()[i])); break;
      case Tag::ListBool: items.push_back(value.to_bool_list()[i] ? "True" : "False"); break;
      default: {
        const etx_value* item = value.payload.as_tensor_list[i];
        items.push_back(item == nullptr ? "None" : describe_value(*item));
      }
    }
  }
  if (count > kMaxRank) items.emplace_back("...");
  return "[" + join(items) + "]";
}

std::string describe_arguments(Span<etx_value* const> args) {
  std::vector<std::string> items;
  for (const etx_value* value : args) items.push_back(describe_value(*value));
  return "; arguments: " + join(items);
}

}  // namespace

std::string describe_tensor(ScalarType type, Span<const int32_t> sizes, bool bounds) {
  std::vector<std::string> items;
  for (const int32_t size : sizes) items.push_back((bounds ? "<=" : "") + std::to_string(size));
  return std::string(to_string(type)) + "[" + join(items) + "]";
}

std::string describe_value(const etx_value& raw) {
  const EValue& value = static_cast<const EValue&>(raw);
  switch (value.tag()) {
    case Tag::None: return "None";
    case Tag::Tensor: {
      const Tensor tensor = value.to_tensor();
      return describe_tensor(tensor.scalar_type(), tensor.sizes());
    }
    case Tag::Int: return std::to_string(value.to_int());
    case Tag::Double: {
      char text[32];
      std::snprintf(text, sizeof(text), "%g", value.to_double());
      return text;
    }
    case Tag::Bool: return value.to_bool() ? "True" : "False";
    case Tag::String: return "'" + std::string(value.to_string_view()) + "'";
    default: return describe_list(value);
  }
}

std::string counted(size_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string describe_error(Error error) {
  char code[16];
  std::snprintf(code, sizeof(code), " (0x%02x)", static_cast<unsigned>(error));
  return to_string(error) + std::string(code);
}

void MessageSink::report(const Failure& failure) {
  const std::string name = full_name(failure);
  if (failure.error == Error::OperatorMissing) {
    missing_.emplace_back(name, failure.instruction);
    return;
  }
  ErrorText text;
  text.error = failure.error;
  text.name = name;
  text.instruction = failure.instruction;
  text.index = failure.index;
  if (!name.empty()) text.message = name + ": ";
  text.message += failure.reason == nullptr ? "failed" : failure.reason;
  std::vector<std::string> where;
  if (failure.instruction >= 0) {
    where.push_back("instruction " + std::to_string(failure.instruction));
  }
  if (failure.index >= 0) where.push_back("index " + std::to_string(failure.index));
  if (failure.offset >= 0) where.push_back("byte " + std::to_string(failure.offset));
  where.push_back(describe_error(failure.error));
  text.message += " [" + join(where) + "]";
  if (!failure.args.empty()) text.message += describe_arguments(failure.args);
  others_.push_back(text);
}

ErrorText MessageSink::text(Error error) const {
  ErrorText result;
  result.error = error;
  if (!missing_.empty()) {
    std::vector<std::string> names;
    for (const auto& [name, instruction] : missing_) names.push_back(name);
    result.missing = missing_;
    result.name = names.front();
    result.instruction = missing_.front().second;
    result.message = "no kernel for " + counted(names.size(), "operator") + ": " + join(names) +
                     "; install or load a plugin that has " + (names.size() == 1 ? "it" : "them") +
                     " (etx-kernels-portable holds the standard ones)";
  } else if (!others_.empty()) {
    result = others_.back();
  } else {
    result.message = describe_error(error);
  }
  return result;
}

ErrorText describe_execution(const Method& method, const Failure& failure) {
  ErrorText text;
  text.error = failure.error;
  text.name = full_name(failure);
  text.instruction = failure.instruction;
  if (failure.instruction < 0) {
    text.message = "output " + std::to_string(failure.index) + ": " + failure.reason + " [" +
                   describe_error(failure.error) + "]";
    return text;
  }
  if (failure.error == Error::Cancelled) {
    text.message = "cancelled at instruction " + std::to_string(failure.instruction) +
                   (text.name.empty() ? "" : ", " + text.name) + " [" +
                   describe_error(failure.error) + "]";
    return text;
  }
  text.message =
      (text.name.empty() ? "" : text.name + " ") + "failed at instruction " +
      std::to_string(failure.instruction) + ": " +
      (failure.reason == nullptr ? "no reason given" : failure.reason) + " [" +
      describe_error(failure.error) + "]" +
      describe_arguments(method.instruction_args(static_cast<size_t>(failure.instruction)));
  return text;
}

}  // namespace etx
