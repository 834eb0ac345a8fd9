#include "platform/linux/build_id.h"

#include <string.h>

#include "base/utf8.h"

/* From the ELF specification (gABI chapters 4 and 5): not every system has <elf.h>. */
enum {
    IDENT_CLASS = 4,
    IDENT_DATA = 5,
    CLASS_32 = 1,
    CLASS_64 = 2,
    DATA_LITTLE = 1,
    DATA_BIG = 2,
    SEGMENT_NOTE = 4,
    NOTE_HEADER_BYTES = 12,
    NOTE_GNU_BUILD_ID = 3,
    BUILD_ID_MAX_BYTES = 32
};

/* Limit for all program headers and notes of a file together; also the largest piece. */
static const size_t budget_bytes = 64 * 1024;

/* The file's byte order and word size, and where its program headers are. */
typedef struct elf_layout {
    bool is_64, is_big;
    uint64_t headers_offset;
    size_t header_bytes, header_count;
} elf_layout;

static uint64_t number_at(const unsigned char *bytes, size_t byte_count, bool is_big) {
    uint64_t value = 0;
    for (size_t i = 0; i < byte_count; i++) {
        value = value << 8 | bytes[is_big ? i : byte_count - 1 - i];
    }
    return value;
}

static bool read_layout(bp_build_id_reader *reader, void *context, elf_layout *ret_layout) {
    unsigned char header[64];
    /* A 32-bit header has 52 bytes; a file that ends before 64 holds no program header. */
    if (!reader(context, 0, header, sizeof header) || memcmp(header, "\177ELF", 4) != 0 ||
        (header[IDENT_CLASS] != CLASS_32 && header[IDENT_CLASS] != CLASS_64) ||
        (header[IDENT_DATA] != DATA_LITTLE && header[IDENT_DATA] != DATA_BIG)) {
        return false;
    }
    bool is_64 = header[IDENT_CLASS] == CLASS_64;
    bool is_big = header[IDENT_DATA] == DATA_BIG;
    elf_layout layout = {.is_64 = is_64,
                         .is_big = is_big,
                         .headers_offset =
                             number_at(header + (is_64 ? 32 : 28), is_64 ? 8 : 4, is_big),
                         .header_bytes = (size_t)number_at(header + (is_64 ? 54 : 42), 2, is_big),
                         .header_count = (size_t)number_at(header + (is_64 ? 56 : 44), 2, is_big)};
    if (layout.header_bytes != (is_64 ? 56u : 32u)) {
        return false;
    }
    *ret_layout = layout;
    return true;
}

/* `size` rounded up to the alignment of notes. Sizes are of 32 bits, so nothing overflows. */
static uint64_t padded(uint64_t size, uint64_t align) {
    return (size + align - 1) / align * align;
}

static bool find_in_notes(const unsigned char *notes, size_t notes_bytes, uint64_t align,
                          bool is_big, char *out) {
    size_t at = 0;
    while (notes_bytes - at >= NOTE_HEADER_BYTES) {
        uint64_t name_bytes = number_at(notes + at, 4, is_big);
        uint64_t id_bytes = number_at(notes + at + 4, 4, is_big);
        uint64_t type = number_at(notes + at + 8, 4, is_big);
        uint64_t id_offset = padded(NOTE_HEADER_BYTES + name_bytes, align);
        uint64_t left = notes_bytes - at;
        if (id_offset > left || id_bytes > left - id_offset) {
            return false;
        }
        if (type == NOTE_GNU_BUILD_ID && name_bytes == 4 &&
            memcmp(notes + at + NOTE_HEADER_BYTES, "GNU", 4) == 0) {
            if (id_bytes == 0 || id_bytes > BUILD_ID_MAX_BYTES) {
                return false;
            }
            bp_hex_print(notes + at + id_offset, (size_t)id_bytes, out);
            return true;
        }
        uint64_t note_bytes = padded(id_offset + id_bytes, align);
        if (note_bytes > left) {
            return false;
        }
        at += (size_t)note_bytes;
    }
    return false;
}

/* The notes of one segment are read in one piece; a segment that is over the budget is skipped. */
static bool find_in_segment(bp_build_id_reader *reader, void *context, const elf_layout *layout,
                            const unsigned char *header, size_t *budget, char *out) {
    if (number_at(header, 4, layout->is_big) != SEGMENT_NOTE) {
        return false;
    }
    bool is_64 = layout->is_64;
    size_t width = is_64 ? 8 : 4;
    uint64_t offset = number_at(header + (is_64 ? 8 : 4), width, layout->is_big);
    uint64_t file_bytes = number_at(header + (is_64 ? 32 : 16), width, layout->is_big);
    uint64_t align = number_at(header + (is_64 ? 48 : 28), width, layout->is_big);
    unsigned char notes[4096];
    /* Real note segments have under 200 bytes; a core file's have more, but no build id. */
    if (file_bytes > sizeof notes || file_bytes > *budget) {
        return false;
    }
    *budget -= (size_t)file_bytes;
    return reader(context, offset, notes, (size_t)file_bytes) &&
           find_in_notes(notes, (size_t)file_bytes, align == 8 ? 8 : 4, layout->is_big, out);
}

bool bp_build_id_read(bp_build_id_reader *reader, void *context, char out[BP_BUILD_ID_TEXT_BYTES]) {
    elf_layout layout;
    if (!read_layout(reader, context, &layout)) {
        return false;
    }
    size_t budget = budget_bytes;
    for (size_t i = 0; i < layout.header_count && budget >= layout.header_bytes; i++) {
        unsigned char header[56];
        uint64_t offset = (uint64_t)i * layout.header_bytes;
        if (layout.headers_offset > UINT64_MAX - offset ||
            !reader(context, layout.headers_offset + offset, header, layout.header_bytes)) {
            return false;
        }
        budget -= layout.header_bytes;
        if (find_in_segment(reader, context, &layout, header, &budget, out)) {
            return true;
        }
    }
    return false;
}
