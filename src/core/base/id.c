#include "base/id.h"

#include <string.h>
#include <sys/random.h> /* where macOS declares getentropy */
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"

bool bp_random_bytes(void *out, size_t byte_count) {
    return getentropy(out, byte_count) == 0;
}

void bp_id_new(char out[BP_ID_BYTES]) {
    unsigned char random[16];
    if (!bp_random_bytes(random, sizeof random)) {
        /* Only a sandbox that forbids the call gets here: unique still, though guessable. */
        uint64_t parts[2] = {bp_clock_wall_ns() ^ (uint64_t)getpid() << 40,
                             bp_clock_monotonic_ns()};
        memcpy(random, parts, sizeof random);
    }
    bp_hex_print(random, sizeof random, out);
}
