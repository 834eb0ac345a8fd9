/*
 * The picture that a host hands over with a trigger, as it comes out of the report.
 */
#include <png.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "support/made_image.h"
#include "unit/quick_session.h"

enum { width = 67, height = 41 };

static bp_pixels pixels; /* as the host has them */

static void set_up(void) {
    setup();
    options.recorder.is_in_memory = true;
    options.sample_window_ms = 1;
    open_session();
    pixels = made_image(width, height, 12);
}

static void tear_down(void) {
    free((void *)pixels.bytes);
    teardown();
}

TestSuite(screenshot, .init = set_up, .fini = tear_down);

static bugpack_picture picture_of(bugpack_pixel_format format) {
    return (bugpack_picture){.pixels = pixels.bytes,
                             .width = width,
                             .height = height,
                             .stride = pixels.stride_bytes,
                             .format = format};
}

/* How many pixels of the entry are not those of the part. */
static size_t count_wrong(const char *path, const char *entry, bugpack_region part) {
    size_t file_bytes = 0;
    char *file = report_read(path, entry, &file_bytes);
    cr_assert(ne(ptr, file, NULL), "%s", entry);
    png_image image = {.version = PNG_IMAGE_VERSION};
    cr_assert(png_image_begin_read_from_memory(&image, file, file_bytes), "%s", image.message);
    cr_assert(eq(uint, image.width, part.width));
    cr_assert(eq(uint, image.height, part.height));
    image.format = PNG_FORMAT_RGBA;
    unsigned char *rgba = malloc(PNG_IMAGE_SIZE(image));
    cr_assert(png_image_finish_read(&image, NULL, rgba, 0, NULL), "%s", image.message);
    size_t wrong_count = 0;
    for (uint32_t i = 0; i < part.width * part.height; i++) {
        unsigned char expected[4];
        made_image_expect(&pixels, part.x + i % part.width, part.y + i / part.width, expected);
        wrong_count += memcmp(rgba + (size_t)i * 4, expected, 4) != 0;
    }
    free(rgba);
    free(file);
    return wrong_count;
}

Test(screenshot, every_format_comes_back_pixel_for_pixel_with_its_region) {
    static const bugpack_region whole = {0, 0, width, height}, region = {5, 7, 31, 13};
    for (int format = BUGPACK_PIXELS_RGBA; format <= BUGPACK_PIXELS_BGRX; format++) {
        pixels.is_bgra = format == BUGPACK_PIXELS_BGRA || format == BUGPACK_PIXELS_BGRX;
        pixels.is_opaque = format >= BUGPACK_PIXELS_RGBX;
        bugpack_picture picture = picture_of((bugpack_pixel_format)format);
        bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
        request.screenshot = &picture;
        request.region = region;
        take(&request);
        cr_expect(zero(sz, count_wrong(taken.path, "screenshot.png", whole)));
        cr_expect(zero(sz, count_wrong(taken.path, "screenshot-region.png", region)));
        cr_expect(holds("metadata.json", "  \"region\": {\n"
                                         "    \"x\": 5,\n"
                                         "    \"y\": 7,\n"
                                         "    \"width\": 31,\n"
                                         "    \"height\": 13\n"
                                         "  },\n"));
        cr_expect(zero(uint, taken.missing_count));
    }
}

Test(screenshot, pixels_are_those_of_the_trigger) {
    size_t byte_count = pixels.stride_bytes * (height - 1) + width * 4;
    unsigned char *shown = malloc(byte_count);
    memcpy(shown, pixels.bytes, byte_count);
    bugpack_picture picture = picture_of(BUGPACK_PIXELS_RGBA);
    picture.pixels = shown;
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.screenshot = &picture;
    cr_assert(zero(int, bugpack_report_async(session, &request, NULL, NULL, NULL)));
    memset(shown, 0, byte_count); /* the host draws on */
    free(shown);
    bugpack_close(session);
    session = NULL;
    find_only();
    cr_expect(
        zero(sz, count_wrong(taken.path, "screenshot.png", (bugpack_region){0, 0, width, height})));
    CLEANUP(free_memory) char *entries = report_list(taken.path);
    cr_expect(eq(ptr, strstr(entries, "screenshot-region.png"), NULL));
}

Test(screenshot, a_stride_of_zero_means_rows_without_padding) {
    free((void *)pixels.bytes);
    pixels = made_image(width, height, 0);
    bugpack_picture picture = picture_of(BUGPACK_PIXELS_RGBA);
    picture.stride = 0;
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.screenshot = &picture;
    take(&request);
    cr_expect(
        zero(sz, count_wrong(taken.path, "screenshot.png", (bugpack_region){0, 0, width, height})));
}

Test(screenshot, a_region_that_lies_partly_outside_is_its_part_in_the_picture) {
    static const struct {
        bugpack_region given, part;
    } cases[] = {{{0, 0, width + 1, 1}, {0, 0, width, 1}},
                 {{5, height - 1, 2, 9}, {5, height - 1, 2, 1}},
                 {{1, 1, UINT32_MAX, UINT32_MAX}, {1, 1, width - 1, height - 1}}};
    const bugpack_picture picture = picture_of(BUGPACK_PIXELS_RGBA);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
        request.screenshot = &picture;
        request.region = cases[i].given;
        take(&request);
        cr_expect(zero(sz, count_wrong(taken.path, "screenshot-region.png", cases[i].part)));
        char line[64];
        (void)snprintf(line, sizeof line, "\"width\": %u,\n    \"height\": %u\n",
                       (unsigned)cases[i].part.width, (unsigned)cases[i].part.height);
        cr_expect(holds("metadata.json", line));
    }
}

static bugpack_status try_picture(bugpack_picture picture, bugpack_region region) {
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.screenshot = &picture;
    request.region = region;
    return bugpack_report_async(session, &request, NULL, NULL, NULL);
}

Test(screenshot, sizes_that_make_no_sense_are_refused_and_nothing_is_written) {
    static const bugpack_region none = {0, 0, 0, 0};
    const bugpack_picture good = picture_of(BUGPACK_PIXELS_RGBA);
    bugpack_picture bad[9];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        bad[i] = good;
    }
    bad[0].pixels = NULL;
    bad[1].width = 0;
    bad[2].height = 0;
    bad[3].width = BUGPACK_PICTURE_MAX_SIDE + 1;
    bad[4].height = UINT32_MAX;
    bad[5].stride = width * 4 - 1;
    bad[6].stride = SIZE_MAX / 2;
    bad[7].format = (bugpack_pixel_format)4;
    bad[8].width = bad[8].height = BUGPACK_PICTURE_MAX_SIDE; /* 1 GiB */
    bad[8].stride = 0;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_expect(eq(int, try_picture(bad[i], none), BUGPACK_ERR_INVALID), "%zu", i);
    }
    static const bugpack_region outside[] = {
        {width, 0, 1, 1}, {0, height, 1, 1}, {1, 1, 0, 1}, {1, 1, 1, 0}, {UINT32_MAX, 0, 2, 1}};
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        cr_expect(eq(int, try_picture(good, outside[i]), BUGPACK_ERR_INVALID), "%zu", i);
    }
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.region = (bugpack_region){1, 1, 1, 1};
    cr_expect(
        eq(int, bugpack_report_async(session, &request, NULL, NULL, NULL), BUGPACK_ERR_INVALID));
    bugpack_close(session);
    session = NULL;
    cr_expect(not(report_find_only(&dir, taken.path, sizeof taken.path)));
}

/* What the worker has to do first: hold the door until the test has triggered enough. */
static int wait_a_moment(bugpack_writer *writer, void *is_open) {
    while (!atomic_load((atomic_bool *)is_open)) {
        (void)bugpack_printf(writer, " ");
        struct timespec pause = {0, 1000000};
        (void)nanosleep(&pause, NULL);
    }
    return 0;
}

static void keep_result(const bugpack_report_result *result, void *context) {
    *(bugpack_report_result *)context = *result;
}

Test(screenshot, pictures_beyond_the_bound_cost_themselves_and_the_ledger_says_so) {
    enum { side = 8192 };
    static atomic_bool is_open;
    static bugpack_report_result last;
    unsigned char *canvas = calloc((size_t)side * side, 4); /* 256 MiB, hardly any of it touched */
    cr_assert(ne(ptr, canvas, NULL));
    provide("door.txt", BUGPACK_PROVIDE_TEXT, wait_a_moment, &is_open);
    bugpack_picture small = picture_of(BUGPACK_PIXELS_RGBA);
    bugpack_picture large = {.pixels = canvas, .width = side, .height = side};
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.screenshot = &large;
    cr_assert(zero(int, bugpack_report_async(session, &request, NULL, NULL, NULL)));
    request.screenshot = &small;
    request.region = (bugpack_region){0, 0, 1, 1};
    cr_assert(zero(int, bugpack_report_async(session, &request, keep_result, &last, NULL)));
    atomic_store(&is_open, true);
    bugpack_close(session);
    session = NULL;
    cr_assert(zero(int, last.status), "%s", last.error.message);
    cr_expect(report_entry_contains(last.path, "manifest.json",
                                    "\"name\": \"screenshot.png\",\n"
                                    "      \"status\": \"omitted\","));
    cr_expect(report_entry_contains(last.path, "manifest.json", "take all the room there is"));
    cr_expect(eq(uint, last.missing_count, 2));
    free(canvas);
}

/* Who got pixels back that were handed over. */
static struct {
    atomic_uint count;
    pthread_t thread;
} released;

static void release(void *context) {
    cr_expect(eq(ptr, context, &pixels));
    released.thread = pthread_self();
    atomic_fetch_add(&released.count, 1);
}

static bugpack_report_request handing_over(const bugpack_picture *picture) {
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.screenshot = picture;
    request.screenshot_context = &pixels;
    request.screenshot_release = release;
    return request;
}

static unsigned take_released(void) {
    return atomic_exchange(&released.count, 0);
}

static void expect_released_by_then(const bugpack_report_result *result, void *context) {
    keep_result(result, context);
    cr_expect(eq(uint, atomic_load(&released.count), 1u));
    cr_expect(pthread_equal(released.thread, pthread_self()));
}

static void close_door(atomic_bool *is_open) {
    provide("door.txt", BUGPACK_PROVIDE_TEXT, wait_a_moment, is_open);
    cr_assert(zero(int, bugpack_report_async(session, NULL, NULL, NULL, NULL)));
}

Test(screenshot, pixels_that_are_handed_over_are_read_where_they_are) {
    static atomic_bool is_open;
    static bugpack_report_result last;
    close_door(&is_open);
    const bugpack_picture picture = picture_of(BUGPACK_PIXELS_RGBA);
    const bugpack_report_request request = handing_over(&picture);
    cr_assert(
        zero(int, bugpack_report_async(session, &request, expect_released_by_then, &last, NULL)));
    cr_expect(zero(uint, atomic_load(&released.count)));
    unsigned char *shown = (unsigned char *)(uintptr_t)pixels.bytes;
    shown[0] ^= 0xff; /* against the contract: only so does a copy show */
    atomic_store(&is_open, true);
    bugpack_close(session);
    session = NULL;
    cr_expect(eq(uint, take_released(), 1u));
    cr_assert(zero(int, last.status), "%s", last.error.message);
    cr_expect(
        zero(sz, count_wrong(last.path, "screenshot.png", (bugpack_region){0, 0, width, height})));
}

Test(screenshot, pixels_come_back_once_on_the_calling_thread_where_the_call_has_no_use_for_them) {
    static atomic_bool is_open;
    bugpack_picture picture = picture_of(BUGPACK_PIXELS_RGBA);
    bugpack_report_request requests[5];
    for (size_t i = 0; i < 5; i++) {
        requests[i] = handing_over(&picture);
    }
    bugpack_picture bad = picture, huge = picture;
    bad.width = 0;
    huge.width = huge.height = 8192;
    huge.stride = 0;
    requests[0].screenshot = &bad;
    requests[1].region = (bugpack_region){width, 0, 1, 1};
    requests[2].timeout_ms = BUGPACK_OFF - 1;
    requests[3].retained = 77;
    requests[4].screenshot = NULL;
    for (size_t i = 0; i < 4; i++) {
        cr_expect(ne(int, bugpack_report_async(session, &requests[i], NULL, NULL, NULL), 0), "%zu",
                  i);
        cr_expect(eq(uint, take_released(), 1u), "%zu", i);
        cr_expect(pthread_equal(released.thread, pthread_self()));
        cr_expect(ne(int, try_report(&requests[i]), 0), "%zu", i);
        cr_expect(eq(uint, take_released(), 1u), "%zu", i);
    }
    bugpack_report_result result = {.struct_size = 1};
    cr_expect(ne(int, bugpack_report(session, &requests[4], &result, NULL), 0));
    cr_expect(eq(uint, take_released(), 1u));
    cr_expect(zero(int, bugpack_report_async(session, &requests[4], NULL, NULL, NULL)));
    cr_expect(eq(uint, take_released(), 1u), "no picture");
    cr_expect(ne(int, bugpack_report_async(NULL, &requests[4], NULL, NULL, NULL), 0));
    cr_expect(eq(uint, take_released(), 1u), "no session");
    cr_expect(zero(int, bugpack_flush(session, BUGPACK_OFF, NULL)));

    close_door(&is_open);
    bugpack_report_request copied = BUGPACK_REPORT_REQUEST_INIT;
    copied.screenshot = &picture;
    cr_assert(zero(int, bugpack_report_async(session, &copied, NULL, NULL, NULL)));
    const bugpack_report_request capped = handing_over(&huge);
    cr_expect(zero(int, bugpack_report_async(session, &capped, NULL, NULL, NULL)));
    cr_expect(eq(uint, take_released(), 1u), "over the bound");
    cr_expect(pthread_equal(released.thread, pthread_self()));
    while (bugpack_report_async(session, NULL, NULL, NULL, NULL) == BUGPACK_OK) {}
    const bugpack_report_request late = handing_over(&picture);
    cr_expect(eq(int, bugpack_report_async(session, &late, NULL, NULL, NULL), BUGPACK_ERR_BUSY));
    cr_expect(eq(uint, take_released(), 1u), "too many wait");
    atomic_store(&is_open, true);
    bugpack_close(session);
    cr_expect(zero(uint, take_released()));
    cr_expect(eq(int, bugpack_report_async(session, &late, NULL, NULL, NULL), BUGPACK_ERR_CLOSED));
    cr_expect(eq(uint, take_released(), 1u), "closed");
    session = NULL;
}

Test(screenshot, pixels_of_cancelled_and_closing_reports_come_back_once) {
    static atomic_bool is_open;
    const bugpack_picture picture = picture_of(BUGPACK_PIXELS_RGBA);
    uint64_t ticket = 0;
    bugpack_report_request request = handing_over(&picture);
    request.ret_ticket = &ticket;
    close_door(&is_open);
    cr_assert(zero(int, bugpack_report_async(session, &request, NULL, NULL, NULL)));
    cr_expect(zero(int, bugpack_cancel(session, ticket, NULL)));
    request.timeout_ms = 1;
    cr_assert(zero(int, bugpack_report_async(session, &request, NULL, NULL, NULL)));
    request.timeout_ms = 0;
    cr_assert(zero(int, bugpack_report_async(session, &request, NULL, NULL, NULL)));
    atomic_store(&is_open, true);
    bugpack_close(session);
    session = NULL;
    cr_expect(eq(uint, take_released(), 3u));
}

Test(screenshot, an_older_hosts_pixels_are_copied) {
    const bugpack_picture picture = picture_of(BUGPACK_PIXELS_RGBA);
    bugpack_report_request request = handing_over(&picture);
    request.struct_size = offsetof(bugpack_report_request, screenshot_context);
    take(&request);
    cr_expect(
        zero(sz, count_wrong(taken.path, "screenshot.png", (bugpack_region){0, 0, width, height})));
    request.struct_size = 1;
    cr_expect(eq(int, try_report(&request), BUGPACK_ERR_INVALID));
    cr_expect(ne(ptr, strstr(taken.error.message, "struct_size"), NULL), "%s", taken.error.message);
    cr_expect(zero(uint, take_released()));
}

static int provide_shown(bugpack_writer *writer, void *context) {
    const bugpack_picture *picture = context;
    return bugpack_write_picture(writer, picture) == BUGPACK_OK ? 0 : -1;
}

Test(screenshot, a_provider_gives_reports_that_bring_none_a_picture) {
    static const bugpack_region whole = {0, 0, width, height};
    bugpack_picture picture = picture_of(BUGPACK_PIXELS_RGBA);
    provide("screenshot.png", BUGPACK_PROVIDE_SCREENSHOT, provide_shown, &picture);
    cr_expect(eq(int,
                 bugpack_provide(session, "screenshot.png", BUGPACK_PROVIDE_SCREENSHOT,
                                 provide_shown, &picture, NULL),
                 BUGPACK_ERR_INVALID));
    cr_assert(zero(int, bugpack_disconnect(session, "display", "ECONNRESET", NULL, NULL)));
    cr_assert(zero(int, bugpack_flush(session, BUGPACK_OFF, NULL)));
    find_only();
    cr_expect(zero(sz, count_wrong(taken.path, "screenshot.png", whole)));
    cr_assert(zero(int, remove(taken.path)));

    take(NULL);
    cr_expect(zero(sz, count_wrong(taken.path, "screenshot.png", whole)));
    cr_assert(zero(int, remove(taken.path)));

    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    bugpack_picture part = picture;
    part.width = 9;
    request.screenshot = &part;
    take(&request);
    cr_expect(
        zero(sz, count_wrong(taken.path, "screenshot.png", (bugpack_region){0, 0, 9, height})),
        "a request's own comes first");
    cr_expect(zero(uint, taken.missing_count));
    cr_assert(zero(int, remove(taken.path)));

    cr_expect(bugpack_unprovide(session, "screenshot.png"));
    take(NULL);
    cr_expect(eq(ptr, report_read(taken.path, "screenshot.png", NULL), NULL));
    cr_expect(zero(uint, taken.missing_count));
    cr_expect(
        eq(int,
           bugpack_provide(session, "screenshot.png", BUGPACK_PROVIDE_SCREENSHOT, NULL, NULL, NULL),
           BUGPACK_ERR_INVALID));
    cr_expect(eq(int,
                 bugpack_provide(session, "screenshot.png", BUGPACK_PROVIDE_BYTES, provide_shown,
                                 &picture, NULL),
                 BUGPACK_ERR_INVALID),
              "what is no picture cannot get there");
}

static int provide_wrongly(bugpack_writer *writer, void *context) {
    static const unsigned char pixel[4];
    const bugpack_picture good = {.pixels = pixel, .width = 1, .height = 1};
    const bugpack_picture bad = {.pixels = pixel, .width = 0, .height = 1};
    switch (*(const char *)context) {
    case 'n':
        return 0;
    case 'b':
        (void)bugpack_write_picture(writer, &bad);
        return 0;
    case 'N':
        (void)bugpack_write_picture(writer, NULL);
        return 0;
    case '2':
        (void)bugpack_write_picture(writer, &good);
        (void)bugpack_write_picture(writer, &good);
        return 0;
    case 'w':
        (void)bugpack_write(writer, "x", 1);
        (void)bugpack_write_picture(writer, &good);
        return 0;
    case 'p':
        (void)bugpack_write_picture(writer, &good);
        (void)bugpack_printf(writer, "x");
        return 0;
    default:
        return bugpack_omit(writer, "nothing was drawn yet");
    }
}

Test(screenshot, a_provider_that_writes_no_picture_or_more_costs_the_artefact) {
    static char kind;
    static const char *const reasons[] = {
        ['n'] = "wrote no picture", ['b'] = "wrote no picture", ['N'] = "wrote no picture",
        ['2'] = "was not kept",     ['w'] = "was not kept",     ['p'] = "was not kept"};
    provide("screenshot.png", BUGPACK_PROVIDE_SCREENSHOT, provide_wrongly, &kind);
    for (const char *next = "nbN2wpo"; *next != '\0'; next++) {
        kind = *next;
        take(NULL);
        cr_expect(eq(ptr, report_read(taken.path, "screenshot.png", NULL), NULL), "%c", kind);
        cr_expect(eq(uint, taken.missing_count, kind != 'o'), "%c", kind);
        if (kind != 'o') {
            cr_expect(ne(ptr, strstr(taken.missing, reasons[(unsigned char)kind]), NULL), "%c: %s",
                      kind, taken.missing);
        }
    }
    static bugpack_picture sizeless;
    provide("cursor.png", BUGPACK_PROVIDE_BYTES, provide_shown, &sizeless);
    take(NULL);
    cr_expect(ne(ptr, strstr(taken.missing, "cursor.png: "), NULL), "%s", taken.missing);
}

Test(screenshot, an_artefact_of_another_name_can_be_a_picture) {
    bugpack_picture picture = picture_of(BUGPACK_PIXELS_RGBA);
    provide("cursor.png", BUGPACK_PROVIDE_BYTES, provide_shown, &picture);
    take(NULL);
    cr_expect(
        zero(sz, count_wrong(taken.path, "cursor.png", (bugpack_region){0, 0, width, height})));
}
