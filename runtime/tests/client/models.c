/* Models: operands, values, operations, states. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

static ANeuralNetworksModel* empty(void) {
  ANeuralNetworksModel* model = NULL;
  WANT(OK, ANeuralNetworksModel_create(&model));
  return model;
}

static int added(ANeuralNetworksModel* model, ANeuralNetworksOperandType type, float scale, int32_t zero) {
  type.scale = scale;
  type.zeroPoint = zero;
  return ANeuralNetworksModel_addOperand(model, &type);
}

static void types(ANeuralNetworksModel* model) {
  const uint32_t two = 2, huge[] = {65536, 65536, 65536}, nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  const int32_t floats = ANEURALNETWORKS_TENSOR_FLOAT32, bytes = ANEURALNETWORKS_TENSOR_QUANT8_ASYMM;
  ANeuralNetworksOperandType type = tensor(floats, 1, &two);
  WANT(NULL_, ANeuralNetworksModel_addOperand(NULL, &type));
  WANT(NULL_, ANeuralNetworksModel_addOperand(model, NULL));
  WANT(DATA, added(model, tensor(-1, 1, &two), 0, 0));
  WANT(DATA, added(model, tensor(16, 1, &two), 0, 0));
  WANT(DATA, added(model, tensor(ANEURALNETWORKS_INT32, 1, &two), 0, 0)); /* a scalar with dimensions */
  WANT(DATA, added(model, scalar(ANEURALNETWORKS_INT32), 1, 0));
  WANT(DATA, added(model, scalar(ANEURALNETWORKS_FLOAT32), 0, 1));
  WANT(DATA, added(model, tensor(floats, 1, &two), 1, 0));
  WANT(DATA, added(model, tensor(floats, 1, &two), 0, 1));
  WANT(DATA, added(model, tensor(bytes, 1, &two), 0, 0));
  WANT(DATA, added(model, tensor(bytes, 1, &two), -1, 0));
  WANT(DATA, added(model, tensor(bytes, 1, &two), NAN, 0));
  WANT(DATA, added(model, tensor(bytes, 1, &two), 1, 256));
  WANT(DATA, added(model, tensor(bytes, 1, &two), 1, -1));
  WANT(DATA, added(model, tensor(ANEURALNETWORKS_TENSOR_QUANT8_ASYMM_SIGNED, 1, &two), 1, 128));
  WANT(DATA, added(model, tensor(ANEURALNETWORKS_TENSOR_QUANT8_SYMM, 1, &two), 1, 1));
  WANT(DATA, added(model, tensor(floats, 1, NULL), 0, 0)); /* counted, and not there */
  WANT(DATA, added(model, tensor(floats, 3, huge), 0, 0)); /* more bytes than there can be */
  WANT(DATA, added(model, tensor(floats, 9, nine), 0, 0));
  WANT(DATA, added(model, tensor(floats, UINT32_MAX, nine), 0, 0));
  /* 0 */ WANT(OK, added(model, tensor(floats, 1, &two), 0, 0));
  /* 1 */ WANT(OK, added(model, tensor(floats, 0, NULL), 0, 0)); /* of unknown rank */
  /* 2 */ WANT(OK, added(model, scalar(ANEURALNETWORKS_INT32), 0, 0));
  /* 3 */ WANT(OK, added(model, tensor(bytes, 1, &two), 0.5f, 255));
  /* 4 */ WANT(OK, added(model, tensor(ANEURALNETWORKS_TENSOR_QUANT8_SYMM_PER_CHANNEL, 1, &two), 0, 0));
  /* 5 */ WANT(OK, added(model, scalar(ANEURALNETWORKS_MODEL), 0, 0));
}

static void values(ANeuralNetworksModel* model) {
  const float two[2] = {1, 2};
  WANT(NULL_, ANeuralNetworksModel_setOperandValue(NULL, 0, two, 8));
  WANT(NULL_, ANeuralNetworksModel_setOperandValue(model, 0, NULL, 8));
  WANT(DATA, ANeuralNetworksModel_setOperandValue(model, -1, two, 8));
  WANT(DATA, ANeuralNetworksModel_setOperandValue(model, 6, two, 8));
  WANT(DATA, ANeuralNetworksModel_setOperandValue(model, 0, two, 4));
  WANT(DATA, ANeuralNetworksModel_setOperandValue(model, 0, two, 12));
  WANT(DATA, ANeuralNetworksModel_setOperandValue(model, 0, two, SIZE_MAX));
  WANT(DATA, ANeuralNetworksModel_setOperandValue(model, 1, two, 8)); /* not known how long */
  WANT(OK, ANeuralNetworksModel_setOperandValue(model, 0, two, 8));
  WANT(OK, ANeuralNetworksModel_setOperandValue(model, 1, NULL, 0)); /* left out */

  const float scales[2] = {0.5f, 0.25f}, wrong[2] = {0.5f, 0};
  ANeuralNetworksSymmPerChannelQuantParams channels = {0, 2, scales};
  WANT(NULL_, ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(NULL, 4, &channels));
  WANT(NULL_, ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(model, 4, NULL));
  WANT(DATA, ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(model, 3, &channels));
  WANT(DATA, ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(model, -1, &channels));
  channels.channelDim = 1;
  WANT(DATA, ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(model, 4, &channels));
  channels = (ANeuralNetworksSymmPerChannelQuantParams){0, 1, scales};
  WANT(DATA, ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(model, 4, &channels));
  channels = (ANeuralNetworksSymmPerChannelQuantParams){0, 2, wrong};
  WANT(DATA, ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(model, 4, &channels));
  channels = (ANeuralNetworksSymmPerChannelQuantParams){0, 2, NULL};
  WANT(NULL_, ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(model, 4, &channels));
  channels.scales = scales;
  WANT(OK, ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(model, 4, &channels));

  int fd = shared(64);
  ANeuralNetworksMemory* memory = memory_of(fd, 64);
  close(fd); /* the memory has a duplicate */
  WANT(NULL_, ANeuralNetworksModel_setOperandValueFromMemory(NULL, 0, memory, 0, 8));
  WANT(NULL_, ANeuralNetworksModel_setOperandValueFromMemory(model, 0, NULL, 0, 8));
  WANT(DATA, ANeuralNetworksModel_setOperandValueFromMemory(model, -1, memory, 0, 8));
  WANT(DATA, ANeuralNetworksModel_setOperandValueFromMemory(model, 0, memory, 0, 4));
  WANT(DATA, ANeuralNetworksModel_setOperandValueFromMemory(model, 0, memory, 60, 8));
  WANT(DATA, ANeuralNetworksModel_setOperandValueFromMemory(model, 0, memory, SIZE_MAX, 8));
  WANT(OK, ANeuralNetworksModel_setOperandValueFromMemory(model, 0, memory, 4, 8));
  ANeuralNetworksMemory_free(memory);

  ANeuralNetworksModel *open = unfinished_sum(2, 2), *done = sum(2, 2);
  WANT(NULL_, ANeuralNetworksModel_setOperandValueFromModel(NULL, 5, done));
  WANT(NULL_, ANeuralNetworksModel_setOperandValueFromModel(model, 5, NULL));
  WANT(STATE, ANeuralNetworksModel_setOperandValueFromModel(model, 5, open));
  WANT(STATE, ANeuralNetworksModel_setOperandValueFromModel(model, 5, model)); /* itself */
  WANT(DATA, ANeuralNetworksModel_setOperandValueFromModel(model, 0, done));
  WANT(DATA, ANeuralNetworksModel_setOperandValueFromModel(model, 6, done));
  WANT(OK, ANeuralNetworksModel_setOperandValueFromModel(model, 5, done));
  ANeuralNetworksModel_free(open);
  ANeuralNetworksModel_free(done);
}

void operands(void) {
  WANT(NULL_, ANeuralNetworksModel_create(NULL));
  ANeuralNetworksModel_free(NULL);
  ANeuralNetworksModel* model = empty();
  types(model);
  values(model);
  ANeuralNetworksModel_free(model);
}

/* Every call that changes a model, each with arguments that a model under construction takes. */
static void refuses_changes(ANeuralNetworksModel* model) {
  const uint32_t two = 2, in[3] = {0, 1, 2}, out = 3;
  const float value[2] = {1, 2};
  const int32_t none = 0;
  ANeuralNetworksOperandType type = tensor(ANEURALNETWORKS_TENSOR_FLOAT32, 1, &two);
  ANeuralNetworksSymmPerChannelQuantParams channels = {0, 2, value};
  ANeuralNetworksModel* other = sum(2, 2);
  ANeuralNetworksMemory* memory = memory_of(shared(8), 8);
  WANT(STATE, ANeuralNetworksModel_addOperand(model, &type));
  WANT(STATE, ANeuralNetworksModel_setOperandValue(model, 2, &none, sizeof none));
  WANT(STATE, ANeuralNetworksModel_setOperandValueFromMemory(model, 0, memory, 0, 8));
  WANT(STATE, ANeuralNetworksModel_setOperandValueFromModel(model, 0, other));
  WANT(STATE, ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(model, 0, &channels));
  WANT(STATE, ANeuralNetworksModel_setOperandExtensionData(model, 0, value, 8));
  WANT(STATE, ANeuralNetworksModel_addOperation(model, ANEURALNETWORKS_ADD, 3, in, 1, &out));
  WANT(STATE, ANeuralNetworksModel_identifyInputsAndOutputs(model, 2, in, 1, &out));
  WANT(STATE, ANeuralNetworksModel_relaxComputationFloat32toFloat16(model, true));
  WANT(STATE, ANeuralNetworksModel_finish(model));
  ANeuralNetworksMemory_free(memory);
  ANeuralNetworksModel_free(other);
}

/* A model that finish refuses is invalid from then on. */
static void refused(ANeuralNetworksModel* model) {
  ANeuralNetworksCompilation* compilation = (ANeuralNetworksCompilation*)&model;
  WANT(DATA, ANeuralNetworksModel_finish(model));
  refuses_changes(model);
  WANT(STATE, ANeuralNetworksCompilation_create(model, &compilation));
  HOLDS(compilation == NULL);
  const ANeuralNetworksDevice* one[] = {last_device()};
  bool yes[4];
  WANT(STATE, ANeuralNetworksModel_getSupportedOperationsForDevices(model, one, 1, yes));
  WANT(STATE, ANeuralNetworksCompilation_createForDevices(model, one, 1, &compilation));
  ANeuralNetworksModel* referring = empty();
  add(referring, scalar(ANEURALNETWORKS_MODEL));
  WANT(STATE, ANeuralNetworksModel_setOperandValueFromModel(referring, 0, model));
  ANeuralNetworksModel_free(referring);
  ANeuralNetworksModel_free(model);
}

/* x + y with one thing wrong, which the operation's own rules forbid. */
static void illegal(void) {
  const uint32_t two = 2, one = 1, in[3] = {0, 1, 2}, out = 3, extra = 4;
  const int32_t none = 0;
  enum { TOO_FEW, TWO_WRITERS, WRITES_AN_INPUT, NO_WRITER, NO_SCALES, OTHER_TYPE, WAYS };
  for (int way = 0; way < WAYS; way++) {
    ANeuralNetworksModel* model = empty();
    const int32_t floats = ANEURALNETWORKS_TENSOR_FLOAT32;
    add(model, tensor(floats, 1, &two));
    add(model, tensor(way == OTHER_TYPE ? ANEURALNETWORKS_TENSOR_INT32 : floats, 1, &two));
    add(model, scalar(ANEURALNETWORKS_INT32));
    add(model, tensor(floats, 1, &two));
    WANT(OK, ANeuralNetworksModel_setOperandValue(model, 2, &none, sizeof none));
    /* Some of it is found at once, and in any case at the end. */
    (void)ANeuralNetworksModel_addOperation(model, ANEURALNETWORKS_ADD, way == TOO_FEW ? 1 : 3, in, 1, &out);
    if (way == TWO_WRITERS) (void)ANeuralNetworksModel_addOperation(model, ANEURALNETWORKS_MUL, 3, in, 1, &out);
    if (way == WRITES_AN_INPUT) (void)ANeuralNetworksModel_addOperation(model, ANEURALNETWORKS_MUL, 3, in, 1, &one);
    if (way == NO_WRITER) add(model, tensor(floats, 1, &two));
    if (way == NO_SCALES) {
      const int8_t values[2] = {1, 2};
      add(model, tensor(ANEURALNETWORKS_TENSOR_QUANT8_SYMM_PER_CHANNEL, 1, &two));
      WANT(OK, ANeuralNetworksModel_setOperandValue(model, (int32_t)extra, values, sizeof values));
    }
    (void)ANeuralNetworksModel_identifyInputsAndOutputs(model, 2, in, 1, &out);
    refused(model);
  }
}

static void unfinishable(void) {
  const uint32_t two = 2;
  const uint32_t in[3] = {0, 1, 2}, out = 3;
  /* A constant that nobody gave. */
  ANeuralNetworksModel* model = empty();
  add(model, tensor(ANEURALNETWORKS_TENSOR_FLOAT32, 1, &two));
  add(model, tensor(ANEURALNETWORKS_TENSOR_FLOAT32, 1, &two));
  add(model, scalar(ANEURALNETWORKS_INT32));
  add(model, tensor(ANEURALNETWORKS_TENSOR_FLOAT32, 1, &two));
  WANT(OK, ANeuralNetworksModel_addOperation(model, ANEURALNETWORKS_ADD, 3, in, 1, &out));
  WANT(OK, ANeuralNetworksModel_identifyInputsAndOutputs(model, 2, in, 1, &out));
  refused(model);

  /* Two operations, each of which waits for the other. */
  const int32_t none = 0;
  const uint32_t first[3] = {0, 4, 2}, second[3] = {0, 1, 2}, one = 1, four = 4;
  model = empty();
  add(model, tensor(ANEURALNETWORKS_TENSOR_FLOAT32, 1, &two));
  add(model, tensor(ANEURALNETWORKS_TENSOR_FLOAT32, 1, &two));
  add(model, scalar(ANEURALNETWORKS_INT32));
  add(model, tensor(ANEURALNETWORKS_TENSOR_FLOAT32, 1, &two));
  add(model, tensor(ANEURALNETWORKS_TENSOR_FLOAT32, 1, &two));
  WANT(OK, ANeuralNetworksModel_setOperandValue(model, 2, &none, sizeof none));
  WANT(OK, ANeuralNetworksModel_addOperation(model, ANEURALNETWORKS_ADD, 3, first, 1, &one));
  WANT(OK, ANeuralNetworksModel_addOperation(model, ANEURALNETWORKS_ADD, 3, second, 1, &four));
  WANT(OK, ANeuralNetworksModel_identifyInputsAndOutputs(model, 1, in, 1, &four));
  refused(model);

  refused(empty()); /* nothing in it */
  illegal();
}

static void supported(void) {
  ANeuralNetworksModel *model = sum(2, 2), *open = unfinished_sum(2, 2);
  const ANeuralNetworksDevice* all[] = {first_device(), last_device(), NULL, first_device()};
  bool yes = false;
  WANT(NULL_, ANeuralNetworksModel_getSupportedOperationsForDevices(NULL, all, 1, &yes));
  WANT(NULL_, ANeuralNetworksModel_getSupportedOperationsForDevices(model, NULL, 1, &yes));
  WANT(NULL_, ANeuralNetworksModel_getSupportedOperationsForDevices(model, all, 1, NULL));
  WANT(NULL_, ANeuralNetworksModel_getSupportedOperationsForDevices(model, all + 2, 1, &yes));
  WANT(DATA, ANeuralNetworksModel_getSupportedOperationsForDevices(model, all, 0, &yes));
  WANT(STATE, ANeuralNetworksModel_getSupportedOperationsForDevices(open, all, 1, &yes));
  all[2] = all[0];
  WANT(DATA, ANeuralNetworksModel_getSupportedOperationsForDevices(model, all + 2, 2, &yes));
  WANT(DATA, ANeuralNetworksModel_getSupportedOperationsForDevices(model, all, UINT32_MAX, &yes));
  HOLDS(!yes);
  WANT(OK, ANeuralNetworksModel_getSupportedOperationsForDevices(model, all, 2, &yes));
  HOLDS(yes);
  yes = false;
  WANT(OK, ANeuralNetworksModel_getSupportedOperationsForDevices(model, all + 1, 1, &yes));
  HOLDS(yes);
  ANeuralNetworksModel_free(model);
  ANeuralNetworksModel_free(open);
}

void operations(void) {
  ANeuralNetworksModel* model = unfinished_sum(2, 2);
  const uint32_t in[3] = {0, 1, 2}, out = 3, far = 4, twice[2] = {0, 0}, constant = 2;
  WANT(NULL_, ANeuralNetworksModel_addOperation(NULL, ANEURALNETWORKS_ADD, 3, in, 1, &out));
  WANT(NULL_, ANeuralNetworksModel_addOperation(model, ANEURALNETWORKS_ADD, 3, NULL, 1, &out));
  WANT(NULL_, ANeuralNetworksModel_addOperation(model, ANEURALNETWORKS_ADD, 3, in, 1, NULL));
  WANT(NULL_, ANeuralNetworksModel_addOperation(model, ANEURALNETWORKS_ADD, 0, NULL, 0, NULL));
  WANT(DATA, ANeuralNetworksModel_addOperation(model, -1, 3, in, 1, &out));
  WANT(DATA, ANeuralNetworksModel_addOperation(model, 102, 3, in, 1, &out)); /* BATCH_MATMUL, level 6 */
  WANT(DATA, ANeuralNetworksModel_addOperation(model, ANEURALNETWORKS_ADD, 3, in, 1, &far));
  WANT(DATA, ANeuralNetworksModel_addOperation(model, ANEURALNETWORKS_ADD, UINT32_MAX, in, 1, &out));
  ANeuralNetworksModel_free(model);

  model = empty();
  const uint32_t two = 2;
  const int32_t none = 0;
  add(model, tensor(ANEURALNETWORKS_TENSOR_FLOAT32, 1, &two));
  add(model, tensor(ANEURALNETWORKS_TENSOR_FLOAT32, 1, &two));
  add(model, scalar(ANEURALNETWORKS_INT32));
  add(model, tensor(ANEURALNETWORKS_TENSOR_FLOAT32, 1, &two));
  WANT(OK, ANeuralNetworksModel_setOperandValue(model, 2, &none, sizeof none));
  WANT(NULL_, ANeuralNetworksModel_identifyInputsAndOutputs(NULL, 2, in, 1, &out));
  WANT(NULL_, ANeuralNetworksModel_identifyInputsAndOutputs(model, 2, NULL, 1, &out));
  WANT(NULL_, ANeuralNetworksModel_identifyInputsAndOutputs(model, 2, in, 1, NULL));
  WANT(DATA, ANeuralNetworksModel_identifyInputsAndOutputs(model, 2, in, 1, &far));
  WANT(DATA, ANeuralNetworksModel_identifyInputsAndOutputs(model, 2, twice, 1, &out));
  WANT(DATA, ANeuralNetworksModel_identifyInputsAndOutputs(model, 1, &constant, 1, &out));
  WANT(DATA, ANeuralNetworksModel_identifyInputsAndOutputs(model, UINT32_MAX, in, 1, &out));
  WANT(OK, ANeuralNetworksModel_addOperation(model, ANEURALNETWORKS_ADD, 3, in, 1, &out));
  WANT(DATA, ANeuralNetworksModel_identifyInputsAndOutputs(model, 2, in, 1, in)); /* an input as output */
  WANT(OK, ANeuralNetworksModel_identifyInputsAndOutputs(model, 2, in, 1, &out));
  WANT(DATA, ANeuralNetworksModel_identifyInputsAndOutputs(model, 2, in, 1, &out)); /* once more */
  WANT(NULL_, ANeuralNetworksModel_relaxComputationFloat32toFloat16(NULL, true));
  WANT(OK, ANeuralNetworksModel_relaxComputationFloat32toFloat16(model, true));
  WANT(NULL_, ANeuralNetworksModel_finish(NULL));
  WANT(OK, ANeuralNetworksModel_finish(model));
  refuses_changes(model);
  ANeuralNetworksModel_free(model);

  unfinishable();
  supported();
}

void extensions(void) {
  ANeuralNetworksModel* model = unfinished_sum(2, 2);
  const float data[2] = {1, 2};
  char long_name[400];
  int32_t type = 0;
  memset(long_name, 'a', sizeof long_name - 1);
  long_name[sizeof long_name - 1] = 0;
  WANT(NULL_, ANeuralNetworksModel_getExtensionOperandType(NULL, "no.such", 0, &type));
  WANT(NULL_, ANeuralNetworksModel_getExtensionOperandType(model, NULL, 0, &type));
  WANT(NULL_, ANeuralNetworksModel_getExtensionOperandType(model, "no.such", 0, NULL));
  WANT(DATA, ANeuralNetworksModel_getExtensionOperandType(model, "no.such", 0, &type));
  WANT(DATA, ANeuralNetworksModel_getExtensionOperandType(model, long_name, 0, &type));
  WANT(NULL_, ANeuralNetworksModel_getExtensionOperationType(NULL, "no.such", 0, &type));
  WANT(NULL_, ANeuralNetworksModel_getExtensionOperationType(model, NULL, 0, &type));
  WANT(NULL_, ANeuralNetworksModel_getExtensionOperationType(model, "no.such", 0, NULL));
  WANT(DATA, ANeuralNetworksModel_getExtensionOperationType(model, "no.such", 0, &type));
  WANT(NULL_, ANeuralNetworksModel_setOperandExtensionData(NULL, 0, data, 8));
  WANT(NULL_, ANeuralNetworksModel_setOperandExtensionData(model, 0, NULL, 8));
  WANT(DATA, ANeuralNetworksModel_setOperandExtensionData(model, 0, data, 8)); /* no operand of an extension */
  WANT(DATA, ANeuralNetworksModel_setOperandExtensionData(model, 0, data, 0));
  ANeuralNetworksModel_free(model);
}
