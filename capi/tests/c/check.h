/* What the programs of these tests have in common. */
#include <burst.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(holds)                                                                                           \
    do {                                                                                                       \
        if (!(holds)) {                                                                                        \
            fprintf(stderr, "line %d: not so: %s; last error: %s\n", __LINE__, #holds, burst_last_error());    \
            exit(1);                                                                                           \
        }                                                                                                      \
    } while (0)

/* Says where this program is, and waits for the test. */
static inline void hand_over(const char *word) {
    char line[16];
    printf("%s\n", word);
    fflush(stdout);
    CHECK(fgets(line, sizeof line, stdin));
}
