/*
 * Every allocation of an encoding fails in turn, libpng's and zlib's too: the status says so, no
 * signal, nothing leaked.
 */
#include "image/png.h"

#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "support/check.h"
#include "support/failing_malloc.h"
#include "support/made_image.h"

/* Only glibc lets allocations fail (support/failing_malloc.h), so only its heap is asked. */
static size_t heap_bytes(void) {
#ifdef __GLIBC__
    return mallinfo2().uordblks;
#else
    return 0;
#endif
}

/* One encoding whose nth allocation fails; how many were tried. */
static unsigned long encode(const bp_pixels *pixels, unsigned long nth, bool and_all_later,
                            bugpack_status *ret_status) {
    /* The buffer's own growth is not what is tested. */
    static char storage[512 * 1024];
    bp_buffer out;
    bp_buffer_init(&out, sizeof storage - 1);
    out.data = storage;
    out.capacity = sizeof storage;
    bugpack_error error = BUGPACK_ERROR_INIT;
    failing_malloc_arm(nth, and_all_later);
    *ret_status = bp_png_encode(pixels, 1, 1, 150, 100, made_image_sink, &out, &error);
    unsigned long tried = failing_malloc_disarm();
    CHECK(*ret_status == BUGPACK_OK || *ret_status == BUGPACK_ERR_NO_MEMORY);
    CHECK(*ret_status == error.status);
    return tried;
}

/* glibc counts blocks that it keeps for reuse as taken, so only what grows every time is a leak. */
static void expect_no_leak(const bp_pixels *pixels, unsigned long nth, bool and_all_later) {
    bool grows = true;
    for (unsigned i = 0; i < 8 && grows; i++) {
        size_t before_bytes = heap_bytes();
        bugpack_status status;
        (void)encode(pixels, nth, and_all_later, &status);
        grows = heap_bytes() > before_bytes;
    }
    CHECK(!grows);
}

static unsigned long torture(const bp_pixels *pixels, bool and_all_later) {
    unsigned long failure_count = 0;
    for (unsigned long nth = 1;; nth++) {
        bugpack_status status;
        unsigned long tried = encode(pixels, nth, and_all_later, &status);
        expect_no_leak(pixels, nth, and_all_later);
        failure_count += status != BUGPACK_OK;
        if (tried < nth) {
            CHECK(status == BUGPACK_OK);
            return failure_count;
        }
    }
}

int main(void) {
    bp_pixels pixels = made_image(160, 120, 8);
    pixels.is_bgra = true;
    unsigned long once = torture(&pixels, false);
    unsigned long for_good = torture(&pixels, true);
    (void)printf("%lu single failures, %lu lasting ones\n", once, for_good);
    CHECK(once > 3 && for_good >= once);
    free((void *)(uintptr_t)pixels.bytes);
    return 0;
}
