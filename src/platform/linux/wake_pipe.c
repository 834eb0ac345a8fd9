#include "platform/wake.h"

#include <fcntl.h>
#include <unistd.h>

int bp_wake_pipe(int ends[2]) {
    return pipe2(ends, O_CLOEXEC | O_NONBLOCK);
}
