/* Compilations: for which devices, options, states. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "check.h"

static bool is_power_of_two(uint32_t number) { return number != 0 && (number & (number - 1)) == 0; }

static void created(ANeuralNetworksModel* model) {
  ANeuralNetworksModel* open = unfinished_sum(2, 2);
  ANeuralNetworksCompilation* compilation = (ANeuralNetworksCompilation*)&open;
  const ANeuralNetworksDevice* some[] = {first_device(), last_device(), NULL, first_device()};
  WANT(NULL_, ANeuralNetworksCompilation_create(NULL, &compilation));
  WANT(NULL_, ANeuralNetworksCompilation_create(model, NULL));
  WANT(STATE, ANeuralNetworksCompilation_create(open, &compilation));
  HOLDS(compilation == NULL);
  WANT(NULL_, ANeuralNetworksCompilation_createForDevices(NULL, some, 1, &compilation));
  WANT(NULL_, ANeuralNetworksCompilation_createForDevices(model, NULL, 1, &compilation));
  WANT(NULL_, ANeuralNetworksCompilation_createForDevices(model, some, 1, NULL));
  WANT(NULL_, ANeuralNetworksCompilation_createForDevices(model, some, 3, &compilation));
  WANT(DATA, ANeuralNetworksCompilation_createForDevices(model, some, 0, &compilation));
  WANT(STATE, ANeuralNetworksCompilation_createForDevices(open, some, 1, &compilation));
  some[2] = some[1];
  WANT(DATA, ANeuralNetworksCompilation_createForDevices(model, some + 1, 2, &compilation));
  some[2] = (const ANeuralNetworksDevice*)&compilation;
  WANT(DATA, ANeuralNetworksCompilation_createForDevices(model, some + 2, 1, &compilation));
  HOLDS(compilation == NULL);
  ANeuralNetworksCompilation_free(NULL);
  ANeuralNetworksModel_free(open);
}

/* Options that a compilation takes before it is finished, and none after that. */
static void options(ANeuralNetworksModel* model) {
  const ANeuralNetworksDevice* both[] = {first_device(), last_device()};
  const uint8_t token[ANEURALNETWORKS_BYTE_SIZE_OF_CACHE_TOKEN] = {1};
  ANeuralNetworksCompilation *compilation = NULL, *any = NULL, *two = NULL;
  char folder[] = "/tmp/client-cache-XXXXXX";
  HOLDS(mkdtemp(folder) != NULL);
  WANT(OK, ANeuralNetworksCompilation_createForDevices(model, both, 1, &compilation));
  WANT(OK, ANeuralNetworksCompilation_createForDevices(model, both, 2, &two));
  WANT(OK, ANeuralNetworksCompilation_create(model, &any));

  WANT(NULL_, ANeuralNetworksCompilation_setPreference(NULL, 0));
  WANT(DATA, ANeuralNetworksCompilation_setPreference(compilation, 3));
  WANT(DATA, ANeuralNetworksCompilation_setPreference(compilation, -1));
  for (int32_t preference = 0; preference < 3; preference++)
    WANT(OK, ANeuralNetworksCompilation_setPreference(compilation, preference));

  WANT(NULL_, ANeuralNetworksCompilation_setCaching(NULL, folder, token));
  WANT(NULL_, ANeuralNetworksCompilation_setCaching(compilation, NULL, token));
  WANT(NULL_, ANeuralNetworksCompilation_setCaching(compilation, folder, NULL));
  WANT(OK, ANeuralNetworksCompilation_setCaching(compilation, folder, token));

  WANT(NULL_, ANeuralNetworksCompilation_setPriority(NULL, 100));
  WANT(DATA, ANeuralNetworksCompilation_setPriority(compilation, 95));
  WANT(DATA, ANeuralNetworksCompilation_setPriority(compilation, 0));
  for (int priority = 90; priority <= 110; priority += 10)
    WANT(OK, ANeuralNetworksCompilation_setPriority(compilation, priority));

  WANT(NULL_, ANeuralNetworksCompilation_setTimeout(NULL, 1));
  WANT(DATA, ANeuralNetworksCompilation_setTimeout(any, 1));
  WANT(DATA, ANeuralNetworksCompilation_setTimeout(two, 1));
  WANT(OK, ANeuralNetworksCompilation_setTimeout(compilation, 0));
  WANT(OK, ANeuralNetworksCompilation_setTimeout(compilation, 60000000000u));

  WANT(NULL_, ANeuralNetworksCompilation_addExtensionAttribute(NULL, "x.y", 0, token, 1));
  WANT(NULL_, ANeuralNetworksCompilation_addExtensionAttribute(compilation, NULL, 0, token, 1));
  WANT(NULL_, ANeuralNetworksCompilation_addExtensionAttribute(compilation, "x.y", 0, NULL, 1));
  WANT(DATA, ANeuralNetworksCompilation_addExtensionAttribute(compilation, "x.y", 0, token, 1));

  uint32_t bytes = 0;
  WANT(STATE, ANeuralNetworksCompilation_getPreferredMemoryAlignmentForInput(compilation, 0, &bytes));
  WANT(STATE, ANeuralNetworksCompilation_getPreferredMemoryPaddingForOutput(compilation, 0, &bytes));

  WANT(NULL_, ANeuralNetworksCompilation_finish(NULL));
  WANT(OK, ANeuralNetworksCompilation_finish(compilation));
  WANT(STATE, ANeuralNetworksCompilation_finish(compilation));
  WANT(STATE, ANeuralNetworksCompilation_setPreference(compilation, 0));
  WANT(STATE, ANeuralNetworksCompilation_setCaching(compilation, folder, token));
  WANT(STATE, ANeuralNetworksCompilation_setPriority(compilation, 100));
  WANT(STATE, ANeuralNetworksCompilation_setTimeout(compilation, 1));
  WANT(STATE, ANeuralNetworksCompilation_addExtensionAttribute(compilation, "x.y", 0, token, 1));
  ANeuralNetworksCompilation_free(compilation);
  ANeuralNetworksCompilation_free(any);
  ANeuralNetworksCompilation_free(two);
  char command[64] = "rm -r ";
  HOLDS(system(strcat(command, folder)) == 0);
}

static void preferred(ANeuralNetworksModel* model) {
  ANeuralNetworksCompilation* compilation = compiled(model);
  int (*const ask[])(const ANeuralNetworksCompilation*, uint32_t, uint32_t*) = {
      ANeuralNetworksCompilation_getPreferredMemoryAlignmentForInput,
      ANeuralNetworksCompilation_getPreferredMemoryPaddingForInput,
      ANeuralNetworksCompilation_getPreferredMemoryAlignmentForOutput,
      ANeuralNetworksCompilation_getPreferredMemoryPaddingForOutput,
  };
  for (int i = 0; i < 4; i++) {
    uint32_t bytes = 0, count = i < 2 ? 2 : 1;
    WANT(NULL_, ask[i](NULL, 0, &bytes));
    WANT(NULL_, ask[i](compilation, 0, NULL));
    WANT(DATA, ask[i](compilation, count, &bytes));
    for (uint32_t index = 0; index < count; index++) {
      WANT(OK, ask[i](compilation, index, &bytes));
      HOLDS(is_power_of_two(bytes));
    }
  }
  ANeuralNetworksCompilation_free(compilation);
}

void compilations(void) {
  ANeuralNetworksModel* model = sum(2, 2);
  created(model);
  options(model);
  preferred(model);
  ANeuralNetworksModel_free(model);
}
