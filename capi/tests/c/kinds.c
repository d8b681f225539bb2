/* What the kinds of tasks answer, each in a line or more: SOCKET FOLDER, the folder being that of the models. */
#include "check.h"

enum { WIDTH = 320, HEIGHT = 240, ROOM = 4096, SAMPLES = 32000 };

static burst_service *service;
static unsigned char rgb[WIDTH * HEIGHT * 3];
static const burst_picture picture = {.rgb = rgb, .width = WIDTH, .height = HEIGHT};

static burst_task *loaded(const char *folder, const char *model, burst_task_kind kind) {
    char file[4096];
    burst_task *task = NULL;
    burst_task_options options = {.score_threshold = 0.001f};
    snprintf(file, sizeof file, "%s/%s.tflite", folder, model);
    CHECK(burst_task_load(service, "cpu", file, kind, &options, &task) == BURST_OK);
    return task;
}

int main(int argc, char **argv) {
    CHECK(argc == 3 && burst_connect(argv[1], &service) == BURST_OK);
    for (size_t at = 0; at < sizeof rgb; at++) {
        rgb[at] = (unsigned char)(at / 3 % WIDTH + at / 2000);
    }
    size_t count = 0, sum = 0;
    uint32_t width = 0, height = 0;

    static burst_detection found[ROOM];
    burst_task *task = loaded(argv[2], "ssd_mobilenet_v1_coco_quant", BURST_OBJECT_DETECTOR);
    CHECK(burst_detect(task, &picture, found, ROOM, &count) == BURST_OK && count <= ROOM);
    for (size_t at = 0; at < count; at++) {
        const burst_detection *one = &found[at];
        printf("thing %u %.4f %.4f %.4f %.4f %.4f\n", one->what.index, one->what.score, one->left, one->top,
               one->right, one->bottom);
    }
    burst_task_free(task);

    task = loaded(argv[2], "deeplabv3_257_float", BURST_IMAGE_SEGMENTER);
    CHECK(burst_segment(task, &picture, NULL, 0, &width, &height) == BURST_BAD_ARGUMENT && width > 0);
    uint16_t *mask = calloc((size_t)width * height, sizeof *mask);
    CHECK(mask && burst_segment(task, &picture, mask, (size_t)width * height, &width, &height) == BURST_OK);
    for (size_t at = 0; at < (size_t)width * height; at++) {
        sum += mask[at] * (at + 1);
    }
    printf("mask %u %u %zu\n", width, height, sum);
    free(mask);
    burst_task_free(task);

    task = loaded(argv[2], "edsr_f32b5_240x135_int8", BURST_IMAGE_UPSCALER);
    CHECK(burst_upscale(task, &picture, NULL, 0, &width, &height) == BURST_BAD_ARGUMENT && width > 0);
    size_t bytes = (size_t)width * height * 3;
    unsigned char *larger = malloc(bytes);
    CHECK(larger && burst_upscale(task, &picture, larger, bytes - 1, NULL, NULL) == BURST_BAD_ARGUMENT);
    CHECK(burst_upscale(task, &picture, larger, bytes, &width, &height) == BURST_OK);
    sum = 0;
    for (size_t at = 0; at < bytes; at++) {
        sum += larger[at] * (at + 1);
    }
    printf("picture %u %u %zu\n", width, height, sum);
    free(larger);
    burst_task_free(task);

    static float samples[SAMPLES];
    static burst_heard heard[ROOM];
    for (size_t at = 0; at < SAMPLES; at++) {
        samples[at] = (float)(at * 37 % 1000) / 500 - 1;
    }
    task = loaded(argv[2], "yamnet_wavin_int8", BURST_AUDIO_CLASSIFIER);
    CHECK(burst_hear(task, samples, 1, 16000, heard, ROOM, &count) == BURST_OK);
    CHECK(burst_hear(task, samples, SAMPLES, 7, heard, ROOM, &count) == BURST_BAD_ARGUMENT);
    CHECK(burst_hear(task, samples, SAMPLES, 16000, heard, ROOM, &count) == BURST_OK && count <= ROOM);
    for (size_t at = 0; at < count; at++) {
        const burst_heard *one = &heard[at];
        printf("sound %u %.4f %llu %llu\n", one->what.index, one->what.score, (unsigned long long)one->at_ns,
               (unsigned long long)one->span_ns);
    }
    burst_task_free(task);
    burst_service_free(service);
    return 0;
}
