/* SPDX-License-Identifier: BSD-3-Clause */
/* stress_c_api <counter.pte> <plugin> [race]: etx.h from eight threads at once, as it says it may
   be used: programs shared and given up by any of them, a method each, cancelled by others. `race`
   has two threads use one method, which it says they must not. For ThreadSanitizer. */
#include <etx/etx.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../cpp/check_c.h"

enum { kThreads = 8, kTurns = 60, kRuns = 20 };

struct stage {
  const char* path;
  const char* plugin;
  /* Loaded by the main thread; the last user gives it up. */
  etx_program* shared;
  etx_method* method;
  pthread_barrier_t barrier;
};

struct worker {
  struct stage* stage;
  size_t number;
};

static void hear(void* user, enum etx_log_level level, const char* message) {
  CHECK(user != NULL && level != ETX_LOG_DEBUG && message[0] != '\0');
}

/* Runs a counter, and returns what it counts to, or -1 when it was cancelled. */
static float run(etx_method* method, float x) {
  const int32_t size = 1;
  etx_output out = {sizeof(out), 0, 0, 0, 0, NULL, NULL, NULL, 0, 0, 0};
  etx_status status;
  CHECK(etx_method_set_tensor(method, 0, &x, ETX_FLOAT32, 1, &size, NULL) == ETX_OK);
  status = etx_method_execute(method);
  CHECK(status == ETX_OK || status == ETX_CANCELLED);
  if (status == ETX_CANCELLED) return -1;
  CHECK(etx_method_get_output(method, 0, &out) == ETX_OK && out.nbytes == sizeof(float));
  return *(const float*)out.data;
}

static void* cancel(void* argument) {
  int i;
  for (i = 0; i < 100; ++i) etx_method_cancel(argument);
  return NULL;
}

/* A method of the thread's own: sums, state, and cancellation from another thread. */
static void use_method(etx_program* program, size_t number, int gives_up) {
  const float start = (float)number;
  etx_method* method = NULL;
  pthread_t other;
  int i;
  CHECK(etx_method_load(program, "forward", &method) == ETX_OK);
  if (gives_up) etx_program_free(program);
  CHECK(etx_method_set_buffer(method, "count", &start, sizeof(start)) == ETX_OK);
  for (i = 1; i <= kRuns; ++i) CHECK(run(method, 1) == start + (float)i);
  CHECK(pthread_create(&other, NULL, cancel, method) == 0);
  for (i = 0; i < kRuns; ++i) run(method, 1);
  CHECK(pthread_join(other, NULL) == 0);
  etx_method_clear_cancel(method);
  CHECK(etx_method_reset_state(method) == ETX_OK && run(method, 1) == 6);
  etx_method_free(method);
}

/* Each thread hears only of its own failures. */
static void fail(const etx_program* program, size_t number) {
  etx_value_info info = {sizeof(info), 0, 0, 0, 0, 0, NULL, NULL, 0, NULL};
  char name[32];
  sprintf(name, "none %u", (unsigned)number);
  CHECK(etx_program_input_info(program, name, 0, &info) == ETX_NOT_FOUND);
  CHECK(strstr(etx_last_error(), name) != NULL);
  CHECK(etx_program_input_info(program, "forward", 0, &info) == ETX_OK && info.sizes[0] == 1);
  CHECK(strstr(etx_last_error(), name) != NULL);
}

static void* work(void* argument) {
  const struct worker* worker = argument;
  struct stage* stage = worker->stage;
  int turn;
  for (turn = 0; turn < kTurns; ++turn) {
    etx_load_options options = ETX_LOAD_OPTIONS_INIT;
    etx_program* own = NULL;
    options.use_mmap = turn % 2;
    CHECK(etx_program_load_file(stage->path, &options, &own) == ETX_OK);
    use_method(stage->shared, worker->number, 0);
    fail(stage->shared, worker->number);
    use_method(own, worker->number, 1);
    CHECK(etx_load_plugin(stage->plugin) == ETX_OK);
    etx_set_num_threads(1 + (uint32_t)turn % 4);
    CHECK(etx_num_threads() > 0);
    CHECK(etx_set_log_sink(hear, stage) == ETX_OK);
    etx_set_log_level(turn % 2 == 0 ? ETX_LOG_INFO : ETX_LOG_FATAL);
  }
  if (pthread_barrier_wait(&stage->barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
    etx_program_free(stage->shared);
  }
  return NULL;
}

static void* race(void* argument) {
  const struct worker* worker = argument;
  int i;
  for (i = 0; i < 1000; ++i) run(worker->stage->method, 1);
  return NULL;
}

int main(int count, char** arguments) {
  struct stage stage = {NULL, NULL, NULL, NULL, {{0}}};
  struct worker workers[kThreads];
  pthread_t threads[kThreads];
  const int races = count == 4 && strcmp(arguments[3], "race") == 0;
  size_t i;
  CHECK(count == 3 || races);
  stage.path = arguments[1];
  stage.plugin = arguments[2];
  CHECK(etx_load_plugin(stage.plugin) == ETX_OK);
  CHECK(etx_program_load_file(stage.path, NULL, &stage.shared) == ETX_OK);
  CHECK(etx_method_load(stage.shared, "forward", &stage.method) == ETX_OK);
  CHECK(pthread_barrier_init(&stage.barrier, NULL, kThreads) == 0);
  for (i = 0; i < kThreads; ++i) {
    workers[i].stage = &stage;
    workers[i].number = i;
    CHECK(pthread_create(&threads[i], NULL, races ? race : work, &workers[i]) == 0);
  }
  for (i = 0; i < kThreads; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  CHECK(run(stage.method, 1) > 5);
  etx_method_free(stage.method);
  if (races) etx_program_free(stage.shared);
  CHECK(etx_set_log_sink(NULL, NULL) == ETX_OK);
  printf("%d threads\n", kThreads);
  return 0;
}
