/* SPDX-License-Identifier: BSD-3-Clause */
/* app <mobilenet_v2.pte> <kernels> < image.bin: prints the scores of the classes. */
#include <etx/etx.h>

#include <stdio.h>

static int fail(void) {
  fprintf(stderr, "%s\n", etx_last_error());
  return 1;
}

int main(int count, char** arguments) {
  static float image[3 * 224 * 224];
  const int32_t sizes[] = {1, 3, 224, 224};
  etx_program* program = NULL;
  etx_method* method = NULL;
  etx_output scores = {.struct_size = sizeof(scores)};
  if (count != 3 || fread(image, sizeof(image), 1, stdin) != 1) return 2;
  if (etx_load_plugin(arguments[2]) != ETX_OK) return fail();
  if (etx_program_load_file(arguments[1], NULL, &program) != ETX_OK) return fail();
  if (etx_method_load(program, "forward", &method) != ETX_OK) return fail();
  etx_program_free(program); /* the method keeps what it needs */
  if (etx_method_set_tensor(method, 0, image, ETX_FLOAT32, 4, sizes, NULL) != ETX_OK) return fail();
  if (etx_method_execute(method) != ETX_OK) return fail();
  if (etx_method_get_output(method, 0, &scores) != ETX_OK) return fail();
  for (size_t i = 0; i < scores.nbytes / sizeof(float); ++i) {
    printf("%.9g\n", (double)((const float*)scores.data)[i]);
  }
  etx_method_free(method);
  return 0;
}
