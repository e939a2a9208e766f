// SPDX-License-Identifier: BSD-3-Clause
// A plug-in of QEMU: writes to the file `to`, before each execution of an instruction at one of the
// addresses `marks` (hexadecimal, colons between them), the address and how many instructions were
// executed so far; at the end only the number. For one processor. What it calls is declared in
// QEMU's qemu-plugin.h, which some distributions leave out.

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
struct qemu_info_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { kNoRegisters = 0, kAdd = 0, kMostMarks = 512 };

EXPORT int qemu_plugin_version = 1;
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
                                           void (*f)(qemu_plugin_id_t, struct qemu_plugin_tb*));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb* block);
struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb* block, size_t i);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn* insn);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn* insn,
                                            void (*f)(unsigned, void*), int flags, void* user);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn* insn, int operation,
                                                void* at, uint64_t number);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, void (*f)(qemu_plugin_id_t, void*),
                                    void* user);

static uint64_t executed;
static uint64_t marks[kMostMarks];
static size_t num_marks;
static FILE* file;

static void write_mark(unsigned cpu, void* user) {
  (void)cpu;
  fprintf(file, "%" PRIx64 " %" PRIu64 "\n", *(const uint64_t*)user, executed);
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb* block) {
  (void)id;
  for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); ++i) {
    struct qemu_plugin_insn* insn = qemu_plugin_tb_get_insn(block, i);
    for (size_t k = 0; k < num_marks; ++k) {
      if (marks[k] != qemu_plugin_insn_vaddr(insn)) continue;
      qemu_plugin_register_vcpu_insn_exec_cb(insn, write_mark, kNoRegisters, &marks[k]);
    }
    qemu_plugin_register_vcpu_insn_exec_inline(insn, kAdd, &executed, 1);
  }
}

static void finish(qemu_plugin_id_t id, void* user) {
  (void)id;
  (void)user;
  fprintf(file, "%" PRIu64 "\n", executed);
  fclose(file);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t* info, int argc,
                               char** argv) {
  (void)info;
  for (int i = 0; i < argc; ++i) {
    if (strncmp(argv[i], "to=", 3) == 0) file = fopen(argv[i] + 3, "w");
    if (strncmp(argv[i], "marks=", 6) != 0) continue;
    for (char* at = argv[i] + 6; *at != '\0' && num_marks < kMostMarks;) {
      marks[num_marks++] = strtoull(at, &at, 16);
      if (*at == ':') ++at;
    }
  }
  if (file == NULL) return 1;
  qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
  qemu_plugin_register_atexit_cb(id, finish, NULL);
  return 0;
}
