/*
 * The picture of a trigger: copied or taken over on the host's thread, encoded on the worker's.
 */
#ifndef BP_REPORT_SCREENSHOT_H
#define BP_REPORT_SCREENSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include <bugpack/report.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "image/png.h"
#include "report/bundle.h"

/* The owner of pixels that a host handed over; without a `release` they are the host's. */
typedef struct bp_pixel_owner {
    bugpack_screenshot_release_callback *release;
    void *context;
} bp_pixel_owner;

/* All zero: there is none. Private, except for the first member. */
typedef struct bp_screenshot {
    bool is_there;
    _Atomic(uint64_t) *held_bytes;
    unsigned char *copy;   /* rows without padding; NULL when they were not copied */
    bp_pixel_owner owner;  /* of pixels that were taken over */
    uint64_t byte_count;   /* counted in held_bytes */
    bp_pixels pixels;      /* no `bytes`: there are none */
    bugpack_region region; /* all 0: none */
    bp_instant captured;
    const char *refusal; /* why there are no bytes; static */
} bp_screenshot;

/* Gives the pixels back, unless that has been done. The caller holds no lock. */
void bp_pixel_owner_release(bp_pixel_owner *owner);

/* INVALID unless a request's picture and region make sense. No picture with no region does, and so
 * does a region that lies partly in the picture. */
bugpack_status bp_screenshot_check(const bugpack_picture *picture, const bugpack_region *region,
                                   bugpack_error *error);

/*
 * Takes the pixels over if they have an owner, who is moved then, and copies them otherwise. Both
 * were checked; of the region, the part in the picture counts. Without memory for the copy, or when
 * all pictures that `held_bytes` counts would exceed BUGPACK_PICTURE_MAX_BYTES, the report goes on
 * without them and the manifest says why. `held_bytes` is borrowed until the pixels are dropped.
 * Any thread.
 */
void bp_screenshot_take(const bugpack_picture *picture, const bugpack_region *region,
                        bp_pixel_owner *owner, _Atomic(uint64_t) *held_bytes,
                        bp_screenshot *ret_screenshot);

/* Frees the pixels or gives them back; what follows has none. */
void bp_screenshot_drop_pixels(bp_screenshot *screenshot);

/* The region, for the metadata; NULL when there is none. Borrowed. */
const bugpack_region *bp_screenshot_region(const bp_screenshot *screenshot);

/*
 * Adds screenshot.png, and screenshot-region.png where there is a region. One that cannot be
 * encoded costs itself; the manifest says why. Gives up with TIMEOUT or CANCELLED when the token is
 * due.
 */
bugpack_status bp_screenshot_add(const bp_screenshot *screenshot, const bp_cancel_token *token,
                                 bp_bundle *bundle, bugpack_error *error);

/* Calls the host's provider of the screenshot, which may write nothing but a picture. That is
 * copied when it is written, and encoded afterwards. Returns what a provider does. */
int bp_screenshot_provide(bugpack_writer *writer, bugpack_provider_callback *provider,
                          void *context);

#endif
