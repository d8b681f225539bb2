/* What a classifier of bytes sees in grey:  cc frame.c $(pkg-config --cflags --libs burst) -o frame && ./frame SOCKET MODEL.tflite */
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
    void *input = burst_input(model, 0, &bytes);
    memset(input, 128, bytes);
    if (burst_run(model, 1000000000)) {
        goto failed;
    }
    const unsigned char *scores = burst_output(model, 0, &bytes);
    size_t best = 0;
    for (size_t class = 1; class < bytes; class++) {
        best = scores[class] > scores[best] ? class : best;
    }
    printf("class %zu with %u, says process %u\n", best, scores[best], burst_driver_pid(model));
    status = 0;

failed:
    if (status) {
        fprintf(stderr, "%s\n", burst_last_error());
    }
    burst_model_free(model);
    burst_service_free(service);
    return status;
}
