/* Hardware buffers of the format BLOB, for ANeuralNetworksMemory_createFromAHardwareBuffer.
 *
 * On Android these come from the platform. Here a buffer is shared memory of the process, and its width is its
 * length in bytes. The functions answer 0 or a negative error number (errno.h).
 */
#ifndef BURST_ANDROID_HARDWARE_BUFFER_H
#define BURST_ANDROID_HARDWARE_BUFFER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct AHardwareBuffer AHardwareBuffer;

enum AHardwareBuffer_Format {
  /* Bytes without a shape: the only format here. Height and layers are 1. */
  AHARDWAREBUFFER_FORMAT_BLOB = 0x21,
};

/* Said and kept, and otherwise without effect: memory of this process is always at hand. */
enum AHardwareBuffer_UsageFlags {
  AHARDWAREBUFFER_USAGE_CPU_READ_NEVER = 0x0,
  AHARDWAREBUFFER_USAGE_CPU_READ_RARELY = 0x2,
  AHARDWAREBUFFER_USAGE_CPU_READ_OFTEN = 0x3,
  AHARDWAREBUFFER_USAGE_CPU_WRITE_NEVER = 0x00,
  AHARDWAREBUFFER_USAGE_CPU_WRITE_RARELY = 0x20,
  AHARDWAREBUFFER_USAGE_CPU_WRITE_OFTEN = 0x30,
  AHARDWAREBUFFER_USAGE_GPU_DATA_BUFFER = 0x1000000,
};

typedef struct AHardwareBuffer_Desc {
  uint32_t width; /* length in bytes */
  uint32_t height;
  uint32_t layers;
  uint32_t format;
  uint64_t usage;
  uint32_t stride; /* answered by describe */
  uint32_t rfu0;
  uint64_t rfu1;
} AHardwareBuffer_Desc;

/* Part of a picture; a blob is locked as a whole, with a null rectangle. */
typedef struct ARect {
  int32_t left;
  int32_t top;
  int32_t right;
  int32_t bottom;
} ARect;

/* A new buffer with one reference. The last one that is released frees it. */
int AHardwareBuffer_allocate(const AHardwareBuffer_Desc* desc, AHardwareBuffer** outBuffer);
void AHardwareBuffer_acquire(AHardwareBuffer* buffer);
void AHardwareBuffer_release(AHardwareBuffer* buffer);
void AHardwareBuffer_describe(const AHardwareBuffer* buffer, AHardwareBuffer_Desc* outDesc);

/* Its address, which holds until the last reference is released. fence is -1. */
int AHardwareBuffer_lock(AHardwareBuffer* buffer, uint64_t usage, int32_t fence, const ARect* rect,
                         void** outVirtualAddress);
int AHardwareBuffer_unlock(AHardwareBuffer* buffer, int32_t* fence);

#ifdef __cplusplus
}
#endif

#endif
