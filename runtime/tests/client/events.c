/* Events, and fences that go in and out. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

static const float x[2] = {1, 2}, y[2] = {10, 20};

static void* waits(void* event) {
  WANT(OK, ANeuralNetworksEvent_wait(event));
  return NULL;
}

void events(void) {
  ANeuralNetworksModel* model = sum(2, 2);
  ANeuralNetworksCompilation* compilation = compiled(model);
  ANeuralNetworksEvent* event = NULL;
  float out[2] = {0, 0};
  WANT(NULL_, ANeuralNetworksEvent_wait(NULL));
  ANeuralNetworksEvent_free(NULL);
  ANeuralNetworksExecution* execution = ready(compilation, x, y, out, 2);
  WANT(OK, ANeuralNetworksExecution_startCompute(execution, &event));
  ANeuralNetworksExecution_free(execution); /* under way: it goes on */
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) HOLDS(pthread_create(&threads[i], NULL, waits, event) == 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  WANT(OK, ANeuralNetworksEvent_wait(event));
  HOLDS(out[0] == 11 && out[1] == 22);
  ANeuralNetworksEvent_free(event);

  /* Freed at once: free waits for the end, so that the buffers may go afterwards. */
  for (int round = 0; round < 20; round++) {
    float own[2] = {0, 0};
    execution = ready(compilation, x, y, own, 2);
    WANT(OK, ANeuralNetworksExecution_startCompute(execution, &event));
    ANeuralNetworksEvent_free(event);
    HOLDS(own[0] == 11 && own[1] == 22);
    ANeuralNetworksExecution_free(execution);
  }
  ANeuralNetworksCompilation_free(compilation);
  ANeuralNetworksModel_free(model);
}

/* Two executions in a chain behind a pipe of ours: nothing is written before that has a byte. */
static void chain(ANeuralNetworksCompilation* compilation) {
  int ends[2], fence = -1;
  float first[2] = {0, 0}, second[2] = {0, 0};
  ANeuralNetworksEvent *gate = NULL, *one = NULL, *two = NULL;
  HOLDS(pipe2(ends, O_CLOEXEC) == 0);
  WANT(OK, ANeuralNetworksEvent_createFromSyncFenceFd(ends[0], &gate));
  close(ends[0]); /* the event has a duplicate */
  ANeuralNetworksExecution* a = ready(compilation, x, y, first, 2);
  ANeuralNetworksExecution* b = ready(compilation, first, y, second, 2);
  const ANeuralNetworksEvent* behind_gate[] = {gate};
  WANT(OK, ANeuralNetworksExecution_startComputeWithDependencies(a, behind_gate, 1, 0, &one));
  const ANeuralNetworksEvent* behind_one[] = {gate, one};
  WANT(OK, ANeuralNetworksExecution_startComputeWithDependencies(b, behind_one, 2, 0, &two));
  HOLDS(first[0] == 0 && second[0] == 0);
  WANT(OK, ANeuralNetworksEvent_getSyncFenceFd(two, &fence));
  HOLDS(fence >= 0 && (fcntl(fence, F_GETFD) & FD_CLOEXEC));
  HOLDS(write(ends[1], "x", 1) == 1);
  struct pollfd polled = {.fd = fence, .events = POLLIN};
  HOLDS(poll(&polled, 1, 60000) == 1);
  WANT(OK, ANeuralNetworksEvent_wait(two));
  WANT(OK, ANeuralNetworksEvent_wait(one));
  WANT(OK, ANeuralNetworksEvent_wait(gate));
  HOLDS(first[0] == 11 && second[0] == 21 && second[1] == 42);
  close(fence);
  close(ends[1]);
  ANeuralNetworksEvent_free(two);
  ANeuralNetworksEvent_free(one);
  ANeuralNetworksEvent_free(gate);
  ANeuralNetworksExecution_free(a);
  ANeuralNetworksExecution_free(b);
}

void fences(void) {
  ANeuralNetworksModel* model = sum(2, 2);
  ANeuralNetworksCompilation *any = compiled(model), *one = compiled_for(model, first_device());
  ANeuralNetworksEvent* event = NULL;
  int fence = 5, ends[2];
  HOLDS(pipe2(ends, O_CLOEXEC) == 0);
  WANT(NULL_, ANeuralNetworksEvent_createFromSyncFenceFd(ends[0], NULL));
  WANT(DATA, ANeuralNetworksEvent_createFromSyncFenceFd(-1, &event));
  WANT(DATA, ANeuralNetworksEvent_createFromSyncFenceFd(0, &event));
  int closed = dup(ends[0]), null_device = open("/dev/null", O_RDONLY);
  close(closed);
  WANT(DATA, ANeuralNetworksEvent_createFromSyncFenceFd(closed, &event));
  WANT(DATA, ANeuralNetworksEvent_createFromSyncFenceFd(null_device, &event)); /* no fence */
  HOLDS(event == NULL);
  WANT(OK, ANeuralNetworksEvent_createFromSyncFenceFd(ends[0], &event));
  WANT(NULL_, ANeuralNetworksEvent_getSyncFenceFd(NULL, &fence));
  WANT(NULL_, ANeuralNetworksEvent_getSyncFenceFd(event, NULL));
  WANT(OK, ANeuralNetworksEvent_getSyncFenceFd(event, &fence));
  HOLDS(fence >= 0);
  close(fence);
  ANeuralNetworksEvent_free(event); /* not signalled: nobody waits for it */

  /* An execution that was not started behind fences has none. */
  float out[2];
  ANeuralNetworksExecution* execution = ready(any, x, y, out, 2);
  WANT(OK, ANeuralNetworksExecution_startCompute(execution, &event));
  WANT(DATA, ANeuralNetworksEvent_getSyncFenceFd(event, &fence));
  HOLDS(fence == -1);
  ANeuralNetworksEvent_free(event);
  ANeuralNetworksExecution_free(execution);

  chain(one);
  chain(any);

  /* Whoever takes a fence and closes it at once gets no signal (SIGPIPE ends this program). */
  for (int round = 0; round < 20; round++) {
    execution = ready(one, x, y, out, 2);
    WANT(OK, ANeuralNetworksExecution_startComputeWithDependencies(execution, NULL, 0, 0, &event));
    if (ANeuralNetworksEvent_getSyncFenceFd(event, &fence) == OK) close(fence);
    ANeuralNetworksEvent_free(event);
    ANeuralNetworksExecution_free(execution);
  }
  close(ends[0]);
  close(ends[1]);
  close(null_device);
  ANeuralNetworksCompilation_free(one);
  ANeuralNetworksCompilation_free(any);
  ANeuralNetworksModel_free(model);
}
