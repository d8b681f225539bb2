/*
 * burst.h: the client of the burst neural-network driver service, in C.
 *
 * Once: connect to a service, load a model. For each frame: write the input where the driver reads it, run, read the
 * output. examples/frame.c is a whole program.
 *
 * Every function that can fail returns BURST_OK or says why not; burst_last_error() has that in words, for the thread
 * that called. Handles may be used by any thread; calls with the same model wait for each other. A handle that was freed, or
 * is of another kind, or none, is BURST_BAD_ARGUMENT.
 */
#ifndef BURST_H
#define BURST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A connection to a service. */
typedef struct burst_service burst_service;

/* A model that is prepared in a service, with memory for its inputs and outputs. */
typedef struct burst_model burst_model;

typedef enum burst_status {
    BURST_OK = 0,
    BURST_BAD_ARGUMENT = 1, /* A null, a handle that is none, an index that there is not. */
    BURST_NO_SERVICE = 2,   /* Nobody listens at the socket, or does not let this user in. */
    BURST_BAD_MODEL = 3,    /* The file cannot be read, or is no model that can be imported. */
    BURST_REFUSED = 4,      /* The service does not have the device, or does not take the model. */
    BURST_DRIVER_DIED = 5,  /* The service's process is gone. Free everything of it and connect again. */
    BURST_TIMEOUT = 6,      /* There was no answer in time. */
    BURST_FAILED = 7,       /* The execution failed. */
    BURST_DEFECT = 8        /* A defect of this library. */
} burst_status;

/*
 * Connects to the service that listens at this path; NULL for the usual one: $BURST_SOCKET, else burst.sock in
 * $XDG_RUNTIME_DIR.
 */
burst_status burst_connect(const char *socket, burst_service **service);

/* Hangs up, once the models that were loaded through it are freed too. NULL is fine. */
void burst_service_free(burst_service *service);

/*
 * Prepares the model of a .tflite file on a device of the service, such as "cpu"; NULL for that.
 */
burst_status burst_load(burst_service *service, const char *device, const char *file, burst_model **model);

/* Frees a model. Pointers to its inputs and outputs are no longer any. NULL is fine. */
void burst_model_free(burst_model *model);

/* How many inputs and outputs a model has; 0 for a handle that is none. */
size_t burst_input_count(const burst_model *model);
size_t burst_output_count(const burst_model *model);

/*
 * Where an input lies: bytes that the driver reads, laid out as the model file says, to be written before burst_run and not
 * during it. The pointer is good until the model is freed. NULL where there is no such input. `bytes` may be NULL.
 */
void *burst_input(burst_model *model, size_t index, size_t *bytes);

/* Runs the model on its inputs, and waits for the answer for at most so many nanoseconds; 0 for as long as it takes. */
burst_status burst_run(burst_model *model, uint64_t timeout_ns);

/*
 * A copy of an output of the last run. The pointer is good until the same output is asked for again, or the model is freed.
 * NULL where there is no such output. `bytes` may be NULL.
 */
const void *burst_output(burst_model *model, size_t index, size_t *bytes);

/* The process in which the model runs; 0 for a handle that is none. */
uint32_t burst_driver_pid(const burst_model *model);

/* What went wrong in the last call of this thread that failed; an empty text if none did. Good until the next call. */
const char *burst_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
