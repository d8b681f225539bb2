/* Memories: of descriptors, of hardware buffers, for roles. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

/* x + y, all three in one memory: x at 0, y at 8, the output at 16. */
static void compute_in(ANeuralNetworksMemory* memory, float* mapped) {
  ANeuralNetworksModel* model = sum(2, 2);
  ANeuralNetworksCompilation* compilation = compiled(model);
  ANeuralNetworksExecution* execution = NULL;
  const float x[4] = {1, 2, 10, 20};
  memcpy(mapped, x, sizeof x);
  WANT(OK, ANeuralNetworksExecution_create(compilation, &execution));
  WANT(OK, ANeuralNetworksExecution_setInputFromMemory(execution, 0, NULL, memory, 0, 8));
  WANT(OK, ANeuralNetworksExecution_setInputFromMemory(execution, 1, NULL, memory, 8, 8));
  WANT(OK, ANeuralNetworksExecution_setOutputFromMemory(execution, 0, NULL, memory, 16, 8));
  WANT(OK, ANeuralNetworksExecution_compute(execution));
  HOLDS(mapped[4] == 11 && mapped[5] == 22);
  ANeuralNetworksExecution_free(execution);
  ANeuralNetworksCompilation_free(compilation);
  ANeuralNetworksModel_free(model);
}

void memories(void) {
  const int both = PROT_READ | PROT_WRITE;
  int fd = shared(64), closed = dup(fd);
  ANeuralNetworksMemory* memory = NULL;
  close(closed);
  WANT(NULL_, ANeuralNetworksMemory_createFromFd(64, both, fd, 0, NULL));
  WANT(DATA, ANeuralNetworksMemory_createFromFd(0, both, fd, 0, &memory));
  WANT(DATA, ANeuralNetworksMemory_createFromFd(64, both, -1, 0, &memory));
  WANT(NULL_, ANeuralNetworksMemory_createFromFd(64, both, closed, 0, &memory));
  HOLDS(memory == NULL);
  ANeuralNetworksMemory_free(NULL);

  memory = memory_of(fd, 64);
  float* mapped = mmap(NULL, 64, both, MAP_SHARED, fd, 0);
  close(fd);
  compute_in(memory, mapped);
  munmap(mapped, 64);

  ANeuralNetworksMemory *same = memory_of(shared(64), 64), *other = memory_of(shared(32), 32);
  WANT(NULL_, ANeuralNetworksMemory_copy(NULL, memory));
  WANT(NULL_, ANeuralNetworksMemory_copy(memory, NULL));
  WANT(DATA, ANeuralNetworksMemory_copy(memory, other));
  WANT(OK, ANeuralNetworksMemory_copy(memory, memory));
  WANT(OK, ANeuralNetworksMemory_copy(memory, same));
  ANeuralNetworksMemory_free(same);
  ANeuralNetworksMemory_free(other);
  ANeuralNetworksMemory_free(memory);

  /* A file of an odd length that may only be read, from an odd place on: constants of a model. */
  char path[] = "/tmp/client-XXXXXX";
  int file = mkstemp(path);
  const float values[3] = {3, 4, 5};
  HOLDS(write(file, "xyz", 3) == 3 && write(file, values, sizeof values) == sizeof values);
  close(file);
  file = open(path, O_RDONLY);
  unlink(path);
  WANT(OK, ANeuralNetworksMemory_createFromFd(15, PROT_READ, file, 0, &memory));
  close(file);
  ANeuralNetworksModel* model = NULL;
  const uint32_t two = 2, in[3] = {0, 1, 2}, out = 3;
  const int32_t none = 0;
  WANT(OK, ANeuralNetworksModel_create(&model));
  add(model, tensor(ANEURALNETWORKS_TENSOR_FLOAT32, 1, &two));
  add(model, tensor(ANEURALNETWORKS_TENSOR_FLOAT32, 1, &two));
  add(model, scalar(ANEURALNETWORKS_INT32));
  add(model, tensor(ANEURALNETWORKS_TENSOR_FLOAT32, 1, &two));
  WANT(OK, ANeuralNetworksModel_setOperandValueFromMemory(model, 1, memory, 7, 8));
  WANT(OK, ANeuralNetworksModel_setOperandValue(model, 2, &none, sizeof none));
  WANT(OK, ANeuralNetworksModel_addOperation(model, ANEURALNETWORKS_ADD, 3, in, 1, &out));
  WANT(OK, ANeuralNetworksModel_identifyInputsAndOutputs(model, 1, in, 1, &out));
  WANT(OK, ANeuralNetworksModel_finish(model));
  ANeuralNetworksMemory_free(memory);
  ANeuralNetworksCompilation* compilation = compiled(model);
  ANeuralNetworksExecution* execution = NULL;
  float x[2] = {1, 2}, y[2] = {0, 0};
  WANT(OK, ANeuralNetworksExecution_create(compilation, &execution));
  WANT(OK, ANeuralNetworksExecution_setInput(execution, 0, NULL, x, sizeof x));
  WANT(OK, ANeuralNetworksExecution_setOutput(execution, 0, NULL, y, sizeof y));
  WANT(OK, ANeuralNetworksExecution_compute(execution));
  HOLDS(y[0] == 5 && y[1] == 7);
  ANeuralNetworksExecution_free(execution);
  ANeuralNetworksCompilation_free(compilation);
  ANeuralNetworksModel_free(model);
}

void descriptions(void) {
  ANeuralNetworksModel *model = sum(2, 2), *longer = sum(3, 3);
  ANeuralNetworksCompilation *compilation = compiled(model), *other = compiled(longer), *open = NULL;
  ANeuralNetworksMemoryDesc *desc = NULL, *bare = NULL;
  ANeuralNetworksMemory* memory = NULL;
  const uint32_t two = 2, three = 3, pair[2] = {1, 2};
  WANT(OK, ANeuralNetworksCompilation_create(model, &open));
  WANT(NULL_, ANeuralNetworksMemoryDesc_create(NULL));
  WANT(OK, ANeuralNetworksMemoryDesc_create(&desc));
  ANeuralNetworksMemoryDesc_free(NULL);

  WANT(NULL_, ANeuralNetworksMemoryDesc_addInputRole(NULL, compilation, 0, 1));
  WANT(NULL_, ANeuralNetworksMemoryDesc_addInputRole(desc, NULL, 0, 1));
  WANT(NULL_, ANeuralNetworksMemoryDesc_addOutputRole(NULL, compilation, 0, 1));
  WANT(NULL_, ANeuralNetworksMemoryDesc_addOutputRole(desc, NULL, 0, 1));
  WANT(DATA, ANeuralNetworksMemoryDesc_addInputRole(desc, open, 0, 1));
  WANT(DATA, ANeuralNetworksMemoryDesc_addOutputRole(desc, open, 0, 1));
  WANT(DATA, ANeuralNetworksMemoryDesc_addInputRole(desc, compilation, 2, 1));
  WANT(DATA, ANeuralNetworksMemoryDesc_addOutputRole(desc, compilation, 1, 1));
  WANT(DATA, ANeuralNetworksMemoryDesc_addInputRole(desc, compilation, 0, 0));
  WANT(DATA, ANeuralNetworksMemoryDesc_addInputRole(desc, compilation, 0, 1.5f));
  WANT(DATA, ANeuralNetworksMemoryDesc_addInputRole(desc, compilation, 0, NAN));
  WANT(OK, ANeuralNetworksMemoryDesc_addInputRole(desc, compilation, 0, 0.5f));
  WANT(DATA, ANeuralNetworksMemoryDesc_addInputRole(desc, compilation, 0, 1)); /* twice */
  WANT(DATA, ANeuralNetworksMemoryDesc_addInputRole(desc, other, 0, 1));       /* of another length */
  WANT(OK, ANeuralNetworksMemoryDesc_addOutputRole(desc, compilation, 0, 1));

  WANT(NULL_, ANeuralNetworksMemoryDesc_setDimensions(NULL, 1, &two));
  WANT(NULL_, ANeuralNetworksMemoryDesc_setDimensions(desc, 1, NULL));
  WANT(DATA, ANeuralNetworksMemoryDesc_setDimensions(desc, 1, &three));
  WANT(DATA, ANeuralNetworksMemoryDesc_setDimensions(desc, 2, pair));
  WANT(DATA, ANeuralNetworksMemoryDesc_setDimensions(desc, UINT32_MAX, pair));
  WANT(OK, ANeuralNetworksMemoryDesc_setDimensions(desc, 1, &two));

  WANT(STATE, ANeuralNetworksMemory_createFromDesc(desc, &memory));
  HOLDS(memory == NULL);
  WANT(NULL_, ANeuralNetworksMemoryDesc_finish(NULL));
  WANT(OK, ANeuralNetworksMemoryDesc_create(&bare));
  WANT(DATA, ANeuralNetworksMemoryDesc_finish(bare)); /* no role */
  WANT(OK, ANeuralNetworksMemoryDesc_finish(desc));
  WANT(STATE, ANeuralNetworksMemoryDesc_finish(desc));
  WANT(STATE, ANeuralNetworksMemoryDesc_addInputRole(desc, compilation, 1, 1));
  WANT(STATE, ANeuralNetworksMemoryDesc_addOutputRole(desc, compilation, 0, 1));
  WANT(STATE, ANeuralNetworksMemoryDesc_setDimensions(desc, 1, &two));
  WANT(NULL_, ANeuralNetworksMemory_createFromDesc(NULL, &memory));
  WANT(NULL_, ANeuralNetworksMemory_createFromDesc(desc, NULL));
  WANT(OK, ANeuralNetworksMemory_createFromDesc(desc, &memory));
  ANeuralNetworksMemory_free(memory);
  ANeuralNetworksMemoryDesc_free(bare);
  ANeuralNetworksMemoryDesc_free(desc);
  ANeuralNetworksCompilation_free(open);
  ANeuralNetworksCompilation_free(other);
  ANeuralNetworksCompilation_free(compilation);
  ANeuralNetworksModel_free(longer);
  ANeuralNetworksModel_free(model);
}

/* A memory in its roles: written by one execution, read by the next; a value has to come first. */
static void in_roles(ANeuralNetworksDevice* device) {
  ANeuralNetworksModel* model = sum(2, 2);
  ANeuralNetworksCompilation* compilation = compiled_for(model, device);
  ANeuralNetworksMemoryDesc* desc = NULL;
  ANeuralNetworksMemory* memory = NULL;
  WANT(OK, ANeuralNetworksMemoryDesc_create(&desc));
  WANT(OK, ANeuralNetworksMemoryDesc_addInputRole(desc, compilation, 0, 1));
  WANT(OK, ANeuralNetworksMemoryDesc_addOutputRole(desc, compilation, 0, 1));
  WANT(OK, ANeuralNetworksMemoryDesc_finish(desc));
  WANT(OK, ANeuralNetworksMemory_createFromDesc(desc, &memory));

  const float x[2] = {1, 2}, y[2] = {10, 20};
  float out[2] = {0, 0};
  ANeuralNetworksExecution* execution = NULL;
  WANT(OK, ANeuralNetworksExecution_create(compilation, &execution));
  WANT(DATA, ANeuralNetworksExecution_setInputFromMemory(execution, 1, NULL, memory, 0, 0));
  WANT(DATA, ANeuralNetworksExecution_setInputFromMemory(execution, 0, NULL, memory, 4, 4));
  WANT(OK, ANeuralNetworksExecution_setInputFromMemory(execution, 0, NULL, memory, 0, 0));
  WANT(OK, ANeuralNetworksExecution_setInput(execution, 1, NULL, y, sizeof y));
  WANT(OK, ANeuralNetworksExecution_setOutput(execution, 0, NULL, out, sizeof out));
  WANT(FAILED, ANeuralNetworksExecution_compute(execution)); /* nothing was written to it */
  ANeuralNetworksExecution_free(execution);

  int fd = shared(8);
  ANeuralNetworksMemory* plain = memory_of(fd, 8);
  WANT(DATA, ANeuralNetworksMemory_copy(memory, plain));

  WANT(OK, ANeuralNetworksExecution_create(compilation, &execution));
  WANT(OK, ANeuralNetworksExecution_setInput(execution, 0, NULL, x, sizeof x));
  WANT(OK, ANeuralNetworksExecution_setInput(execution, 1, NULL, y, sizeof y));
  WANT(OK, ANeuralNetworksExecution_setOutputFromMemory(execution, 0, NULL, memory, 0, 0));
  WANT(OK, ANeuralNetworksExecution_compute(execution));
  ANeuralNetworksExecution_free(execution);

  WANT(OK, ANeuralNetworksExecution_create(compilation, &execution));
  WANT(OK, ANeuralNetworksExecution_setInputFromMemory(execution, 0, NULL, memory, 0, 0));
  WANT(OK, ANeuralNetworksExecution_setInput(execution, 1, NULL, y, sizeof y));
  WANT(OK, ANeuralNetworksExecution_setOutput(execution, 0, NULL, out, sizeof out));
  WANT(OK, ANeuralNetworksExecution_compute(execution));
  HOLDS(out[0] == 21 && out[1] == 42);
  ANeuralNetworksExecution_free(execution);

  /* Out of it, and into it. */
  float copied[2] = {0, 0};
  WANT(OK, ANeuralNetworksMemory_copy(memory, plain));
  HOLDS(pread(fd, copied, 8, 0) == 8 && copied[0] == 11 && copied[1] == 22);
  HOLDS(pwrite(fd, x, 8, 0) == 8);
  WANT(OK, ANeuralNetworksMemory_copy(plain, memory));
  HOLDS(pwrite(fd, y, 8, 0) == 8);
  WANT(OK, ANeuralNetworksMemory_copy(memory, plain));
  HOLDS(pread(fd, copied, 8, 0) == 8 && copied[0] == 1 && copied[1] == 2);
  close(fd);

  ANeuralNetworksMemory_free(plain);
  ANeuralNetworksMemory_free(memory);
  ANeuralNetworksMemoryDesc_free(desc);
  ANeuralNetworksCompilation_free(compilation);
  ANeuralNetworksModel_free(model);
}

void device_memories(void) {
  in_roles(first_device());
  in_roles(last_device());
}

void hardware_buffers(void) {
  AHardwareBuffer_Desc desc = {.width = 64, .height = 1, .layers = 1, .format = AHARDWAREBUFFER_FORMAT_BLOB};
  AHardwareBuffer_Desc wrong = desc, answer;
  AHardwareBuffer* buffer = NULL;
  ANeuralNetworksMemory* memory = NULL;
  void* at = NULL;
  int32_t fence = 0;
  wrong.height = 2;
  WANT(-EINVAL, AHardwareBuffer_allocate(NULL, &buffer));
  WANT(-EINVAL, AHardwareBuffer_allocate(&desc, NULL));
  WANT(-EINVAL, AHardwareBuffer_allocate(&wrong, &buffer));
  wrong = desc;
  wrong.format = 1; /* four bytes a pixel */
  WANT(-EINVAL, AHardwareBuffer_allocate(&wrong, &buffer));
  WANT(NULL_, ANeuralNetworksMemory_createFromAHardwareBuffer(NULL, &memory));
  WANT(DATA, ANeuralNetworksMemory_createFromAHardwareBuffer((AHardwareBuffer*)&desc, &memory));
  HOLDS(memory == NULL);

  WANT(0, AHardwareBuffer_allocate(&desc, &buffer));
  AHardwareBuffer_describe(buffer, &answer);
  HOLDS(answer.width == 64 && answer.stride == 64 && answer.format == AHARDWAREBUFFER_FORMAT_BLOB);
  WANT(NULL_, ANeuralNetworksMemory_createFromAHardwareBuffer(buffer, NULL));
  WANT(OK, ANeuralNetworksMemory_createFromAHardwareBuffer(buffer, &memory));
  WANT(-EINVAL, AHardwareBuffer_lock(buffer, 0, -1, NULL, NULL));
  WANT(0, AHardwareBuffer_lock(buffer, 0, -1, NULL, &at));
  compute_in(memory, at);
  WANT(0, AHardwareBuffer_unlock(buffer, &fence));
  HOLDS(fence == -1);
  AHardwareBuffer_acquire(buffer);
  AHardwareBuffer_release(buffer);
  WANT(0, AHardwareBuffer_lock(buffer, 0, -1, NULL, &at));
  AHardwareBuffer_release(buffer);
  WANT(-EINVAL, AHardwareBuffer_lock(buffer, 0, -1, NULL, &at));
  AHardwareBuffer_release(buffer); /* once too often */
  ANeuralNetworksMemory_free(memory);
}
