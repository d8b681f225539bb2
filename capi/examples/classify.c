/* What a picture shows:  cc classify.c $(pkg-config --cflags --libs burst) -o classify && ./classify SOCKET MODEL.tflite PICTURE.ppm */
#include <burst.h>
#include <stdio.h>
#include <stdlib.h>

/* The pixels of a binary PPM file, which has width, height and 255 in front of them; NULL where it is none. */
static unsigned char *read_picture(const char *path, burst_picture *picture) {
    unsigned char *rgb = NULL;
    FILE *file = fopen(path, "rb");
    if (file && fscanf(file, "P6 %u %u 255", &picture->width, &picture->height) == 2 && fgetc(file) != EOF &&
        picture->width < 1 << 14 && picture->height < 1 << 14) {
        size_t bytes = (size_t)picture->width * picture->height * 3;
        rgb = malloc(bytes);
        if (rgb && fread(rgb, 1, bytes, file) != bytes) {
            free(rgb);
            rgb = NULL;
        }
    }
    if (file) {
        fclose(file);
    }
    picture->rgb = rgb;
    return rgb;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "expected: SOCKET MODEL.tflite PICTURE.ppm\n");
        return 2;
    }
    burst_picture picture = {0};
    unsigned char *rgb = read_picture(argv[3], &picture);
    if (!rgb) {
        fprintf(stderr, "%s: no binary PPM file\n", argv[3]);
        return 2;
    }
    burst_service *service = NULL;
    burst_task *task = NULL;
    burst_task_options options = {.max_results = 3};
    burst_class classes[3];
    size_t count = 0;
    int status = 1;

    /* Once: connect, prepare the model. Per picture: one call. */
    if (!burst_connect(argv[1], &service) &&
        !burst_task_load(service, "cpu", argv[2], BURST_IMAGE_CLASSIFIER, &options, &task) &&
        !burst_classify(task, &picture, classes, 3, &count)) {
        for (size_t at = 0; at < count; at++) {
            printf("%u %s %.4f\n", classes[at].index, classes[at].label, classes[at].score);
        }
        status = 0;
    } else {
        fprintf(stderr, "%s\n", burst_last_error());
    }
    burst_task_free(task);
    burst_service_free(service);
    free(rgb);
    return status;
}
