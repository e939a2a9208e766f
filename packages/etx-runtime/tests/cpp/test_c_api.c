/* SPDX-License-Identifier: BSD-3-Clause */
/* test_c_api <counter.pte> <loop.pte> <plugin>: the C interface, in C99. */
#include <etx/etx.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_c.h"

static int messages = 0;
static int released = 0;

static void count_message(void* user, enum etx_log_level level, const char* message) {
  CHECK(user == &messages && message[0] != '\0');
  CHECK(level == ETX_LOG_ERROR || level == ETX_LOG_INFO);
  CHECK(etx_set_log_sink(NULL, NULL) == ETX_INVALID_STATE);
  ++messages;
}

static void release(void* context, const void* data) {
  CHECK(context == &released);
  free((void*)data);
  ++released;
}

static int says(const char* text) { return strstr(etx_last_error(), text) != NULL; }

static float run(etx_method* method, float x) {
  const int32_t size = 1;
  etx_output out = {sizeof(out), 0, 0, 0, 0, NULL, NULL, NULL, 0, 0, 0};
  CHECK(etx_method_set_tensor(method, 0, &x, ETX_FLOAT32, 1, &size, NULL) == ETX_OK);
  CHECK(etx_method_execute(method) == ETX_OK);
  CHECK(etx_method_get_output(method, 0, &out) == ETX_OK);
  CHECK(out.tag == ETX_TAG_TENSOR && out.dtype == ETX_FLOAT32 && out.rank == 1);
  CHECK(out.sizes[0] == 1 && out.strides[0] == 1 && out.nbytes == sizeof(float));
  return *(const float*)out.data;
}

static void describe(const etx_program* program) {
  size_t inputs, outputs, buffers, method_bytes, arena = 0, arenas = 1;
  etx_value_info info = {sizeof(info), 0, 0, 0, 0, 0, NULL, NULL, 0, NULL};
  CHECK(etx_program_num_methods(program) == 1);
  CHECK(strcmp(etx_program_method_name(program, 0), "forward") == 0);
  CHECK(etx_program_method_name(program, 1) == NULL);
  CHECK(etx_program_method_counts(program, "forward", &inputs, &outputs, &buffers) == ETX_OK);
  CHECK(inputs == 1 && outputs == 1 && buffers == 1);
  CHECK(etx_program_method_counts(program, "other", NULL, NULL, NULL) == ETX_NOT_FOUND);
  CHECK(says("no method 'other'"));
  CHECK(etx_program_input_info(program, "forward", 0, &info) == ETX_OK);
  CHECK(info.tag == ETX_TAG_TENSOR && info.dtype == ETX_FLOAT32 && info.rank == 1);
  CHECK(info.sizes[0] == 1 && info.dim_order[0] == 0 && info.nbytes == 4);
  CHECK(info.is_planned == 1 && info.is_dynamic == 0 && info.name[0] == '\0');
  CHECK(etx_program_output_info(program, "forward", 0, &info) == ETX_OK);
  CHECK(etx_program_output_info(program, "forward", 1, &info) == ETX_INVALID_ARGUMENT);
  CHECK(etx_program_buffer_info(program, "forward", 0, &info) == ETX_OK);
  CHECK(strcmp(info.name, "count") == 0);
  CHECK(etx_program_buffer_info(program, "forward", 1, &info) == ETX_INVALID_ARGUMENT);
  info.struct_size = 0;
  CHECK(etx_program_input_info(program, "forward", 0, &info) == ETX_INVALID_ARGUMENT);
  CHECK(etx_program_required_bytes(program, "forward", &method_bytes, &arena, &arenas) == ETX_OK);
  CHECK(arenas == 1 && arena > 0 && method_bytes > 0);
}

static void nulls(const etx_program* program, etx_method* method) {
  etx_program* loaded = NULL;
  etx_load_options options = ETX_LOAD_OPTIONS_INIT;
  size_t size = 0;
  const int32_t sizes[] = {1};
  CHECK(etx_program_load_file(NULL, NULL, &loaded) == ETX_INVALID_ARGUMENT);
  CHECK(says("the argument 'path' is null"));
  CHECK(etx_program_load_file("/none.pte", NULL, NULL) == ETX_INVALID_ARGUMENT);
  options.num_data_paths = 1;
  CHECK(etx_program_load_file("/none.pte", &options, &loaded) == ETX_INVALID_ARGUMENT);
  CHECK(says("data_paths is null"));
  CHECK(etx_program_load_memory(NULL, 64, NULL, NULL, NULL, &loaded) == ETX_INVALID_ARGUMENT);
  CHECK(etx_program_num_methods(NULL) == 0 && etx_program_method_name(NULL, 0) == NULL);
  CHECK(etx_program_named_data(program, NULL, NULL, &size) == ETX_INVALID_ARGUMENT);
  CHECK(etx_program_named_data(program, "key", NULL, NULL) == ETX_INVALID_ARGUMENT);
  CHECK(etx_program_method_counts(program, NULL, NULL, NULL, NULL) == ETX_INVALID_ARGUMENT);
  CHECK(etx_program_input_info(program, "forward", 0, NULL) == ETX_INVALID_ARGUMENT);
  size = 1;
  CHECK(etx_program_required_bytes(program, "forward", &size, NULL, &size) == ETX_INVALID_ARGUMENT);
  CHECK(etx_method_load(NULL, "forward", &method) == ETX_INVALID_ARGUMENT && says("'program'"));
  CHECK(etx_method_num_inputs(NULL) == 0 && etx_method_num_outputs(NULL) == 0);
  CHECK(etx_method_set_tensor(method, 0, sizes, 3, 1, NULL, NULL) == ETX_INVALID_ARGUMENT);
  CHECK(says("'sizes' is null"));
  CHECK(etx_method_set_int(NULL, 0, 1) == ETX_INVALID_ARGUMENT && says("'method' is null"));
  CHECK(etx_method_execute(NULL) == ETX_INVALID_ARGUMENT);
  CHECK(etx_method_get_output(method, 0, NULL) == ETX_INVALID_ARGUMENT);
  CHECK(etx_method_get_buffer(method, "count", NULL) == ETX_INVALID_ARGUMENT);
  CHECK(etx_method_set_buffer(method, "count", NULL, 4) == ETX_INVALID_ARGUMENT);
  CHECK(etx_method_reset_state(NULL) == ETX_INVALID_ARGUMENT);
  CHECK(etx_load_plugin(NULL) == ETX_INVALID_ARGUMENT);
  CHECK(etx_add_plugin(NULL) == ETX_INVALID_ARGUMENT);
  etx_method_cancel(NULL);
  etx_method_clear_cancel(NULL);
  etx_method_set_instruction_budget(NULL, 1);
}

static void backend_options(etx_program* program) {
  etx_backend_option option = {"NoBackend", "key", ETX_TAG_BOOL, 0, 1, NULL};
  etx_method_options options = ETX_METHOD_OPTIONS_INIT;
  etx_method* method = NULL;
  CHECK(etx_method_load_with(program, "forward", &options, &method) == ETX_OK);
  etx_method_free(method);
  method = NULL;
  options.num_backend_options = 1;
  CHECK(etx_method_load_with(program, "forward", &options, &method) == ETX_INVALID_ARGUMENT);
  CHECK(says("backend_options is null"));
  options.backend_options = &option;
  CHECK(etx_method_load_with(program, "forward", &options, &method) == ETX_NOT_FOUND);
  CHECK(says("there is no backend 'NoBackend'") && method == NULL);
  option.tag = ETX_TAG_STRING;
  CHECK(etx_method_load_with(program, "forward", &options, &method) == ETX_INVALID_ARGUMENT);
  CHECK(says("backend_options[0]: as_string is null"));
  option.tag = ETX_TAG_DOUBLE;
  CHECK(etx_method_load_with(program, "forward", &options, &method) == ETX_INVALID_ARGUMENT);
  CHECK(says("expected ETX_TAG_BOOL, ETX_TAG_INT or ETX_TAG_STRING"));
  options.struct_size = 8;
  CHECK(etx_method_load_with(program, "forward", &options, &method) == ETX_INVALID_ARGUMENT);
}

static void inputs_and_state(etx_program* program) {
  const int32_t sizes[] = {1, 2};
  const float x = 1, nine = 9;
  etx_method* method = NULL;
  etx_output count = {sizeof(count), 0, 0, 0, 0, NULL, NULL, NULL, 0, 0, 0};
  CHECK(etx_method_load(program, "other", &method) == ETX_NOT_FOUND && method == NULL);
  CHECK(etx_method_load(program, "forward", &method) == ETX_OK);
  nulls(program, method);
  backend_options(program);
  etx_program_free(program);
  CHECK(etx_method_num_inputs(method) == 1 && etx_method_num_outputs(method) == 1);
  CHECK(run(method, 1) == 6 && run(method, 1) == 7);
  CHECK(etx_method_get_buffer(method, "count", &count) == ETX_OK && *(float*)count.data == 7);
  CHECK(etx_method_set_buffer(method, "count", &nine, sizeof(nine)) == ETX_OK);
  CHECK(run(method, 1) == 10);
  CHECK(etx_method_set_buffer(method, "count", &nine, 3) == ETX_INVALID_ARGUMENT && says("got 3"));
  CHECK(etx_method_set_buffer(method, "none", &nine, 4) == ETX_NOT_FOUND && says("'none'"));
  CHECK(etx_method_reset_state(method) == ETX_OK && run(method, 2) == 7);
  CHECK(etx_method_set_tensor(method, 0, &x, ETX_INT32, 1, sizes, NULL) == ETX_INVALID_ARGUMENT);
  CHECK(says("expected float32[1], got int32[1]"));
  CHECK(etx_method_set_tensor(method, 0, &x, ETX_FLOAT32, 1, sizes + 1, NULL) == ETX_NOT_SUPPORTED);
  CHECK(etx_method_set_tensor(method, 0, &x, ETX_FLOAT32, 2, sizes, NULL) == ETX_NOT_SUPPORTED);
  CHECK(etx_method_set_tensor(method, 0, &x, 99, 1, sizes, NULL) == ETX_INVALID_ARGUMENT);
  CHECK(etx_method_set_tensor(method, 0, &x, 6, 17, sizes, NULL) == ETX_INVALID_ARGUMENT);
  CHECK(etx_method_set_tensor(method, 0, NULL, 6, 1, sizes, NULL) == ETX_INVALID_ARGUMENT);
  CHECK(etx_method_set_tensor(method, 1, &x, 6, 1, sizes, NULL) == ETX_INVALID_ARGUMENT);
  CHECK(etx_method_set_int(method, 0, 1) == ETX_INVALID_ARGUMENT && says("expected float32[1]"));
  CHECK(etx_method_set_double(method, 9, 1) == ETX_INVALID_ARGUMENT && says("no input 9"));
  CHECK(etx_method_set_bool(method, 0, true) == ETX_INVALID_ARGUMENT);
  CHECK(etx_method_get_output(method, 1, &count) == ETX_INVALID_ARGUMENT);
  etx_method_cancel(method);
  CHECK(etx_method_execute(method) == ETX_CANCELLED && says("cancelled at instruction 0"));
  etx_method_cancel(method);
  etx_method_clear_cancel(method);
  CHECK(run(method, 1) == 8);
  etx_method_free(method);
}

static void memory(const char* path) {
  FILE* file = fopen(path, "rb");
  char* bytes = malloc(1 << 16);
  char* copy = malloc(1 << 16);
  size_t size, text_size = 0;
  etx_program* program = NULL;
  etx_method* method = NULL;
  etx_load_options options = ETX_LOAD_OPTIONS_INIT;
  CHECK(file != NULL && bytes != NULL && copy != NULL);
  size = fread(bytes, 1, 1 << 16, file);
  memcpy(copy, bytes, size);
  CHECK(etx_program_load_memory(bytes, size, release, &released, NULL, &program) == ETX_OK);
  CHECK(etx_method_load(program, "forward", &method) == ETX_OK);
  etx_program_free(program);
  CHECK(released == 0 && run(method, 1) == 6);
  etx_method_free(method);
  CHECK(released == 1);
  copy[4] = 'X';
  CHECK(etx_program_load_memory(copy, size, NULL, NULL, NULL, &program) == ETX_INVALID_PROGRAM);
  CHECK(says("ET12 is missing [byte 4"));
  options.struct_size = 4;
  CHECK(etx_program_load_memory(copy, size, release, &released, &options, &program) ==
        ETX_INVALID_ARGUMENT);
  CHECK(released == 2);
#ifndef _WIN32
  CHECK(etx_program_load_fd(fileno(file), 0, 0, NULL, &program) == ETX_OK);
  CHECK(etx_program_named_data(program, "none", NULL, &text_size) == ETX_NOT_FOUND);
  etx_program_free(program);
  CHECK(etx_program_load_fd(fileno(file), size, 1, NULL, &program) == ETX_ACCESS_FAILED);
  CHECK(says("ends after the file"));
#endif
  fclose(file);
}

/// A buffer that the file leaves to the caller.
static void open_buffer(const char* path) {
  const float two[] = {2, 3};
  const int32_t sizes[] = {2, 1};
  etx_program* program = NULL;
  etx_method* method = NULL;
  etx_output out = {sizeof(out), 0, 0, 0, 0, NULL, NULL, NULL, 0, 0, 0};
  CHECK(etx_program_load_file(path, NULL, &program) == ETX_OK);
  CHECK(etx_method_load(program, "open", &method) == ETX_OK);
  CHECK(etx_method_set_tensor(method, 0, two, ETX_FLOAT32, 2, sizes, NULL) == ETX_OK);
  CHECK(etx_method_execute(method) == ETX_INVALID_STATE && says("'count' has no memory"));
  CHECK(etx_method_get_buffer(method, "count", &out) == ETX_OK && out.data == NULL);
  CHECK(etx_method_set_buffer(method, "count", two, sizeof(two)) == ETX_OK);
  CHECK(etx_method_execute(method) == ETX_OK);
  CHECK(etx_method_get_buffer(method, "count", &out) == ETX_OK && ((float*)out.data)[1] == 6);
  etx_method_free(method);
  etx_program_free(program);
}

static void loop(const char* path) {
  etx_program* program = NULL;
  etx_method* method = NULL;
  etx_output out = {sizeof(out), 0, 0, 0, 0, NULL, NULL, NULL, 0, 0, 0};
  CHECK(etx_program_load_file(path, NULL, &program) == ETX_OK);
  CHECK(etx_method_load(program, "forward", &method) == ETX_OK);
  etx_method_set_instruction_budget(method, 1000);
  CHECK(etx_method_execute(method) == ETX_OUT_OF_RESOURCES && says("instruction budget"));
  CHECK(etx_method_get_output(method, 0, &out) == ETX_OK && out.tag == ETX_TAG_INT);
  CHECK(out.as_int > 100);
  etx_method_free(method);
  etx_program_free(program);
}

static int64_t draw(etx_method* method) {
  etx_output out = {sizeof(out), 0, 0, 0, 0, NULL, NULL, NULL, 0, 0, 0};
  CHECK(etx_method_execute(method) == ETX_OK);
  CHECK(etx_method_get_output(method, 1, &out) == ETX_OK && out.tag == ETX_TAG_INT);
  return out.as_int;
}

static void seed(const char* path) {
  etx_program* program = NULL;
  etx_method* method = NULL;
  CHECK(etx_program_load_file(path, NULL, &program) == ETX_OK);
  CHECK(etx_method_load(program, "draw", &method) == ETX_OK);
  CHECK(draw(method) == 1 && draw(method) == 3);
  etx_method_seed(method, 5);
  CHECK(draw(method) == 5001 && draw(method) == 5003);
  etx_method_seed(NULL, 5);
  etx_method_free(method);
  etx_program_free(program);
}

int main(int count, char** arguments) {
  etx_program* program = NULL;
  etx_method* method = NULL;
  etx_load_options options = ETX_LOAD_OPTIONS_INIT;
  CHECK(count == 4);
  CHECK(etx_api_version() == ETX_API_MAJOR * 65536 + ETX_API_MINOR);
  CHECK(etx_last_error()[0] == '\0');
  etx_set_log_level(ETX_LOG_INFO);
  CHECK(etx_set_log_sink(count_message, &messages) == ETX_OK);
  CHECK(etx_program_load_file("/none.pte", NULL, &program) == ETX_ACCESS_FAILED);
  CHECK(says("/none.pte: ") && messages == 1 && program == NULL);
  CHECK(strcmp(etx_status_name(ETX_ACCESS_FAILED), "AccessFailed") == 0);
  CHECK(etx_load_plugin("/none.so") == ETX_NOT_FOUND && messages == 2);
  options.use_mmap = 0;
  CHECK(etx_program_load_file(arguments[1], &options, &program) == ETX_OK && messages == 3);
  CHECK(etx_method_load(program, "forward", &method) == ETX_OPERATOR_MISSING && messages == 4);
  CHECK(says("no kernel for 2 operators: aten::add.out, aten::copy_"));
  etx_set_log_level(ETX_LOG_FATAL);
  CHECK(etx_load_plugin(arguments[3]) == ETX_OK && messages == 4);
  etx_set_num_threads(2);
  CHECK(etx_num_threads() == 2);
  describe(program);
  inputs_and_state(program);
  memory(arguments[1]);
  open_buffer(arguments[2]);
  loop(arguments[2]);
  seed(arguments[2]);
  CHECK(etx_set_log_sink(NULL, NULL) == ETX_OK && messages == 4);
  etx_program_free(NULL);
  etx_method_free(NULL);
  return 0;
}
