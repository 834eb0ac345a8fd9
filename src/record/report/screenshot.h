/*
 * The picture of a trigger: copied or taken over on the host's thread, encoded on the worker's.
 */
#ifndef BP_REPORT_SCREENSHOT_H
#define BP_REPORT_SCREENSHOT_H

#include <stdint.h>

#include <bugpack/report.h>

#include "base/cancel.h"
#include "report/bundle.h"

typedef struct bp_screenshot bp_screenshot;

/* Who gets the pixels back that a host handed over; no `release`: they are the host's. */
typedef struct bp_pixel_owner {
    bugpack_screenshot_release_callback *release;
    void *context;
} bp_pixel_owner;

/* Gives the pixels back, unless that has been done. The caller holds no lock. */
void bp_pixel_owner_release(bp_pixel_owner *owner);

/* Whether a request's picture and region make sense; no picture and no region do, and a region that
 * lies partly in the picture does. INVALID. */
bugpack_status bp_screenshot_check(const bugpack_picture *picture, const bugpack_region *region,
                                   bugpack_error *error);

/*
 * Takes the pixels over if they have an owner, who is moved then, and copies them otherwise. Both
 * were checked; of the region, the part in the picture counts. Without memory for the copy, or when
 * all pictures that `held_bytes` counts would exceed BUGPACK_PICTURE_MAX_BYTES, the report goes on
 * without them and the manifest says why. NO_MEMORY only without memory for that. `held_bytes` is
 * borrowed until bp_screenshot_free. Any thread.
 */
bugpack_status bp_screenshot_take(const bugpack_picture *picture, const bugpack_region *region,
                                  bp_pixel_owner *owner, _Atomic(uint64_t) *held_bytes,
                                  bp_screenshot **ret_screenshot);

/* Frees the pixels or gives them back; what follows has none. NULL is fine. */
void bp_screenshot_drop_pixels(bp_screenshot *screenshot);
void bp_screenshot_free(bp_screenshot *screenshot);

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
