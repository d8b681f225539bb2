/*
 * burst.h: the client of the burst neural-network driver service, in C.
 *
 * Once: connect to a service, load a model. For each frame: write the input where the driver reads it, run, read the
 * output. examples/frame.c is a whole program. Who has pictures or sound and wants answers loads a task instead: further
 * down, and examples/classify.c.
 *
 * Every function that can fail returns BURST_OK or says why not; burst_last_error() has that in words, for the thread
 * that called. Handles may be used by any thread; calls with the same model or task wait for each other. A handle that was freed, or
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

/* A model with what its file says of itself: labels, how its input is normalised. It takes pictures or sound. */
typedef struct burst_task burst_task;

/* What a task answers. */
typedef enum burst_task_kind {
    BURST_IMAGE_CLASSIFIER = 1, /* What a picture shows: burst_classify. */
    BURST_OBJECT_DETECTOR = 2,  /* What is where in a picture: burst_detect. */
    BURST_IMAGE_SEGMENTER = 3,  /* What each pixel shows: burst_segment. */
    BURST_IMAGE_UPSCALER = 4,   /* A larger picture: burst_upscale. */
    BURST_AUDIO_CLASSIFIER = 5  /* What is heard: burst_hear. */
} burst_task_kind;

/* How a task answers. Zero everywhere is what the model's file says, else what is usual. */
typedef struct burst_task_options {
    uint64_t timeout_ns;   /* How long one execution may take; 0 for a minute. */
    uint32_t max_results;  /* Most answers of one call; 0 for all. */
    float score_threshold; /* The least score that is answered; 0 for what the file says, else 0.45 of a detector. */
    const char *labels;    /* A file with a label in each line, from class 0 on; NULL for those in the model's file. */
} burst_task_options;

/* A picture: rows from top to bottom, each of `width` pixels of three bytes: red, green, blue. */
typedef struct burst_picture {
    const uint8_t *rgb;
    uint32_t width;
    uint32_t height;
} burst_picture;

/* A class. Its label is good until the task is freed; it is an empty text where there is none. */
typedef struct burst_class {
    const char *label;
    uint32_t index;
    float score;
} burst_class;

/* Something that was found, and its edges as parts of the picture's width and height. */
typedef struct burst_detection {
    burst_class what;
    float left, top, right, bottom;
} burst_detection;

/* The best class of a window of sound. */
typedef struct burst_heard {
    burst_class what;
    uint64_t at_ns;   /* When the window begins. */
    uint64_t span_ns; /* How long it is. */
} burst_heard;

/*
 * Prepares the model of a .tflite file for a task, on a device such as "cpu"; NULL for that. `options` may be NULL. A model
 * that is none for this task is BURST_BAD_MODEL.
 */
burst_status burst_task_load(burst_service *service, const char *device, const char *file, burst_task_kind kind,
                             const burst_task_options *options, burst_task **task);

/* Frees a task. Labels that came from it are no longer any. NULL is fine. */
void burst_task_free(burst_task *task);

/*
 * The answers of a task, best first, written to `room` places. `count` gets how many there are, which may be more: the best
 * are written then. A task of another kind is BURST_BAD_ARGUMENT.
 */
burst_status burst_classify(burst_task *task, const burst_picture *picture, burst_class *classes, size_t room,
                            size_t *count);
burst_status burst_detect(burst_task *task, const burst_picture *picture, burst_detection *found, size_t room,
                          size_t *count);

/*
 * The same of each window of sound, in order: samples from -1 to 1 of one channel, so many per second.
 */
burst_status burst_hear(burst_task *task, const float *samples, size_t sample_count, uint32_t samples_per_second,
                        burst_heard *heard, size_t room, size_t *count);

/*
 * The class of each pixel as the model gives it, row by row, written to `room` places. `width` and `height` get the size,
 * also where there is too little room: that is BURST_BAD_ARGUMENT, and nothing is written to `mask`.
 */
burst_status burst_segment(burst_task *task, const burst_picture *picture, uint16_t *mask, size_t room, uint32_t *width,
                           uint32_t *height);

/* The larger picture, in the form of burst_picture: `room` bytes of which as many are needed as three times its pixels. */
burst_status burst_upscale(burst_task *task, const burst_picture *picture, uint8_t *rgb, size_t room, uint32_t *width,
                           uint32_t *height);

/* What went wrong in the last call of this thread that failed; an empty text if none did. Good until the next call. */
const char *burst_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
