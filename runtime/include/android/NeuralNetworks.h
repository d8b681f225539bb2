/* The place where the headers of Android's NDK have it. */
#include "../NeuralNetworks.h"
