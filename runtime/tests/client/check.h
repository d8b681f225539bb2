/* What the groups of this client share: checks that go on after a failure, and small models. */
#ifndef CHECK_H
#define CHECK_H

#include "NeuralNetworks.h"
#include "NeuralNetworksExtensions.h"

/* The codes, short. */
enum {
  OK = ANEURALNETWORKS_NO_ERROR,
  NULL_ = ANEURALNETWORKS_UNEXPECTED_NULL,
  DATA = ANEURALNETWORKS_BAD_DATA,
  FAILED = ANEURALNETWORKS_OP_FAILED,
  STATE = ANEURALNETWORKS_BAD_STATE,
  SMALL = ANEURALNETWORKS_OUTPUT_INSUFFICIENT_SIZE,
  AWAY = ANEURALNETWORKS_UNAVAILABLE_DEVICE,
};

/* Says so where a call answers another code, or a condition does not hold; the client then ends with 1. */
void want(const char* file, int line, const char* what, int got, int wanted);
#define WANT(code, call) want(__FILE__, __LINE__, #call, (call), (code))
#define HOLDS(condition) want(__FILE__, __LINE__, #condition, (condition) ? 1 : 0, 1)

/* The device of last resort, and any other one. */
ANeuralNetworksDevice* last_device(void);
ANeuralNetworksDevice* first_device(void);

/* A type with these dimensions; `rank` of 0 has none. */
ANeuralNetworksOperandType tensor(int32_t type, uint32_t rank, const uint32_t* dimensions);
ANeuralNetworksOperandType scalar(int32_t type);
uint32_t add(ANeuralNetworksModel* model, ANeuralNetworksOperandType type);

/* x + y of floats, both inputs of `length` elements and one output of `out` (0: not known). Not finished. */
ANeuralNetworksModel* unfinished_sum(uint32_t length, uint32_t out);
/* The same, finished, and finished for all devices. */
ANeuralNetworksModel* sum(uint32_t length, uint32_t out);
ANeuralNetworksCompilation* compiled(ANeuralNetworksModel* model);
ANeuralNetworksCompilation* compiled_for(ANeuralNetworksModel* model, ANeuralNetworksDevice* device);

/* An execution of x + y on these arrays. */
ANeuralNetworksExecution* ready(ANeuralNetworksCompilation* compilation, const float* x, const float* y,
                                float* out, uint32_t length);

/* Shared memory of so many bytes, and a memory of all of it. */
int shared(size_t size);
ANeuralNetworksMemory* memory_of(int fd, size_t size);

/* The groups. */
void load(void);
void devices(void);
void operands(void);
void operations(void);
void extensions(void);
void compilations(void);
void memories(void);
void descriptions(void);
void device_memories(void);
void hardware_buffers(void);
void arguments(void);
void computing(void);
void results(void);
void failures(void);
void scalars(void);
void level_five(void);
void control_flow(void);
void bursts(void);
void events(void);
void fences(void);
void handles(void);
void order_of_freeing(void);
void forked(void);
void threads(void);
void growth(void);

#endif
