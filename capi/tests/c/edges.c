/* What the library answers to wrong arguments, and to a driver that is killed. SOCKET MODEL.tflite */
#include "check.h"

int main(int argc, char **argv) {
    CHECK(argc == 3);
    burst_service *service = NULL;
    burst_model *model = NULL;
    size_t bytes = 7;

    CHECK(strcmp(burst_last_error(), "") == 0);
    CHECK(burst_connect("/nonexistent/burst.sock", &service) == BURST_NO_SERVICE && service == NULL);
    CHECK(strstr(burst_last_error(), "/nonexistent/burst.sock"));
    CHECK(burst_connect(argv[1], NULL) == BURST_BAD_ARGUMENT);
    CHECK(burst_load(NULL, NULL, argv[2], &model) == BURST_BAD_ARGUMENT);
    CHECK(burst_connect(argv[1], &service) == BURST_OK);
    CHECK(burst_load(service, "none", argv[2], &model) == BURST_REFUSED && strstr(burst_last_error(), "none"));
    CHECK(burst_load(service, NULL, "/nonexistent.tflite", &model) == BURST_BAD_MODEL);
    CHECK(strstr(burst_last_error(), "/nonexistent.tflite"));
    CHECK(burst_load(service, NULL, argv[0], &model) == BURST_BAD_MODEL && model == NULL);
    CHECK(burst_load(service, NULL, NULL, &model) == BURST_BAD_ARGUMENT);
    CHECK(burst_load(service, NULL, argv[2], NULL) == BURST_BAD_ARGUMENT);
    CHECK(burst_load(service, NULL, argv[2], &model) == BURST_OK);
    CHECK(burst_run((burst_model *)service, 0) == BURST_BAD_ARGUMENT);
    CHECK(burst_run(NULL, 0) == BURST_BAD_ARGUMENT);
    CHECK(burst_input(model, 1, &bytes) == NULL && bytes == 0);
    CHECK(strstr(burst_last_error(), "input 1 of 1"));
    CHECK(burst_output(model, 1, NULL) == NULL && burst_input(NULL, 0, NULL) == NULL);
    CHECK(burst_input_count(model) == 1 && burst_output_count(model) == 1 && burst_input_count(NULL) == 0);
    CHECK(burst_driver_pid(NULL) == 0);

    /* The pointer stays, and two runs on the same input give the same. */
    void *input = burst_input(model, 0, &bytes);
    memset(input, 128, bytes);
    CHECK(burst_run(model, 0) == BURST_OK && burst_input(model, 0, NULL) == input);
    const void *output = burst_output(model, 0, &bytes);
    void *first = malloc(bytes);
    memcpy(first, output, bytes);
    CHECK(burst_run(model, 60000000000) == BURST_OK);
    CHECK(memcmp(burst_output(model, 0, NULL), first, bytes) == 0);

    hand_over("kill it");
    CHECK(burst_run(model, 60000000000) == BURST_DRIVER_DIED && strstr(burst_last_error(), "died"));
    CHECK(burst_load(service, NULL, argv[2], &(burst_model *){NULL}) == BURST_DRIVER_DIED);
    burst_model_free(model);
    burst_service_free(service);
    CHECK(burst_run(model, 0) == BURST_BAD_ARGUMENT && burst_output_count(model) == 0);
    burst_model_free(model);
    burst_service_free(NULL);

    hand_over("start it again");
    CHECK(burst_connect(argv[1], &service) == BURST_OK && burst_load(service, NULL, argv[2], &model) == BURST_OK);
    /* A service outlives its handle as long as it has models. */
    burst_service_free(service);
    input = burst_input(model, 0, &bytes);
    memset(input, 128, bytes);
    CHECK(burst_run(model, 0) == BURST_OK);
    output = burst_output(model, 0, &bytes);
    CHECK(memcmp(output, first, bytes) == 0);
    burst_model_free(model);
    free(first);
    puts("done");
    return 0;
}
