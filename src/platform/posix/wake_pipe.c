#include "platform/wake.h"

#include <unistd.h>

int bp_wake_pipe(int ends[2]) {
    /* macOS lacks pipe2: until they are duplicated, a fork of the host's may inherit them. */
    return pipe(ends);
}
