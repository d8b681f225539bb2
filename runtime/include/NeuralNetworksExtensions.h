/* Extensions: operand types and operations that a device has beyond NNAPI's own. */
#ifndef BURST_NEURAL_NETWORKS_EXTENSIONS_H
#define BURST_NEURAL_NETWORKS_EXTENSIONS_H

#include "NeuralNetworks.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether a device has an extension, by the name of that. */
int ANeuralNetworksDevice_getExtensionSupport(const ANeuralNetworksDevice* device, const char* extensionName,
                                              bool* isExtensionSupported);

/* Numbers that stand, in this model, for a type or an operation of an extension. */
int ANeuralNetworksModel_getExtensionOperandType(ANeuralNetworksModel* model, const char* extensionName,
                                                 uint16_t operandCodeWithinExtension, int32_t* type);
int ANeuralNetworksModel_getExtensionOperationType(ANeuralNetworksModel* model, const char* extensionName,
                                                   uint16_t operationCodeWithinExtension,
                                                   ANeuralNetworksOperationType* type);

/* Bytes that an operand of an extension's type has beside its value; the extension says what they mean. */
int ANeuralNetworksModel_setOperandExtensionData(ANeuralNetworksModel* model, int32_t index, const void* data,
                                                 size_t length);

#ifdef __cplusplus
}
#endif

#endif
