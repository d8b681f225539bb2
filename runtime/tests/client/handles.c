/* Handles that are none, objects that outlive their handles, forked children, threads. */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static const float x[2] = {1, 2}, y[2] = {10, 20};

/* Calls of every kind of object with what is no live handle of that kind. */
static void refused(void* handle) {
  const uint32_t two = 2;
  ANeuralNetworksOperandType type = tensor(ANEURALNETWORKS_TENSOR_FLOAT32, 1, &two);
  ANeuralNetworksCompilation* compilation = NULL;
  ANeuralNetworksExecution* execution = NULL;
  ANeuralNetworksMemory* memory = NULL;
  ANeuralNetworksBurst* burst = NULL;
  const char* name;
  WANT(DATA, ANeuralNetworksModel_addOperand(handle, &type));
  WANT(DATA, ANeuralNetworksModel_finish(handle));
  WANT(DATA, ANeuralNetworksCompilation_create(handle, &compilation));
  WANT(DATA, ANeuralNetworksCompilation_setPreference(handle, 0));
  WANT(DATA, ANeuralNetworksExecution_create(handle, &execution));
  WANT(DATA, ANeuralNetworksBurst_create(handle, &burst));
  WANT(DATA, ANeuralNetworksExecution_setInput(handle, 0, NULL, x, 8));
  WANT(DATA, ANeuralNetworksExecution_compute(handle));
  WANT(DATA, ANeuralNetworksMemory_copy(handle, handle));
  WANT(DATA, ANeuralNetworksMemoryDesc_finish(handle));
  WANT(DATA, ANeuralNetworksMemory_createFromDesc(handle, &memory));
  WANT(DATA, ANeuralNetworksEvent_wait(handle));
  WANT(DATA, ANeuralNetworksDevice_getName(handle, &name));
  HOLDS(!compilation && !execution && !memory && !burst);
}

/* Every free, none of which does anything. */
static void freed(void* handle) {
  ANeuralNetworksModel_free(handle);
  ANeuralNetworksCompilation_free(handle);
  ANeuralNetworksExecution_free(handle);
  ANeuralNetworksMemory_free(handle);
  ANeuralNetworksMemoryDesc_free(handle);
  ANeuralNetworksBurst_free(handle);
  ANeuralNetworksEvent_free(handle);
  AHardwareBuffer_release(handle);
}

void handles(void) {
  long on_the_stack[16] = {0};
  static long elsewhere[16];
  refused(on_the_stack);
  refused(elsewhere);
  refused((void*)1);
  refused((void*)UINTPTR_MAX);
  freed(on_the_stack);
  freed((void*)UINTPTR_MAX);

  ANeuralNetworksModel* model = sum(2, 2);
  ANeuralNetworksModel_free(model);
  refused(model);
  freed(model);
  /* What is made next has another handle: the old one does not come to life. */
  ANeuralNetworksModel* next = sum(2, 2);
  HOLDS(next != model);
  refused(model);

  /* A live handle of another kind: refused, and not freed by the wrong function. */
  ANeuralNetworksMemory* memory = memory_of(shared(8), 8);
  WANT(DATA, ANeuralNetworksModel_finish((ANeuralNetworksModel*)memory));
  ANeuralNetworksModel_free((ANeuralNetworksModel*)memory);
  ANeuralNetworksBurst_free((ANeuralNetworksBurst*)memory);
  WANT(OK, ANeuralNetworksMemory_copy(memory, memory));
  ANeuralNetworksMemory_free(memory);
  WANT(DATA, ANeuralNetworksMemory_copy(memory, memory));

  /* Devices are never freed. */
  ANeuralNetworksDevice* device = last_device();
  const char* name = NULL;
  freed(device);
  WANT(OK, ANeuralNetworksDevice_getName(device, &name));
  ANeuralNetworksModel_free(next);
}

/* Everything is freed as early as can be; what is still used stays. */
void order_of_freeing(void) {
  ANeuralNetworksModel* model = sum(2, 2);
  ANeuralNetworksCompilation* compilation = compiled_for(model, first_device());
  ANeuralNetworksModel_free(model);
  ANeuralNetworksBurst* burst = NULL;
  ANeuralNetworksMemoryDesc* desc = NULL;
  ANeuralNetworksMemory* memory = NULL;
  ANeuralNetworksEvent* event = NULL;
  float out[2] = {0, 0}, last[2] = {0, 0};
  WANT(OK, ANeuralNetworksMemoryDesc_create(&desc));
  WANT(OK, ANeuralNetworksMemoryDesc_addOutputRole(desc, compilation, 0, 1));
  WANT(OK, ANeuralNetworksMemoryDesc_addInputRole(desc, compilation, 0, 1));
  WANT(OK, ANeuralNetworksMemoryDesc_finish(desc));
  WANT(OK, ANeuralNetworksMemory_createFromDesc(desc, &memory));
  ANeuralNetworksMemoryDesc_free(desc);
  WANT(OK, ANeuralNetworksBurst_create(compilation, &burst));
  ANeuralNetworksExecution *writes = NULL, *reads = NULL;
  WANT(OK, ANeuralNetworksExecution_create(compilation, &writes));
  WANT(OK, ANeuralNetworksExecution_create(compilation, &reads));
  ANeuralNetworksExecution* bursts = ready(compilation, x, y, out, 2);
  ANeuralNetworksCompilation_free(compilation);
  WANT(OK, ANeuralNetworksExecution_setInput(writes, 0, NULL, x, 8));
  WANT(OK, ANeuralNetworksExecution_setInput(writes, 1, NULL, y, 8));
  WANT(OK, ANeuralNetworksExecution_setOutputFromMemory(writes, 0, NULL, memory, 0, 0));
  WANT(OK, ANeuralNetworksExecution_setInputFromMemory(reads, 0, NULL, memory, 0, 0));
  WANT(OK, ANeuralNetworksExecution_setInput(reads, 1, NULL, y, 8));
  WANT(OK, ANeuralNetworksExecution_setOutput(reads, 0, NULL, last, 8));
  ANeuralNetworksMemory_free(memory);
  WANT(OK, ANeuralNetworksExecution_compute(writes));
  ANeuralNetworksExecution_free(writes);
  WANT(OK, ANeuralNetworksExecution_startCompute(reads, &event));
  ANeuralNetworksExecution_free(reads);
  WANT(OK, ANeuralNetworksExecution_burstCompute(bursts, burst));
  ANeuralNetworksExecution_free(bursts);
  ANeuralNetworksBurst_free(burst);
  WANT(OK, ANeuralNetworksEvent_wait(event));
  ANeuralNetworksEvent_free(event);
  HOLDS(out[0] == 11 && last[0] == 21 && last[1] == 42);
}

static int in_child(ANeuralNetworksModel* model, ANeuralNetworksExecution* execution, ANeuralNetworksEvent* event,
                    bool used) {
  pid_t child = fork();
  if (child == 0) {
    alarm(60); /* a hang becomes a death */
    ANeuralNetworksModel* own = NULL;
    ANeuralNetworksCompilation* compilation = NULL;
    uint32_t count = 0;
    int right = used ? AWAY : OK;
    int codes = 0;
    codes |= ANeuralNetworks_getDeviceCount(&count) == right ? 0 : 1;
    codes |= ANeuralNetworksModel_create(&own) == right ? 0 : 2;
    if (used) {
      codes |= ANeuralNetworksModel_finish(model) == AWAY ? 0 : 4;
      codes |= ANeuralNetworksCompilation_create(model, &compilation) == AWAY ? 0 : 8;
      codes |= ANeuralNetworksExecution_compute(execution) == AWAY ? 0 : 16;
      codes |= ANeuralNetworksEvent_wait(event) == AWAY ? 0 : 32;
      codes |= compilation == NULL && own == NULL ? 0 : 64;
      ANeuralNetworksEvent_free(event);
      ANeuralNetworksExecution_free(execution);
    }
    ANeuralNetworksModel_free(model);
    _exit(codes);
  }
  int status = -1;
  HOLDS(child > 0 && waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256;
}

/* In a child of a process that uses the library nothing works, and nothing hangs; a child of one that only
 * has it loaded uses it as its own. */
void forked(void) {
  HOLDS(in_child(NULL, NULL, NULL, false) == 0);
  ANeuralNetworksModel* model = sum(2, 2);
  ANeuralNetworksCompilation* compilation = compiled(model);
  float out[2] = {0, 0};
  int ends[2];
  HOLDS(pipe(ends) == 0);
  ANeuralNetworksEvent *gate = NULL, *event = NULL;
  WANT(OK, ANeuralNetworksEvent_createFromSyncFenceFd(ends[0], &gate));
  const ANeuralNetworksEvent* behind[] = {gate};
  ANeuralNetworksExecution *waiting = ready(compilation, x, y, out, 2), *idle = ready(compilation, x, y, out, 2);
  WANT(OK, ANeuralNetworksExecution_startComputeWithDependencies(waiting, behind, 1, 0, &event));
  HOLDS(in_child(model, idle, event, true) == 0); /* forked while something waits */
  HOLDS(write(ends[1], "x", 1) == 1);
  WANT(OK, ANeuralNetworksEvent_wait(event)); /* the parent goes on */
  WANT(OK, ANeuralNetworksExecution_compute(idle));
  HOLDS(out[0] == 11 && out[1] == 22);
  ANeuralNetworksEvent_free(event);
  ANeuralNetworksEvent_free(gate);
  ANeuralNetworksExecution_free(waiting);
  ANeuralNetworksExecution_free(idle);
  ANeuralNetworksCompilation_free(compilation);
  ANeuralNetworksModel_free(model);
}

static void* works(void* shared_compilation) {
  for (int round = 0; round < 20; round++) {
    ANeuralNetworksModel* model = sum(2, 2);
    ANeuralNetworksCompilation* compilation = round % 2 ? shared_compilation : compiled(model);
    ANeuralNetworksEvent* event = NULL;
    float out[2] = {0, 0};
    ANeuralNetworksExecution* execution = ready(compilation, x, y, out, 2);
    if (round % 3) {
      WANT(OK, ANeuralNetworksExecution_compute(execution));
    } else {
      WANT(OK, ANeuralNetworksExecution_startCompute(execution, &event));
      WANT(OK, ANeuralNetworksEvent_wait(event));
    }
    HOLDS(out[0] == 11 && out[1] == 22);
    ANeuralNetworksEvent_free(event);
    ANeuralNetworksExecution_free(execution);
    if (compilation != shared_compilation) ANeuralNetworksCompilation_free(compilation);
    ANeuralNetworksModel_free(model);
  }
  return NULL;
}

void threads(void) {
  ANeuralNetworksModel* model = sum(2, 2);
  ANeuralNetworksCompilation* compilation = compiled(model);
  pthread_t threads[8];
  for (int i = 0; i < 8; i++) HOLDS(pthread_create(&threads[i], NULL, works, compilation) == 0);
  for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
  ANeuralNetworksCompilation_free(compilation);
  ANeuralNetworksModel_free(model);
}
