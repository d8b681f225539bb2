/* Runs a model on a grey picture:  cc frame.c $(pkg-config --cflags --libs burst) -o frame && ./frame SOCKET MODEL.tflite */
#include <burst.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "expected: SOCKET MODEL.tflite\n");
        return 2;
    }
    burst_service *service = NULL;
    burst_model *model = NULL;
    int status = 1;

    /* Once: connect, prepare the model, share memory for its inputs and outputs. */
    if (burst_connect(argv[1], &service) || burst_load(service, "cpu", argv[2], &model)) {
        goto failed;
    }
    /* Per frame: write the input where the driver reads it, run, read the output. */
    size_t bytes = 0;
    memset(burst_input(model, 0, &bytes), 128, bytes);
    if (burst_run(model, 1000000000)) {
        goto failed;
    }
    const unsigned char *output = burst_output(model, 0, &bytes);
    printf("%zu bytes from process %u, the first %u\n", bytes, burst_driver_pid(model), output[0]);
    status = 0;

failed:
    if (status) {
        fprintf(stderr, "%s\n", burst_last_error());
    }
    burst_model_free(model);
    burst_service_free(service);
    return status;
}
