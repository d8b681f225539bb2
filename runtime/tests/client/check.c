#define _GNU_SOURCE
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int wrong;

void want(const char* file, int line, const char* what, int got, int wanted) {
  if (got == wanted) return;
  printf("%s:%d: %s is %d, not %d\n", file, line, what, got, wanted);
  __atomic_store_n(&wrong, 1, __ATOMIC_SEQ_CST);
}

static ANeuralNetworksDevice* device(bool last) {
  uint32_t count = 0;
  ANeuralNetworksDevice* device = NULL;
  WANT(OK, ANeuralNetworks_getDeviceCount(&count));
  HOLDS(count >= 2);
  WANT(OK, ANeuralNetworks_getDevice(last ? count - 1 : 0, &device));
  return device;
}

ANeuralNetworksDevice* last_device(void) { return device(true); }
ANeuralNetworksDevice* first_device(void) { return device(false); }

ANeuralNetworksOperandType tensor(int32_t type, uint32_t rank, const uint32_t* dimensions) {
  return (ANeuralNetworksOperandType){.type = type, .dimensionCount = rank, .dimensions = dimensions};
}

ANeuralNetworksOperandType scalar(int32_t type) { return tensor(type, 0, NULL); }

/* The index that the operand gets. */
uint32_t add(ANeuralNetworksModel* model, ANeuralNetworksOperandType type) {
  static _Thread_local ANeuralNetworksModel* last;
  static _Thread_local uint32_t next;
  if (last != model) next = 0;
  last = model;
  WANT(OK, ANeuralNetworksModel_addOperand(model, &type));
  return next++;
}

ANeuralNetworksModel* unfinished_sum(uint32_t length, uint32_t out) {
  ANeuralNetworksModel* model = NULL;
  int32_t none = ANEURALNETWORKS_FUSED_NONE;
  WANT(OK, ANeuralNetworksModel_create(&model));
  uint32_t in[3] = {add(model, tensor(ANEURALNETWORKS_TENSOR_FLOAT32, 1, &length)),
                    add(model, tensor(ANEURALNETWORKS_TENSOR_FLOAT32, 1, &length)),
                    add(model, scalar(ANEURALNETWORKS_INT32))};
  uint32_t result = add(model, tensor(ANEURALNETWORKS_TENSOR_FLOAT32, 1, &out));
  WANT(OK, ANeuralNetworksModel_setOperandValue(model, 2, &none, sizeof none));
  WANT(OK, ANeuralNetworksModel_addOperation(model, ANEURALNETWORKS_ADD, 3, in, 1, &result));
  WANT(OK, ANeuralNetworksModel_identifyInputsAndOutputs(model, 2, in, 1, &result));
  return model;
}

ANeuralNetworksModel* sum(uint32_t length, uint32_t out) {
  ANeuralNetworksModel* model = unfinished_sum(length, out);
  WANT(OK, ANeuralNetworksModel_finish(model));
  return model;
}

ANeuralNetworksCompilation* compiled(ANeuralNetworksModel* model) {
  ANeuralNetworksCompilation* compilation = NULL;
  WANT(OK, ANeuralNetworksCompilation_create(model, &compilation));
  WANT(OK, ANeuralNetworksCompilation_finish(compilation));
  return compilation;
}

ANeuralNetworksCompilation* compiled_for(ANeuralNetworksModel* model, ANeuralNetworksDevice* device) {
  ANeuralNetworksCompilation* compilation = NULL;
  const ANeuralNetworksDevice* one[] = {device};
  WANT(OK, ANeuralNetworksCompilation_createForDevices(model, one, 1, &compilation));
  WANT(OK, ANeuralNetworksCompilation_finish(compilation));
  return compilation;
}

ANeuralNetworksExecution* ready(ANeuralNetworksCompilation* compilation, const float* x, const float* y,
                                float* out, uint32_t length) {
  ANeuralNetworksExecution* execution = NULL;
  size_t bytes = length * sizeof *x;
  WANT(OK, ANeuralNetworksExecution_create(compilation, &execution));
  WANT(OK, ANeuralNetworksExecution_setInput(execution, 0, NULL, x, bytes));
  WANT(OK, ANeuralNetworksExecution_setInput(execution, 1, NULL, y, bytes));
  WANT(OK, ANeuralNetworksExecution_setOutput(execution, 0, NULL, out, bytes));
  return execution;
}

int shared(size_t size) {
  int fd = memfd_create("client", MFD_CLOEXEC);
  HOLDS(fd >= 0);
  HOLDS(ftruncate(fd, (off_t)size) == 0);
  return fd;
}

ANeuralNetworksMemory* memory_of(int fd, size_t size) {
  ANeuralNetworksMemory* memory = NULL;
  WANT(OK, ANeuralNetworksMemory_createFromFd(size, PROT_READ | PROT_WRITE, fd, 0, &memory));
  return memory;
}

#define GROUP(name) {#name, name}
static const struct {
  const char* name;
  void (*run)(void);
} groups[] = {
    GROUP(load),        GROUP(devices),      GROUP(operands),        GROUP(operations),
    GROUP(extensions),  GROUP(compilations), GROUP(memories),        GROUP(descriptions),
    GROUP(device_memories), GROUP(hardware_buffers), GROUP(arguments), GROUP(computing),
    GROUP(results),     GROUP(failures),     GROUP(scalars),         GROUP(level_five),
    GROUP(control_flow), GROUP(bursts),      GROUP(events),          GROUP(fences),
    GROUP(handles),     GROUP(order_of_freeing), GROUP(forked),      GROUP(threads),
    GROUP(growth),
};

/* Whether there is a group of this name; it has run then. */
static bool ran(const char* name) {
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
    if (strcmp(name, groups[i].name) != 0) continue;
    groups[i].run();
    return true;
  }
  return false;
}

/* client GROUP...: 0 where everything in them is as it should be; client --list: the names of the groups. */
int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "--list") == 0) {
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) puts(groups[i].name);
    return 0;
  }
  for (int i = 1; i < argc; i++)
    if (!ran(argv[i])) return 2;
  return argc > 1 ? wrong : 2;
}
