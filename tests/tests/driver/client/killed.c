/* A client of a service that is killed and started again: one compilation for the named device, one that another
 * device may stand in for, made once. It says what it has seen, and reads what becomes of the service. */
#include <stdio.h>
#include <string.h>

#include "NeuralNetworks.h"

static int wrong;

static void want(int line, const char* what, int got, int wanted) {
  if (got == wanted) return;
  fprintf(stderr, "line %d: %s is %d, not %d\n", line, what, got, wanted);
  wrong = 1;
}
#define WANT(code, call) want(__LINE__, #call, (call), (code))

/* x * x + x of two floats. */
static ANeuralNetworksModel* square(void) {
  const uint32_t two = 2;
  const int32_t none = ANEURALNETWORKS_FUSED_NONE;
  ANeuralNetworksOperandType floats = {ANEURALNETWORKS_TENSOR_FLOAT32, 1, &two, 0, 0};
  ANeuralNetworksOperandType scalar = {ANEURALNETWORKS_INT32, 0, NULL, 0, 0};
  ANeuralNetworksModel* model = NULL;
  WANT(0, ANeuralNetworksModel_create(&model));
  for (int i = 0; i < 3; i++) WANT(0, ANeuralNetworksModel_addOperand(model, &floats));
  WANT(0, ANeuralNetworksModel_addOperand(model, &scalar));
  WANT(0, ANeuralNetworksModel_setOperandValue(model, 3, &none, sizeof none));
  const uint32_t product[] = {0, 0, 3}, sum[] = {1, 0, 3}, between = 1, in = 0, out = 2;
  WANT(0, ANeuralNetworksModel_addOperation(model, ANEURALNETWORKS_MUL, 3, product, 1, &between));
  WANT(0, ANeuralNetworksModel_addOperation(model, ANEURALNETWORKS_ADD, 3, sum, 1, &out));
  WANT(0, ANeuralNetworksModel_identifyInputsAndOutputs(model, 1, &in, 1, &out));
  WANT(0, ANeuralNetworksModel_finish(model));
  return model;
}

/* The code of one inference; a right answer where that is 0. `burst` may be null. */
static int run(ANeuralNetworksCompilation* compilation, ANeuralNetworksBurst* burst, float x) {
  float in[2] = {x, -x}, out[2] = {0, 0};
  ANeuralNetworksExecution* execution = NULL;
  WANT(0, ANeuralNetworksExecution_create(compilation, &execution));
  WANT(0, ANeuralNetworksExecution_setInput(execution, 0, NULL, in, sizeof in));
  WANT(0, ANeuralNetworksExecution_setOutput(execution, 0, NULL, out, sizeof out));
  int code = burst ? ANeuralNetworksExecution_burstCompute(execution, burst)
                   : ANeuralNetworksExecution_compute(execution);
  ANeuralNetworksExecution_free(execution);
  if (code == 0 && (out[0] != x * x + x || out[1] != x * x - x)) {
    fprintf(stderr, "%f gives %f and %f\n", x, out[0], out[1]);
    wrong = 1;
  }
  return code;
}

static void say(const char* word) {
  puts(word);
  fflush(stdout);
}

int main(void) {
  ANeuralNetworksDevice* device = NULL;
  const char* name = "";
  WANT(0, ANeuralNetworks_getDevice(0, &device));
  WANT(0, ANeuralNetworksDevice_getName(device, &name));
  if (strcmp(name, "part") != 0) {
    fprintf(stderr, "the first device is %s\n", name);
    return 1;
  }
  ANeuralNetworksModel* model = square();
  ANeuralNetworksCompilation *named = NULL, *any = NULL;
  const ANeuralNetworksDevice* devices[] = {device};
  WANT(0, ANeuralNetworksCompilation_createForDevices(model, devices, 1, &named));
  WANT(0, ANeuralNetworksCompilation_create(model, &any));
  WANT(0, ANeuralNetworksCompilation_finish(named));
  WANT(0, ANeuralNetworksCompilation_finish(any));
  ANeuralNetworksBurst* burst = NULL;
  WANT(0, ANeuralNetworksBurst_create(named, &burst));
  for (int round = 1; round <= 3; round++) {
    WANT(0, run(named, NULL, round));
    WANT(0, run(named, burst, round));
    WANT(0, run(any, NULL, round));
    say("runs");
    char line[16];
    if (!fgets(line, sizeof line, stdin)) return 1; /* it is killed */
    WANT(ANEURALNETWORKS_DEAD_OBJECT, run(named, NULL, 2));
    WANT(ANEURALNETWORKS_DEAD_OBJECT, run(named, burst, 2));
    WANT(0, run(any, NULL, 2));
    ANeuralNetworksCompilation* late = NULL;
    WANT(0, ANeuralNetworksCompilation_createForDevices(model, devices, 1, &late));
    WANT(ANEURALNETWORKS_DEAD_OBJECT, ANeuralNetworksCompilation_finish(late));
    ANeuralNetworksCompilation_free(late);
    say("does without");
    if (!fgets(line, sizeof line, stdin)) return 1; /* it is there again */
    WANT(0, ANeuralNetworksDevice_wait(device));
  }
  WANT(0, run(named, NULL, 5));
  WANT(0, run(named, burst, 5));
  WANT(0, run(any, NULL, 5));
  ANeuralNetworksBurst_free(burst);
  ANeuralNetworksCompilation_free(any);
  ANeuralNetworksCompilation_free(named);
  ANeuralNetworksModel_free(model);
  say(wrong ? "wrong" : "right");
  return wrong;
}
