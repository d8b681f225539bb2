/* What remains of a compilation or an execution that has failed; values that a model or an execution may not
 * have; and that nothing grows with the number of models. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

static const float x[2] = {1, 2}, y[2] = {10, 20};

/* A time that has passed before anything begins: the compilation is finished, and serves for nothing. */
static void compilation_out_of_time(ANeuralNetworksModel* model) {
  const ANeuralNetworksDevice* one[] = {last_device()};
  ANeuralNetworksCompilation* compilation = NULL;
  ANeuralNetworksExecution* execution = (ANeuralNetworksExecution*)&compilation;
  ANeuralNetworksBurst* burst = (ANeuralNetworksBurst*)&compilation;
  ANeuralNetworksMemoryDesc* desc = NULL;
  uint32_t bytes = 0;
  WANT(OK, ANeuralNetworksCompilation_createForDevices(model, one, 1, &compilation));
  WANT(OK, ANeuralNetworksCompilation_setTimeout(compilation, 1));
  WANT(ANEURALNETWORKS_MISSED_DEADLINE_PERSISTENT, ANeuralNetworksCompilation_finish(compilation));
  WANT(STATE, ANeuralNetworksCompilation_finish(compilation));
  WANT(STATE, ANeuralNetworksCompilation_setPreference(compilation, 0));
  WANT(STATE, ANeuralNetworksExecution_create(compilation, &execution));
  WANT(STATE, ANeuralNetworksBurst_create(compilation, &burst));
  HOLDS(execution == NULL && burst == NULL);
  WANT(STATE, ANeuralNetworksCompilation_getPreferredMemoryPaddingForInput(compilation, 0, &bytes));
  WANT(STATE, ANeuralNetworksCompilation_getPreferredMemoryAlignmentForOutput(compilation, 0, &bytes));
  WANT(OK, ANeuralNetworksMemoryDesc_create(&desc));
  WANT(DATA, ANeuralNetworksMemoryDesc_addInputRole(desc, compilation, 0, 1));
  WANT(DATA, ANeuralNetworksMemoryDesc_addOutputRole(desc, compilation, 0, 1));
  ANeuralNetworksMemoryDesc_free(desc);
  ANeuralNetworksCompilation_free(compilation);
}

/* The same for an execution: it has neither times nor shapes. */
static void execution_out_of_time(ANeuralNetworksModel* model) {
  ANeuralNetworksCompilation* compilation = compiled_for(model, last_device());
  float out[2] = {0, 0};
  uint64_t nanos = 0;
  uint32_t rank = 9, size = 9;
  ANeuralNetworksExecution* execution = ready(compilation, x, y, out, 2);
  WANT(OK, ANeuralNetworksExecution_setMeasureTiming(execution, true));
  WANT(OK, ANeuralNetworksExecution_setTimeout(execution, 1));
  WANT(ANEURALNETWORKS_MISSED_DEADLINE_TRANSIENT, ANeuralNetworksExecution_compute(execution));
  WANT(STATE, ANeuralNetworksExecution_getDuration(execution, ANEURALNETWORKS_DURATION_IN_DRIVER, &nanos));
  HOLDS(nanos == UINT64_MAX);
  WANT(STATE, ANeuralNetworksExecution_getOutputOperandRank(execution, 0, &rank));
  WANT(STATE, ANeuralNetworksExecution_getOutputOperandDimensions(execution, 0, &size));
  WANT(STATE, ANeuralNetworksExecution_compute(execution));
  ANeuralNetworksExecution_free(execution);
  ANeuralNetworksCompilation_free(compilation);
}

/* A memory that is longer than its file shows so when it is used. */
static void memory_beyond_its_file(ANeuralNetworksModel* model) {
  ANeuralNetworksCompilation* compilation = compiled_for(model, last_device());
  ANeuralNetworksExecution* execution = NULL;
  float out[2];
  int fd = shared(4);
  ANeuralNetworksMemory* memory = memory_of(fd, 16);
  close(fd);
  WANT(OK, ANeuralNetworksExecution_create(compilation, &execution));
  WANT(OK, ANeuralNetworksExecution_setInputFromMemory(execution, 0, NULL, memory, 8, 8));
  WANT(OK, ANeuralNetworksExecution_setInput(execution, 1, NULL, y, 8));
  WANT(OK, ANeuralNetworksExecution_setOutput(execution, 0, NULL, out, 8));
  WANT(ANEURALNETWORKS_UNMAPPABLE, ANeuralNetworksExecution_compute(execution));
  ANeuralNetworksExecution_free(execution);
  ANeuralNetworksMemory_free(memory);
  ANeuralNetworksCompilation_free(compilation);
}

/* An input that the operation needs, left out. */
static void needed_input_left_out(ANeuralNetworksModel* model) {
  ANeuralNetworksCompilation* compilation = compiled(model);
  ANeuralNetworksExecution* execution = NULL;
  float out[2];
  WANT(OK, ANeuralNetworksExecution_create(compilation, &execution));
  WANT(OK, ANeuralNetworksExecution_setInput(execution, 0, NULL, NULL, 0));
  WANT(OK, ANeuralNetworksExecution_setInput(execution, 1, NULL, y, 8));
  WANT(OK, ANeuralNetworksExecution_setOutput(execution, 0, NULL, out, 8));
  WANT(DATA, ANeuralNetworksExecution_compute(execution));
  ANeuralNetworksExecution_free(execution);
  ANeuralNetworksCompilation_free(compilation);
}

/* A memory for roles is no constant of a model. */
static void memory_for_roles_as_constant(ANeuralNetworksModel* model) {
  ANeuralNetworksCompilation* compilation = compiled(model);
  ANeuralNetworksMemoryDesc* desc = NULL;
  ANeuralNetworksMemory* memory = NULL;
  ANeuralNetworksModel* other = unfinished_sum(2, 2);
  const uint32_t two = 2;
  WANT(OK, ANeuralNetworksMemoryDesc_create(&desc));
  WANT(OK, ANeuralNetworksMemoryDesc_addInputRole(desc, compilation, 0, 1));
  WANT(OK, ANeuralNetworksMemoryDesc_finish(desc));
  WANT(OK, ANeuralNetworksMemory_createFromDesc(desc, &memory));
  ANeuralNetworksOperandType type = tensor(ANEURALNETWORKS_TENSOR_FLOAT32, 1, &two);
  WANT(OK, ANeuralNetworksModel_addOperand(other, &type));
  WANT(DATA, ANeuralNetworksModel_setOperandValueFromMemory(other, 4, memory, 0, 8));
  /* Nor is it an argument of another compilation. */
  ANeuralNetworksCompilation* foreign = compiled(model);
  ANeuralNetworksExecution* execution = NULL;
  WANT(OK, ANeuralNetworksExecution_create(foreign, &execution));
  WANT(DATA, ANeuralNetworksExecution_setInputFromMemory(execution, 0, NULL, memory, 0, 0));
  WANT(DATA, ANeuralNetworksExecution_setOutputFromMemory(execution, 0, NULL, memory, 0, 0));
  ANeuralNetworksExecution_free(execution);
  ANeuralNetworksCompilation_free(foreign);
  ANeuralNetworksModel_free(other);
  ANeuralNetworksMemory_free(memory);
  ANeuralNetworksMemoryDesc_free(desc);
  ANeuralNetworksCompilation_free(compilation);
}

void failures(void) {
  ANeuralNetworksModel* model = sum(2, 2);
  compilation_out_of_time(model);
  execution_out_of_time(model);
  memory_beyond_its_file(model);
  needed_input_left_out(model);
  memory_for_roles_as_constant(model);
  ANeuralNetworksModel_free(model);
}

/* An output that is a scalar has the rank 0, and no dimensions. */
void scalars(void) {
  const uint32_t two = 2, in = 0, out = 1;
  ANeuralNetworksModel* model = NULL;
  WANT(OK, ANeuralNetworksModel_create(&model));
  add(model, tensor(ANEURALNETWORKS_TENSOR_FLOAT32, 1, &two));
  add(model, scalar(ANEURALNETWORKS_INT32));
  WANT(OK, ANeuralNetworksModel_addOperation(model, ANEURALNETWORKS_RANK, 1, &in, 1, &out));
  WANT(OK, ANeuralNetworksModel_identifyInputsAndOutputs(model, 1, &in, 1, &out));
  WANT(OK, ANeuralNetworksModel_finish(model));
  ANeuralNetworksCompilation* compilation = compiled(model);
  ANeuralNetworksExecution* execution = NULL;
  ANeuralNetworksMemoryDesc* desc = NULL;
  int32_t answer = 0;
  uint32_t rank = 9, size = 9;
  WANT(OK, ANeuralNetworksExecution_create(compilation, &execution));
  WANT(OK, ANeuralNetworksExecution_setInput(execution, 0, NULL, x, 8));
  WANT(DATA, ANeuralNetworksExecution_setOutput(execution, 0, NULL, &answer, 8));
  WANT(OK, ANeuralNetworksExecution_setOutput(execution, 0, NULL, &answer, 4));
  WANT(OK, ANeuralNetworksExecution_compute(execution));
  HOLDS(answer == 1);
  WANT(OK, ANeuralNetworksExecution_getOutputOperandRank(execution, 0, &rank));
  HOLDS(rank == 0);
  WANT(DATA, ANeuralNetworksExecution_getOutputOperandDimensions(execution, 0, &size));
  ANeuralNetworksExecution_free(execution);

  WANT(OK, ANeuralNetworksMemoryDesc_create(&desc));
  WANT(OK, ANeuralNetworksMemoryDesc_addOutputRole(desc, compilation, 0, 1));
  WANT(DATA, ANeuralNetworksMemoryDesc_setDimensions(desc, 1, &two));
  WANT(OK, ANeuralNetworksMemoryDesc_setDimensions(desc, 0, NULL));
  ANeuralNetworksMemoryDesc_free(desc);
  ANeuralNetworksCompilation_free(compilation);
  ANeuralNetworksModel_free(model);
}

/* Pages of this process that are in memory, and its descriptors. */
static long resident(void) {
  long all = 0, here = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  HOLDS(file && fscanf(file, "%ld %ld", &all, &here) == 2);
  if (file) fclose(file);
  return here;
}

static int descriptors(void) {
  DIR* opened = opendir("/proc/self/fd");
  int count = 0;
  while (opened && readdir(opened)) count++;
  if (opened) closedir(opened);
  return count;
}

/* Whether no more than so many descriptors are left, waiting for executions that nobody waits for to end: they have
   fences of their own until then. */
static int falls_to(int most) {
  for (int looks = 0; looks < 3000; looks++) {
    if (descriptors() <= most) return 1;
    usleep(10000);
  }
  return 0;
}

/* A model with all that can be made of it, computed in each way, and freed. */
static void lived(int number) {
  float out[2] = {0, 0};
  int fd = shared(16), fence = -1;
  ANeuralNetworksModel* model = sum(2, number % 2 ? 2 : 0);
  ANeuralNetworksCompilation *any = compiled(model), *one = compiled_for(model, first_device());
  ANeuralNetworksMemory* memory = memory_of(fd, 16);
  ANeuralNetworksBurst* burst = NULL;
  ANeuralNetworksEvent* event = NULL;
  WANT(OK, ANeuralNetworksBurst_create(any, &burst));
  ANeuralNetworksExecution* execution = ready(any, x, y, out, 2);
  WANT(OK, ANeuralNetworksExecution_burstCompute(execution, burst));
  ANeuralNetworksExecution_free(execution);
  execution = ready(one, x, y, out, 2);
  WANT(OK, ANeuralNetworksExecution_startCompute(execution, &event));
  ANeuralNetworksEvent_free(event);
  ANeuralNetworksExecution_free(execution);
  if (number % 2) {
    execution = ready(one, x, y, out, 2);
    WANT(OK, ANeuralNetworksExecution_startComputeWithDependencies(execution, NULL, 0, 0, &event));
    if (ANeuralNetworksEvent_getSyncFenceFd(event, &fence) == OK) close(fence);
    ANeuralNetworksEvent_free(event);
    ANeuralNetworksExecution_free(execution);
  }
  WANT(OK, ANeuralNetworksExecution_create(one, &execution));
  WANT(OK, ANeuralNetworksExecution_setInputFromMemory(execution, 0, NULL, memory, 0, 8));
  WANT(OK, ANeuralNetworksExecution_setInput(execution, 1, NULL, y, 8));
  WANT(OK, ANeuralNetworksExecution_setOutputFromMemory(execution, 0, NULL, memory, 8, 8));
  WANT(OK, ANeuralNetworksExecution_compute(execution));
  ANeuralNetworksExecution_free(execution);
  ANeuralNetworksBurst_free(burst);
  ANeuralNetworksMemory_free(memory);
  ANeuralNetworksCompilation_free(any);
  ANeuralNetworksCompilation_free(one);
  ANeuralNetworksModel_free(model);
  close(fd);
}

/* Models that come before the first look: threads and their stacks are made by then. */
enum { FIRST = 400, ALL = 2400, PAGES = 512 };

void growth(void) {
  long pages = 0;
  int open = 0;
  for (int number = 0; number < ALL; number++) {
    if (number == FIRST) {
      pages = resident();
      open = descriptors();
    }
    lived(number);
  }
  long more = resident() - pages;
  printf("%ld pages more after %d models\n", more, ALL - FIRST);
  HOLDS(more < PAGES); /* a page for every fourth model would be a leak */
  HOLDS(falls_to(open));
}
