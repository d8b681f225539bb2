/* What tasks answer to wrong arguments, and to a driver that is killed. SOCKET MODEL.tflite LABELS */
#include "check.h"

#define MINUTE 60000000000u

int main(int argc, char **argv) {
    CHECK(argc == 4);
    burst_service *service = NULL;
    burst_task *task = NULL;
    burst_model *model = NULL;
    size_t count = 7;
    uint32_t width = 7, height = 7;
    static unsigned char rgb[40 * 30 * 3];
    for (size_t at = 0; at < sizeof rgb; at++) {
        rgb[at] = (unsigned char)(at * 7);
    }
    burst_picture picture = {.rgb = rgb, .width = 40, .height = 30}, none = {.rgb = NULL, .width = 40, .height = 30};
    burst_picture empty = {.rgb = rgb, .width = 0, .height = 30};
    burst_picture endless = {.rgb = rgb, .width = UINT32_MAX, .height = UINT32_MAX};
    burst_class classes[16], again[16];

    CHECK(burst_connect(argv[1], &service) == BURST_OK);
    CHECK(burst_task_load(NULL, NULL, argv[2], BURST_IMAGE_CLASSIFIER, NULL, &task) == BURST_BAD_ARGUMENT);
    CHECK(burst_task_load(service, NULL, NULL, BURST_IMAGE_CLASSIFIER, NULL, &task) == BURST_BAD_ARGUMENT);
    CHECK(burst_task_load(service, NULL, argv[2], BURST_IMAGE_CLASSIFIER, NULL, NULL) == BURST_BAD_ARGUMENT);
    CHECK(burst_task_load(service, NULL, argv[2], 9, NULL, &task) == BURST_BAD_ARGUMENT);
    CHECK(strstr(burst_last_error(), "9 is no kind of task"));
    CHECK(burst_task_load(service, "none", argv[2], BURST_IMAGE_CLASSIFIER, NULL, &task) == BURST_REFUSED);
    CHECK(burst_task_load(service, NULL, argv[1], BURST_IMAGE_CLASSIFIER, NULL, &task) == BURST_BAD_MODEL);
    CHECK(burst_task_load(service, NULL, argv[2], BURST_OBJECT_DETECTOR, NULL, &task) == BURST_BAD_MODEL);
    CHECK(strstr(burst_last_error(), "is no detector") && task == NULL);
    burst_task_options options = {.labels = "/nonexistent.txt"};
    CHECK(burst_task_load(service, NULL, argv[2], BURST_IMAGE_CLASSIFIER, &options, &task) == BURST_BAD_ARGUMENT);
    CHECK(strstr(burst_last_error(), "/nonexistent.txt"));

    options = (burst_task_options){.labels = argv[3], .max_results = 4, .timeout_ns = MINUTE};
    CHECK(burst_task_load(service, "cpu", argv[2], BURST_IMAGE_CLASSIFIER, &options, &task) == BURST_OK);
    CHECK(burst_load(service, NULL, argv[2], &model) == BURST_OK);
    CHECK(burst_classify((burst_task *)model, &picture, classes, 16, &count) == BURST_BAD_ARGUMENT);
    CHECK(burst_run((burst_model *)task, 0) == BURST_BAD_ARGUMENT);
    CHECK(burst_classify(NULL, &picture, classes, 16, &count) == BURST_BAD_ARGUMENT);
    CHECK(burst_classify(task, NULL, classes, 16, &count) == BURST_BAD_ARGUMENT);
    CHECK(burst_classify(task, &none, classes, 16, &count) == BURST_BAD_ARGUMENT);
    CHECK(burst_classify(task, &empty, classes, 16, &count) == BURST_BAD_ARGUMENT);
    CHECK(burst_classify(task, &endless, classes, 16, &count) == BURST_BAD_ARGUMENT);
    CHECK(burst_detect(task, &picture, NULL, 0, &count) == BURST_BAD_ARGUMENT);
    CHECK(strcmp(burst_last_error(), "the task is an image classifier, no object detector") == 0);
    CHECK(burst_segment(task, &picture, NULL, 0, &width, &height) == BURST_BAD_ARGUMENT);
    CHECK(burst_upscale(task, &picture, NULL, 0, &width, &height) == BURST_BAD_ARGUMENT);
    CHECK(burst_hear(task, NULL, 0, 16000, NULL, 0, &count) == BURST_BAD_ARGUMENT);
    CHECK(count == 7 && width == 7 && height == 7);

    /* All are counted, the best are written, and nothing behind the room that there is. */
    CHECK(burst_classify(task, &picture, classes, 16, &count) == BURST_OK && count == 4);
    CHECK(classes[0].score >= classes[1].score && strlen(classes[0].label) > 0);
    memset(again, 0x5a, sizeof again);
    CHECK(burst_classify(task, &picture, again, 1, &count) == BURST_OK && count == 4);
    CHECK(memcmp(&again[0], &classes[0], sizeof again[0]) == 0 && again[1].index == 0x5a5a5a5a);
    CHECK(burst_classify(task, &picture, NULL, 0, NULL) == BURST_OK);

    hand_over("kill it");
    CHECK(burst_classify(task, &picture, classes, 16, &count) == BURST_DRIVER_DIED);
    CHECK(strstr(burst_last_error(), "died"));
    burst_task_free(task);
    burst_model_free(model);
    burst_service_free(service);
    CHECK(burst_classify(task, &picture, classes, 16, &count) == BURST_BAD_ARGUMENT);
    burst_task_free(NULL);

    hand_over("start it again");
    CHECK(burst_connect(argv[1], &service) == BURST_OK);
    CHECK(burst_task_load(service, NULL, argv[2], BURST_IMAGE_CLASSIFIER, &options, &task) == BURST_OK);
    /* As a model does, a task keeps its service. */
    burst_service_free(service);
    CHECK(burst_classify(task, &picture, again, 16, &count) == BURST_OK && count == 4);
    CHECK(again[0].index == classes[0].index && again[0].score == classes[0].score);
    burst_task_free(task);
    puts("done");
    return 0;
}
