#include "image/png.h"

#include <png.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"

enum {
    side_max = 65535,
    chunk_bytes_max = 1 << 20, /* of texts and profiles, decompressed; bugpack writes none */
    chunk_count_max = 16
};

struct bp_png_check {
    png_structp png;
    png_infop info;
    uint64_t max_bytes, picture_bytes;
    uint32_t rows_left;
    bool is_at_end, is_followed, is_too_large, ran_out_of_memory;
    char message[128];
};

static png_voidp allocate(png_structp png, png_alloc_size_t size) {
    bp_png_check *check = png_get_mem_ptr(png);
    void *block = malloc(size);
    check->ran_out_of_memory = check->ran_out_of_memory || block == NULL;
    return block;
}

static void release(png_structp png, png_voidp block) {
    (void)png;
    free(block);
}

/* The default one prints. It must not return: libpng goes on with what is broken. */
static PNG_FUNCTION(void, stop, (png_structp png, png_const_charp message), PNG_NORETURN) {
    bp_png_check *check = png_get_error_ptr(png);
    (void)snprintf(check->message, sizeof check->message, "%s", message);
    png_longjmp(png, 1);
}

static void ignore_warning(png_structp png, png_const_charp message) {
    (void)png;
    (void)message;
}

static void begin_picture(png_structp png, png_infop info) {
    bp_png_check *check = png_get_progressive_ptr(png);
    check->rows_left = png_get_image_height(png, info);
    check->picture_bytes = (uint64_t)check->rows_left * (png_get_rowbytes(png, info) + 1);
    if (check->picture_bytes > check->max_bytes) {
        check->is_too_large = true;
        png_error(png, "it is too large");
    }
    if (png_get_interlace_type(png, info) != PNG_INTERLACE_NONE) {
        png_error(png, "it is interlaced");
    }
    png_start_read_image(png);
}

static void take_row(png_structp png, png_bytep row, png_uint_32 number, int pass) {
    bp_png_check *check = png_get_progressive_ptr(png);
    (void)row;
    (void)number;
    (void)pass;
    check->rows_left -= check->rows_left > 0;
}

static void end_picture(png_structp png, png_infop info) {
    bp_png_check *check = png_get_progressive_ptr(png);
    (void)info;
    check->is_at_end = true;
    check->is_followed = png_process_data_pause(png, 0) > 0; /* how much of the piece is left */
}

bp_png_check *bp_png_check_new(uint64_t max_bytes) {
    bp_png_check *check = calloc(1, sizeof *check);
    if (check == NULL) {
        return NULL;
    }
    check->max_bytes = max_bytes;
    check->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, check, stop, ignore_warning, check,
                                          allocate, release);
    check->info = check->png != NULL ? png_create_info_struct(check->png) : NULL;
    if (check->info == NULL) {
        bp_png_check_free(check);
        return NULL;
    }
    png_set_progressive_read_fn(check->png, check, begin_picture, take_row, end_picture);
    png_set_user_limits(check->png, side_max, side_max);
    png_set_chunk_malloc_max(check->png, chunk_bytes_max);
    png_set_chunk_cache_max(check->png, chunk_count_max);
    png_set_crc_action(check->png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_set_benign_errors(check->png, 0);
    return check;
}

void bp_png_check_free(bp_png_check *check) {
    if (check != NULL) {
        png_destroy_read_struct(&check->png, &check->info, NULL);
        free(check);
    }
}

static bugpack_status refuse(const bp_png_check *check, const char *why, bugpack_error *error) {
    if (check->ran_out_of_memory) {
        return bp_fail_memory(error, "check a PNG");
    }
    return bp_fail(error, check->is_too_large ? BUGPACK_ERR_LIMIT : BUGPACK_ERR_CORRUPT,
                   "it is no sound PNG: %s", why);
}

/* All that libpng may leave by longjmp happens below the setjmp here. */
static bool process(bp_png_check *check, const void *bytes, size_t byte_count) {
    if (setjmp(png_jmpbuf(check->png)) != 0) {
        return false;
    }
    /* It takes a pointer that is not const, and does not write there. */
    png_process_data(check->png, check->info, (png_bytep)(uintptr_t)bytes, byte_count);
    return true;
}

bugpack_status bp_png_check_write(bp_png_check *check, const void *bytes, size_t byte_count,
                                  bugpack_error *error) {
    if (check->is_at_end) {
        check->is_followed = check->is_followed || byte_count > 0;
    } else if (byte_count > 0 && !process(check, bytes, byte_count)) {
        return refuse(check, check->message, error);
    }
    return check->is_followed ? refuse(check, "something follows its end", error) : BUGPACK_OK;
}

bugpack_status bp_png_check_end(bp_png_check *check, uint64_t *ret_bytes, bugpack_error *error) {
    if (!check->is_at_end || check->rows_left > 0) {
        return refuse(check, "its end is missing", error);
    }
    *ret_bytes = check->picture_bytes;
    return BUGPACK_OK;
}
