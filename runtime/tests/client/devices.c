/* Loading, and devices. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>

#include "check.h"

static int threads_of_this(void) {
  DIR* opened = opendir("/proc/self/task");
  int count = -2; /* "." and ".." */
  while (opened && readdir(opened)) count++;
  if (opened) closedir(opened);
  return count;
}

/* The library is loaded, and was not called: one thread, no descriptor of its own, no handler. */
void load(void) {
  HOLDS(threads_of_this() == 1);
  /* What came from the program's parent is not closed on exec; the library opens nothing that is not. */
  for (int fd = 3; fd < 1024; fd++) {
    int flags = fcntl(fd, F_GETFD);
    HOLDS(flags == -1 || !(flags & FD_CLOEXEC));
  }
  for (int signal = 1; signal < 32; signal++) {
    struct sigaction now;
    if (sigaction(signal, NULL, &now) == 0) HOLDS(now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN);
  }
}

void devices(void) {
  uint32_t count = 0;
  WANT(NULL_, ANeuralNetworks_getDeviceCount(NULL));
  WANT(OK, ANeuralNetworks_getDeviceCount(&count));
  HOLDS(count >= 2);

  ANeuralNetworksDevice *device = NULL, *again = NULL;
  WANT(NULL_, ANeuralNetworks_getDevice(0, NULL));
  WANT(DATA, ANeuralNetworks_getDevice(count, &device));
  WANT(DATA, ANeuralNetworks_getDevice(UINT32_MAX, &device));

  const char* name = NULL;
  for (uint32_t i = 0; i < count; i++) {
    const char *same = NULL, *version = NULL;
    int32_t type = -1;
    int64_t level = 0;
    bool extension = true;
    WANT(OK, ANeuralNetworks_getDevice(i, &device));
    WANT(OK, ANeuralNetworks_getDevice(i, &again));
    HOLDS(device == again);
    WANT(OK, ANeuralNetworksDevice_getName(device, &name));
    WANT(OK, ANeuralNetworksDevice_getName(device, &same));
    HOLDS(name == same && strlen(name) > 0);
    WANT(OK, ANeuralNetworksDevice_getType(device, &type));
    HOLDS(type >= ANEURALNETWORKS_DEVICE_OTHER && type <= ANEURALNETWORKS_DEVICE_ACCELERATOR);
    WANT(OK, ANeuralNetworksDevice_getVersion(device, &version));
    HOLDS(strlen(version) > 0);
    WANT(OK, ANeuralNetworksDevice_getFeatureLevel(device, &level));
    HOLDS(level >= ANEURALNETWORKS_FEATURE_LEVEL_1 && level <= ANEURALNETWORKS_FEATURE_LEVEL_5);
    WANT(OK, ANeuralNetworksDevice_wait(device));
    WANT(OK, ANeuralNetworksDevice_getExtensionSupport(device, "no.such.extension", &extension));
    HOLDS(!extension);

    WANT(NULL_, ANeuralNetworksDevice_getName(device, NULL));
    WANT(NULL_, ANeuralNetworksDevice_getType(device, NULL));
    WANT(NULL_, ANeuralNetworksDevice_getVersion(device, NULL));
    WANT(NULL_, ANeuralNetworksDevice_getFeatureLevel(device, NULL));
    WANT(NULL_, ANeuralNetworksDevice_getExtensionSupport(device, "x.y", NULL));
    WANT(NULL_, ANeuralNetworksDevice_getExtensionSupport(device, NULL, &extension));
  }
  HOLDS(strcmp(name, "nnapi-reference") == 0); /* the last one */

  int32_t type;
  int64_t level;
  bool extension;
  WANT(NULL_, ANeuralNetworksDevice_getName(NULL, &name));
  WANT(NULL_, ANeuralNetworksDevice_getType(NULL, &type));
  WANT(NULL_, ANeuralNetworksDevice_getVersion(NULL, &name));
  WANT(NULL_, ANeuralNetworksDevice_getFeatureLevel(NULL, &level));
  WANT(NULL_, ANeuralNetworksDevice_wait(NULL));
  WANT(NULL_, ANeuralNetworksDevice_getExtensionSupport(NULL, "x.y", &extension));

  HOLDS(ANeuralNetworks_getRuntimeFeatureLevel() == ANEURALNETWORKS_FEATURE_LEVEL_5);
  HOLDS(ANeuralNetworks_getDefaultLoopTimeout() == 2000000000u);
  HOLDS(ANeuralNetworks_getMaximumLoopTimeout() == 15000000000u);
}
