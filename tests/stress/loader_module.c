/* A library whose constructor never returns, with the loader's lock held; stress/loader_hang loads
 * it. */
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void hang(void) {
    const char *descriptor = getenv("BUGPACK_TEST_LOADING");
    if (descriptor == NULL || write((int)strtol(descriptor, NULL, 10), "l", 1) != 1) {
        abort();
    }
    for (;;) {
        (void)pause();
    }
}
