/*
 * Build ids out of ELF files that are made here byte by byte, right and wrong.
 */
#include "platform/linux/build_id.h"
#include "unit/unit.h"

/* A file in memory, and how much of it was asked for. */
typedef struct image {
    unsigned char bytes[1024];
    size_t size;
    bool is_64, is_big;
    bool is_endless; /* zeros follow */
    size_t read_bytes;
} image;

static bool read_image(void *context, uint64_t offset, void *out, size_t byte_count) {
    image *from = context;
    from->read_bytes += byte_count;
    if (from->is_endless && offset >= from->size) {
        memset(out, 0, byte_count);
        return true;
    }
    if (offset > from->size || byte_count > from->size - offset) {
        return false;
    }
    memcpy(out, from->bytes + offset, byte_count);
    return true;
}

static void put(image *to, size_t at, uint64_t value, size_t byte_count) {
    for (size_t i = 0; i < byte_count; i++) {
        to->bytes[at + (to->is_big ? byte_count - 1 - i : i)] = (unsigned char)(value >> 8 * i);
    }
}

enum { HEADERS_AT = 128, NOTES_AT = 512, NOTE_FIELD_NAME = 0, NOTE_FIELD_ID = 4 };

/* Where the notes' file offset and size stand in the second program header. */
static size_t segment_field(const image *of, size_t at_32, size_t at_64) {
    return HEADERS_AT + (of->is_64 ? 56 + at_64 : 32 + at_32);
}

/*
 * Two program headers, the second one of notes: first a note of somebody else's, then the build id
 * 00 11 22 … of 20 bytes.
 */
static image make_image(bool is_64, bool is_big) {
    image made = {.size = NOTES_AT + 64, .is_64 = is_64, .is_big = is_big};
    size_t width = is_64 ? 8 : 4;
    memcpy(made.bytes, "\177ELF", 4);
    made.bytes[4] = is_64 ? 2 : 1;
    made.bytes[5] = is_big ? 2 : 1;
    put(&made, is_64 ? 32 : 28, HEADERS_AT, width);
    put(&made, is_64 ? 54 : 42, is_64 ? 56 : 32, 2);
    put(&made, is_64 ? 56 : 44, 2, 2);
    put(&made, HEADERS_AT, 1, 4);
    put(&made, segment_field(&made, 0, 0), 4, 4);
    put(&made, segment_field(&made, 4, 8), NOTES_AT, width);
    put(&made, segment_field(&made, 16, 32), 56, width);
    put(&made, segment_field(&made, 28, 48), 4, width);
    put(&made, NOTES_AT, 3, 4);
    put(&made, NOTES_AT + 4, 2, 4);
    put(&made, NOTES_AT + 8, 3, 4);
    memcpy(made.bytes + NOTES_AT + 12, "XY", 3);
    put(&made, NOTES_AT + 20, 4, 4);
    put(&made, NOTES_AT + 24, 20, 4);
    put(&made, NOTES_AT + 28, 3, 4);
    memcpy(made.bytes + NOTES_AT + 32, "GNU", 4);
    for (size_t i = 0; i < 20; i++) {
        made.bytes[NOTES_AT + 36 + i] = (unsigned char)(i * 0x11);
    }
    return made;
}

static const char made_id[] = "00112233445566778899aabbccddeeff10213243";

Test(build_id, is_found_in_both_classes_and_byte_orders) {
    for (int kind = 0; kind < 4; kind++) {
        image made = make_image(kind & 1, kind & 2);
        char id[BP_BUILD_ID_TEXT_BYTES] = "";
        cr_assert(bp_build_id_read(read_image, &made, id), "kind %d", kind);
        cr_expect(eq(str, id, made_id), "kind %d", kind);
    }
}

static void expect_none(image *broken, const char *what) {
    char id[BP_BUILD_ID_TEXT_BYTES] = "untouched";
    cr_expect(not(bp_build_id_read(read_image, broken, id)), "%s", what);
    cr_expect(eq(str, id, "untouched"), "%s", what);
}

Test(build_id, is_not_found_in_a_file_cut_off_anywhere) {
    for (size_t size = 0; size < NOTES_AT + 56; size++) {
        image made = make_image(true, false);
        made.size = size;
        expect_none(&made, "cut off");
    }
}

Test(build_id, refuses_headers_that_lie) {
    static const struct {
        const char *what;
        size_t at;
        uint64_t value;
        size_t byte_count;
    } rows[] = {{"magic", 1, 'e', 1},
                {"class", 4, 3, 1},
                {"byte order", 5, 0, 1},
                {"program headers beyond all", 32, UINT64_MAX - 60, 8},
                {"size of a program header", 54, 8, 2},
                {"notes beyond all", HEADERS_AT + 56 + 8, UINT64_MAX, 8},
                {"endless notes", HEADERS_AT + 56 + 32, UINT64_MAX, 8}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        image made = make_image(true, false);
        put(&made, rows[i].at, rows[i].value, rows[i].byte_count);
        expect_none(&made, rows[i].what);
    }
}

Test(build_id, refuses_notes_that_lie) {
    static const uint32_t sizes[] = {0xffffffff, 0xfffffff0, 0x80000000, 37};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        image made = make_image(true, false);
        put(&made, NOTES_AT + NOTE_FIELD_NAME, sizes[i], 4);
        expect_none(&made, "size of a name");
        made = make_image(true, false);
        put(&made, NOTES_AT + NOTE_FIELD_ID, sizes[i], 4);
        expect_none(&made, "size of a description");
        made = make_image(true, false);
        put(&made, NOTES_AT + 20 + NOTE_FIELD_ID, sizes[i], 4);
        expect_none(&made, "size of the id");
    }
}

Test(build_id, is_not_read_beyond_the_notes) {
    for (size_t notes_bytes = 0; notes_bytes < 56; notes_bytes++) {
        image made = make_image(true, false);
        put(&made, segment_field(&made, 16, 32), notes_bytes, 8);
        expect_none(&made, "notes cut off");
    }
}

Test(build_id, refuses_an_id_that_is_empty_or_longer_than_its_place) {
    image made = make_image(true, false);
    put(&made, NOTES_AT + 24, 0, 4);
    expect_none(&made, "empty");
    made = make_image(true, false);
    made.size = sizeof made.bytes;
    put(&made, segment_field(&made, 16, 32), 128, 8);
    put(&made, NOTES_AT + 24, 33, 4);
    expect_none(&made, "33 bytes");
}

Test(build_id, reads_no_more_than_its_budget) {
    image made = make_image(true, false);
    made.is_endless = true;
    put(&made, 56, 0xffff, 2);
    put(&made, 32, made.size, 8);
    expect_none(&made, "65,535 empty headers");
    cr_expect(made.read_bytes > 60 * 1024 && made.read_bytes <= 64 * 1024 + 64);
}

/* What flipping any byte does must be an answer, not a crash: the sanitizers watch. */
Test(build_id, survives_every_flipped_byte) {
    size_t found_count = 0;
    for (size_t at = 0; at < NOTES_AT + 56; at++) {
        image made = make_image(at & 1, false);
        char id[BP_BUILD_ID_TEXT_BYTES] = "";
        made.bytes[at] ^= 0xff;
        found_count += bp_build_id_read(read_image, &made, id);
    }
    cr_expect(found_count > 0 && found_count < NOTES_AT + 56);
}
