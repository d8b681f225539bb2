/* Executions: arguments, the ways to compute, results. */
#define _GNU_SOURCE
#include <string.h>

#include "check.h"

static const float x[2] = {1, 2}, y[2] = {10, 20};

void arguments(void) {
  ANeuralNetworksModel *model = sum(2, 2), *open_model = sum(0, 0);
  ANeuralNetworksCompilation *compilation = compiled(model), *unfinished = NULL;
  ANeuralNetworksExecution* execution = NULL;
  ANeuralNetworksMemory* memory = memory_of(shared(64), 64);
  float out[2];
  WANT(OK, ANeuralNetworksCompilation_create(model, &unfinished));
  WANT(NULL_, ANeuralNetworksExecution_create(NULL, &execution));
  WANT(NULL_, ANeuralNetworksExecution_create(compilation, NULL));
  WANT(STATE, ANeuralNetworksExecution_create(unfinished, &execution));
  HOLDS(execution == NULL);
  ANeuralNetworksExecution_free(NULL);
  WANT(OK, ANeuralNetworksExecution_create(compilation, &execution));

  WANT(NULL_, ANeuralNetworksExecution_setInput(NULL, 0, NULL, x, 8));
  WANT(NULL_, ANeuralNetworksExecution_setInput(execution, 0, NULL, NULL, 8));
  WANT(DATA, ANeuralNetworksExecution_setInput(execution, -1, NULL, x, 8));
  WANT(DATA, ANeuralNetworksExecution_setInput(execution, 2, NULL, x, 8));
  WANT(DATA, ANeuralNetworksExecution_setInput(execution, 0, NULL, x, 0));
  WANT(DATA, ANeuralNetworksExecution_setInput(execution, 0, NULL, x, 4));
  WANT(DATA, ANeuralNetworksExecution_setInput(execution, 0, NULL, x, 12));
  WANT(DATA, ANeuralNetworksExecution_setInput(execution, 0, NULL, x, (size_t)1 << 32));
  const uint32_t three = 3, none = 0;
  ANeuralNetworksOperandType other = tensor(ANEURALNETWORKS_TENSOR_FLOAT32, 1, &three);
  WANT(DATA, ANeuralNetworksExecution_setInput(execution, 0, &other, x, 12)); /* against the model */
  other.type = 99;
  WANT(DATA, ANeuralNetworksExecution_setInput(execution, 0, &other, x, 8));
  WANT(OK, ANeuralNetworksExecution_setInput(execution, 0, NULL, x, 8));
  WANT(STATE, ANeuralNetworksExecution_setInput(execution, 0, NULL, x, 8)); /* twice */

  WANT(NULL_, ANeuralNetworksExecution_setInputFromMemory(NULL, 1, NULL, memory, 0, 8));
  WANT(NULL_, ANeuralNetworksExecution_setInputFromMemory(execution, 1, NULL, NULL, 0, 8));
  WANT(DATA, ANeuralNetworksExecution_setInputFromMemory(execution, 2, NULL, memory, 0, 8));
  WANT(DATA, ANeuralNetworksExecution_setInputFromMemory(execution, 1, NULL, memory, 60, 8));
  WANT(DATA, ANeuralNetworksExecution_setInputFromMemory(execution, 1, NULL, memory, SIZE_MAX, 8));
  WANT(DATA, ANeuralNetworksExecution_setInputFromMemory(execution, 1, NULL, memory, 0, 4));
  WANT(OK, ANeuralNetworksExecution_setInputFromMemory(execution, 1, NULL, memory, 8, 8));
  WANT(STATE, ANeuralNetworksExecution_setInputFromMemory(execution, 1, NULL, memory, 8, 8));

  WANT(NULL_, ANeuralNetworksExecution_setOutput(NULL, 0, NULL, out, 8));
  WANT(NULL_, ANeuralNetworksExecution_setOutput(execution, 0, NULL, NULL, 8));
  WANT(DATA, ANeuralNetworksExecution_setOutput(execution, -1, NULL, out, 8));
  WANT(DATA, ANeuralNetworksExecution_setOutput(execution, 1, NULL, out, 8));
  WANT(DATA, ANeuralNetworksExecution_setOutput(execution, 0, NULL, out, 4));
  WANT(NULL_, ANeuralNetworksExecution_setOutputFromMemory(NULL, 0, NULL, memory, 0, 8));
  WANT(NULL_, ANeuralNetworksExecution_setOutputFromMemory(execution, 0, NULL, NULL, 0, 8));
  WANT(DATA, ANeuralNetworksExecution_setOutputFromMemory(execution, 1, NULL, memory, 0, 8));
  WANT(DATA, ANeuralNetworksExecution_setOutputFromMemory(execution, 0, NULL, memory, 60, 8));
  WANT(OK, ANeuralNetworksExecution_setOutputFromMemory(execution, 0, NULL, memory, 16, 8));
  WANT(STATE, ANeuralNetworksExecution_setOutput(execution, 0, NULL, out, 8));
  WANT(OK, ANeuralNetworksExecution_compute(execution));
  ANeuralNetworksExecution_free(execution);

  /* A type says what the model leaves open, all of it. */
  ANeuralNetworksCompilation* open = compiled(open_model);
  WANT(OK, ANeuralNetworksExecution_create(open, &execution));
  ANeuralNetworksOperandType still_open = tensor(ANEURALNETWORKS_TENSOR_FLOAT32, 1, &none);
  const uint32_t two = 2;
  ANeuralNetworksOperandType full = tensor(ANEURALNETWORKS_TENSOR_FLOAT32, 1, &two);
  WANT(DATA, ANeuralNetworksExecution_setInput(execution, 0, &still_open, x, 8));
  WANT(OK, ANeuralNetworksExecution_setInput(execution, 0, &full, x, 8));
  WANT(OK, ANeuralNetworksExecution_setInput(execution, 1, &full, y, 8));
  WANT(OK, ANeuralNetworksExecution_setOutput(execution, 0, &full, out, 8));
  WANT(OK, ANeuralNetworksExecution_compute(execution));
  HOLDS(out[0] == 11 && out[1] == 22);
  ANeuralNetworksExecution_free(execution);
  ANeuralNetworksCompilation_free(open);
  ANeuralNetworksCompilation_free(unfinished);
  ANeuralNetworksCompilation_free(compilation);
  ANeuralNetworksMemory_free(memory);
  ANeuralNetworksModel_free(open_model);
  ANeuralNetworksModel_free(model);
}

/* Whatever says how to compute is refused once it has begun. */
static void refuses_options(ANeuralNetworksExecution* execution, ANeuralNetworksBurst* burst) {
  float out[2];
  ANeuralNetworksEvent* event = (ANeuralNetworksEvent*)out;
  WANT(STATE, ANeuralNetworksExecution_setInput(execution, 0, NULL, x, 8));
  WANT(STATE, ANeuralNetworksExecution_setOutput(execution, 0, NULL, out, 8));
  WANT(STATE, ANeuralNetworksExecution_setMeasureTiming(execution, true));
  WANT(STATE, ANeuralNetworksExecution_setTimeout(execution, 1));
  WANT(STATE, ANeuralNetworksExecution_setLoopTimeout(execution, 1));
  WANT(STATE, ANeuralNetworksExecution_setReusable(execution, true));
  WANT(STATE, ANeuralNetworksExecution_enableInputAndOutputPadding(execution, true));
  WANT(STATE, ANeuralNetworksExecution_addExtensionAttribute(execution, "x.y", 0, x, 8));
  WANT(STATE, ANeuralNetworksExecution_compute(execution));
  WANT(STATE, ANeuralNetworksExecution_burstCompute(execution, burst));
  WANT(STATE, ANeuralNetworksExecution_startCompute(execution, &event));
  HOLDS(event == NULL);
  WANT(STATE, ANeuralNetworksExecution_startComputeWithDependencies(execution, NULL, 0, 0, &event));
}

static void ways(ANeuralNetworksCompilation* compilation, ANeuralNetworksBurst* burst) {
  for (int way = 0; way < 4; way++) {
    float out[2] = {0, 0};
    ANeuralNetworksEvent* event = NULL;
    ANeuralNetworksExecution* execution = ready(compilation, x, y, out, 2);
    if (way == 0) WANT(OK, ANeuralNetworksExecution_compute(execution));
    if (way == 1) WANT(OK, ANeuralNetworksExecution_burstCompute(execution, burst));
    if (way == 2) WANT(OK, ANeuralNetworksExecution_startCompute(execution, &event));
    if (way == 3) WANT(OK, ANeuralNetworksExecution_startComputeWithDependencies(execution, NULL, 0, 0, &event));
    if (way >= 2) WANT(OK, ANeuralNetworksEvent_wait(event));
    HOLDS(out[0] == 11 && out[1] == 22);
    refuses_options(execution, burst);
    ANeuralNetworksEvent_free(event);
    ANeuralNetworksExecution_free(execution);
  }
}

void computing(void) {
  ANeuralNetworksModel* model = sum(2, 2);
  ANeuralNetworksCompilation *any = compiled(model), *one = compiled_for(model, first_device());
  ANeuralNetworksBurst* burst = NULL;
  WANT(OK, ANeuralNetworksBurst_create(any, &burst));
  ways(any, burst);
  ANeuralNetworksBurst_free(burst);
  WANT(OK, ANeuralNetworksBurst_create(one, &burst));
  ways(one, burst);
  ANeuralNetworksBurst_free(burst);

  ANeuralNetworksExecution *execution = NULL, *named = NULL;
  ANeuralNetworksEvent* event = NULL;
  const ANeuralNetworksEvent* nothing[1] = {NULL};
  float out[2];
  WANT(NULL_, ANeuralNetworksExecution_compute(NULL));
  WANT(NULL_, ANeuralNetworksExecution_startCompute(NULL, &event));
  WANT(NULL_, ANeuralNetworksExecution_startComputeWithDependencies(NULL, NULL, 0, 0, &event));
  execution = ready(any, x, y, out, 2);
  WANT(NULL_, ANeuralNetworksExecution_startCompute(execution, NULL));
  WANT(NULL_, ANeuralNetworksExecution_startComputeWithDependencies(execution, NULL, 0, 0, NULL));
  WANT(NULL_, ANeuralNetworksExecution_startComputeWithDependencies(execution, NULL, 1, 0, &event));
  WANT(NULL_, ANeuralNetworksExecution_startComputeWithDependencies(execution, nothing, 1, 0, &event));
  WANT(DATA, ANeuralNetworksExecution_startComputeWithDependencies(execution, nothing, UINT32_MAX, 0, &event));

  /* Times and their limits are for one named device. */
  WANT(DATA, ANeuralNetworksExecution_startComputeWithDependencies(execution, NULL, 0, 1, &event));
  WANT(DATA, ANeuralNetworksExecution_setMeasureTiming(execution, true));
  WANT(DATA, ANeuralNetworksExecution_setTimeout(execution, 1));
  WANT(NULL_, ANeuralNetworksExecution_setMeasureTiming(NULL, true));
  WANT(NULL_, ANeuralNetworksExecution_setTimeout(NULL, 1));
  WANT(NULL_, ANeuralNetworksExecution_setLoopTimeout(NULL, 1));
  named = ready(one, x, y, out, 2);
  WANT(OK, ANeuralNetworksExecution_setMeasureTiming(named, true));
  WANT(OK, ANeuralNetworksExecution_setTimeout(named, 0));
  WANT(OK, ANeuralNetworksExecution_setTimeout(named, 60000000000u));
  WANT(OK, ANeuralNetworksExecution_setLoopTimeout(named, UINT64_MAX)); /* as long as can be */
  WANT(OK, ANeuralNetworksExecution_compute(named));
  ANeuralNetworksExecution_free(named);
  ANeuralNetworksExecution_free(execution);

  /* An argument that was forgotten. */
  WANT(OK, ANeuralNetworksExecution_create(any, &execution));
  WANT(OK, ANeuralNetworksExecution_setInput(execution, 0, NULL, x, 8));
  WANT(OK, ANeuralNetworksExecution_setOutput(execution, 0, NULL, out, 8));
  WANT(DATA, ANeuralNetworksExecution_compute(execution));
  ANeuralNetworksExecution_free(execution);
  ANeuralNetworksCompilation_free(one);
  ANeuralNetworksCompilation_free(any);
  ANeuralNetworksModel_free(model);
}

static void durations(void) {
  ANeuralNetworksModel* model = sum(2, 2);
  ANeuralNetworksCompilation* compilation = compiled_for(model, first_device());
  float out[2];
  uint64_t device = 0, driver = 0;
  ANeuralNetworksExecution* execution = ready(compilation, x, y, out, 2);
  WANT(OK, ANeuralNetworksExecution_setMeasureTiming(execution, true));
  WANT(NULL_, ANeuralNetworksExecution_getDuration(NULL, 0, &device));
  WANT(NULL_, ANeuralNetworksExecution_getDuration(execution, 0, NULL));
  WANT(STATE, ANeuralNetworksExecution_getDuration(execution, 0, &device));
  HOLDS(device == UINT64_MAX);
  WANT(OK, ANeuralNetworksExecution_compute(execution));
  WANT(DATA, ANeuralNetworksExecution_getDuration(execution, 4, &device));
  WANT(DATA, ANeuralNetworksExecution_getDuration(execution, -1, &device));
  WANT(OK, ANeuralNetworksExecution_getDuration(execution, ANEURALNETWORKS_DURATION_ON_HARDWARE, &device));
  WANT(OK, ANeuralNetworksExecution_getDuration(execution, ANEURALNETWORKS_DURATION_IN_DRIVER, &driver));
  HOLDS(device == UINT64_MAX || driver == UINT64_MAX || device <= driver);
  WANT(OK, ANeuralNetworksExecution_getDuration(execution, ANEURALNETWORKS_FENCED_DURATION_IN_DRIVER, &driver));
  ANeuralNetworksExecution_free(execution);

  execution = ready(compilation, x, y, out, 2);
  WANT(OK, ANeuralNetworksExecution_compute(execution));
  WANT(STATE, ANeuralNetworksExecution_getDuration(execution, 0, &device)); /* not asked for in time */
  HOLDS(device == UINT64_MAX);
  ANeuralNetworksExecution_free(execution);
  ANeuralNetworksCompilation_free(compilation);
  ANeuralNetworksModel_free(model);
}

void results(void) {
  durations();
  ANeuralNetworksModel* model = sum(2, 0);
  ANeuralNetworksCompilation* compilation = compiled(model);
  ANeuralNetworksExecution* execution = NULL;
  ANeuralNetworksEvent* event = NULL;
  float out[4] = {0, 0, 7, 7};
  uint32_t rank = 9, size = 9;
  WANT(OK, ANeuralNetworksExecution_create(compilation, &execution));
  WANT(OK, ANeuralNetworksExecution_setInput(execution, 0, NULL, x, 8));
  WANT(OK, ANeuralNetworksExecution_setInput(execution, 1, NULL, y, 8));
  WANT(OK, ANeuralNetworksExecution_setOutput(execution, 0, NULL, out, sizeof out));
  WANT(NULL_, ANeuralNetworksExecution_getOutputOperandRank(NULL, 0, &rank));
  WANT(NULL_, ANeuralNetworksExecution_getOutputOperandRank(execution, 0, NULL));
  WANT(NULL_, ANeuralNetworksExecution_getOutputOperandDimensions(NULL, 0, &size));
  WANT(NULL_, ANeuralNetworksExecution_getOutputOperandDimensions(execution, 0, NULL));
  WANT(STATE, ANeuralNetworksExecution_getOutputOperandRank(execution, 0, &rank));
  WANT(STATE, ANeuralNetworksExecution_getOutputOperandDimensions(execution, 0, &size));
  /* Behind fences an output's size has to be known. */
  WANT(DATA, ANeuralNetworksExecution_startComputeWithDependencies(execution, NULL, 0, 0, &event));
  HOLDS(event == NULL);
  ANeuralNetworksExecution_free(execution);

  for (int small = 0; small < 2; small++) {
    WANT(OK, ANeuralNetworksExecution_create(compilation, &execution));
    WANT(OK, ANeuralNetworksExecution_setInput(execution, 0, NULL, x, 8));
    WANT(OK, ANeuralNetworksExecution_setInput(execution, 1, NULL, y, 8));
    WANT(OK, ANeuralNetworksExecution_setOutput(execution, 0, NULL, out, small ? 4 : sizeof out));
    WANT(small ? SMALL : OK, ANeuralNetworksExecution_compute(execution));
    rank = size = 9;
    WANT(DATA, ANeuralNetworksExecution_getOutputOperandRank(execution, 1, &rank));
    WANT(DATA, ANeuralNetworksExecution_getOutputOperandRank(execution, -1, &rank));
    WANT(DATA, ANeuralNetworksExecution_getOutputOperandDimensions(execution, 1, &size));
    WANT(small ? SMALL : OK, ANeuralNetworksExecution_getOutputOperandRank(execution, 0, &rank));
    WANT(small ? SMALL : OK, ANeuralNetworksExecution_getOutputOperandDimensions(execution, 0, &size));
    HOLDS(rank == 1 && size == 2);
    ANeuralNetworksExecution_free(execution);
  }
  HOLDS(out[0] == 11 && out[1] == 22 && out[2] == 7);
  ANeuralNetworksCompilation_free(compilation);
  ANeuralNetworksModel_free(model);
}

/* What level 31 added to executions. */
void level_five(void) {
  ANeuralNetworksModel* model = sum(2, 2);
  ANeuralNetworksCompilation* compilation = compiled(model);
  ANeuralNetworksExecution* execution = NULL;
  float inputs[4] = {1, 2, 9, 9}, out[4] = {0, 0, 7, 7};
  WANT(NULL_, ANeuralNetworksExecution_setReusable(NULL, true));
  WANT(NULL_, ANeuralNetworksExecution_enableInputAndOutputPadding(NULL, true));
  WANT(NULL_, ANeuralNetworksExecution_addExtensionAttribute(NULL, "x.y", 0, x, 8));

  execution = ready(compilation, inputs, y, out, 2);
  WANT(OK, ANeuralNetworksExecution_setReusable(execution, true));
  WANT(STATE, ANeuralNetworksExecution_enableInputAndOutputPadding(execution, true)); /* too late */
  WANT(NULL_, ANeuralNetworksExecution_addExtensionAttribute(execution, NULL, 0, x, 8));
  WANT(NULL_, ANeuralNetworksExecution_addExtensionAttribute(execution, "x.y", 0, NULL, 8));
  WANT(DATA, ANeuralNetworksExecution_addExtensionAttribute(execution, "x.y", 0, x, 8));
  for (int again = 0; again < 3; again++) {
    inputs[0] = (float)again;
    WANT(OK, ANeuralNetworksExecution_compute(execution));
    HOLDS(out[0] == (float)again + 10);
  }
  WANT(STATE, ANeuralNetworksExecution_setReusable(execution, false));
  ANeuralNetworksExecution_free(execution);

  WANT(OK, ANeuralNetworksExecution_create(compilation, &execution));
  WANT(OK, ANeuralNetworksExecution_enableInputAndOutputPadding(execution, true));
  WANT(DATA, ANeuralNetworksExecution_setInput(execution, 0, NULL, inputs, 4)); /* still too short */
  WANT(OK, ANeuralNetworksExecution_setInput(execution, 0, NULL, inputs, 16));
  WANT(OK, ANeuralNetworksExecution_setInput(execution, 1, NULL, y, 8));
  WANT(OK, ANeuralNetworksExecution_setOutput(execution, 0, NULL, out, 16));
  WANT(OK, ANeuralNetworksExecution_compute(execution));
  HOLDS(out[0] == inputs[0] + 10 && out[1] == 22 && out[2] == 7 && out[3] == 7);
  ANeuralNetworksExecution_free(execution);
  ANeuralNetworksCompilation_free(compilation);
  ANeuralNetworksModel_free(model);
}

/* IF, whose branches are models of their own: x + y, or x. */
void control_flow(void) {
  ANeuralNetworksModel *model = NULL, *then = sum(2, 2), *otherwise = NULL;
  const uint32_t one = 1, two = 2, in[5] = {0, 1, 2, 3, 4}, out = 5, pair[2] = {0, 1}, only[1] = {0};
  WANT(OK, ANeuralNetworksModel_create(&otherwise));
  add(otherwise, tensor(ANEURALNETWORKS_TENSOR_FLOAT32, 1, &two));
  add(otherwise, tensor(ANEURALNETWORKS_TENSOR_FLOAT32, 1, &two));
  add(otherwise, tensor(ANEURALNETWORKS_TENSOR_FLOAT32, 1, &two));
  const uint32_t result = 2;
  WANT(OK, ANeuralNetworksModel_addOperation(otherwise, ANEURALNETWORKS_RELU, 1, only, 1, &result));
  WANT(OK, ANeuralNetworksModel_identifyInputsAndOutputs(otherwise, 2, pair, 1, &result));
  WANT(OK, ANeuralNetworksModel_finish(otherwise));

  WANT(OK, ANeuralNetworksModel_create(&model));
  add(model, tensor(ANEURALNETWORKS_TENSOR_BOOL8, 1, &one));
  add(model, scalar(ANEURALNETWORKS_MODEL));
  add(model, scalar(ANEURALNETWORKS_MODEL));
  for (int i = 0; i < 3; i++) add(model, tensor(ANEURALNETWORKS_TENSOR_FLOAT32, 1, &two));
  WANT(OK, ANeuralNetworksModel_setOperandValueFromModel(model, 1, then));
  WANT(OK, ANeuralNetworksModel_setOperandValueFromModel(model, 2, otherwise));
  WANT(OK, ANeuralNetworksModel_addOperation(model, ANEURALNETWORKS_IF, 5, in, 1, &out));
  const uint32_t inputs[3] = {0, 3, 4};
  WANT(OK, ANeuralNetworksModel_identifyInputsAndOutputs(model, 3, inputs, 1, &out));
  WANT(OK, ANeuralNetworksModel_finish(model));
  ANeuralNetworksModel_free(then);
  ANeuralNetworksModel_free(otherwise);

  ANeuralNetworksCompilation* compilation = compiled(model);
  ANeuralNetworksModel_free(model);
  for (uint8_t condition = 0; condition < 2; condition++) {
    ANeuralNetworksExecution* execution = NULL;
    float sums[2] = {0, 0};
    WANT(OK, ANeuralNetworksExecution_create(compilation, &execution));
    WANT(OK, ANeuralNetworksExecution_setInput(execution, 0, NULL, &condition, 1));
    WANT(OK, ANeuralNetworksExecution_setInput(execution, 1, NULL, x, 8));
    WANT(OK, ANeuralNetworksExecution_setInput(execution, 2, NULL, y, 8));
    WANT(OK, ANeuralNetworksExecution_setOutput(execution, 0, NULL, sums, 8));
    WANT(OK, ANeuralNetworksExecution_setLoopTimeout(execution, 1000000000));
    WANT(OK, ANeuralNetworksExecution_compute(execution));
    HOLDS(sums[0] == (condition ? 11 : 1) && sums[1] == (condition ? 22 : 2));
    ANeuralNetworksExecution_free(execution);
  }
  ANeuralNetworksCompilation_free(compilation);
}

void bursts(void) {
  ANeuralNetworksModel* model = sum(2, 2);
  ANeuralNetworksCompilation *compilation = compiled(model), *other = compiled(model), *open = NULL;
  ANeuralNetworksBurst *burst = NULL, *foreign = NULL;
  float out[2];
  WANT(OK, ANeuralNetworksCompilation_create(model, &open));
  WANT(NULL_, ANeuralNetworksBurst_create(NULL, &burst));
  WANT(NULL_, ANeuralNetworksBurst_create(compilation, NULL));
  WANT(STATE, ANeuralNetworksBurst_create(open, &burst));
  HOLDS(burst == NULL);
  ANeuralNetworksBurst_free(NULL);
  WANT(OK, ANeuralNetworksBurst_create(compilation, &burst));
  WANT(OK, ANeuralNetworksBurst_create(other, &foreign));
  ANeuralNetworksExecution* execution = ready(compilation, x, y, out, 2);
  WANT(NULL_, ANeuralNetworksExecution_burstCompute(NULL, burst));
  WANT(NULL_, ANeuralNetworksExecution_burstCompute(execution, NULL));
  WANT(DATA, ANeuralNetworksExecution_burstCompute(execution, foreign));
  ANeuralNetworksExecution_free(execution);
  for (int round = 0; round < 5; round++) {
    out[0] = 0;
    execution = ready(compilation, x, y, out, 2);
    WANT(OK, ANeuralNetworksExecution_burstCompute(execution, burst));
    HOLDS(out[0] == 11 && out[1] == 22);
    ANeuralNetworksExecution_free(execution);
  }
  ANeuralNetworksBurst_free(foreign);
  ANeuralNetworksBurst_free(burst);
  ANeuralNetworksCompilation_free(open);
  ANeuralNetworksCompilation_free(other);
  ANeuralNetworksCompilation_free(compilation);
  ANeuralNetworksModel_free(model);
}
