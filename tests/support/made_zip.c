#include "support/made_zip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { deflated_max_bytes = 1 << 16 };

/* Any date that DOS can say. */
static const uint32_t made_time = 0x5b750000;

static void put(bp_buffer *out, uint64_t value, unsigned byte_count) {
    for (unsigned i = 0; i < byte_count; i++) {
        (void)bp_buffer_append_char(out, (char)(value >> 8 * i));
    }
}

static size_t deflate_text(const char *text, unsigned char *out) {
    z_stream stream;
    memset(&stream, 0, sizeof stream);
    if (deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        abort();
    }
    stream.next_in = (unsigned char *)(uintptr_t)text;
    stream.avail_in = (unsigned)strlen(text);
    stream.next_out = out;
    stream.avail_out = deflated_max_bytes;
    if (deflate(&stream, Z_FINISH) != Z_STREAM_END) {
        abort();
    }
    (void)deflateEnd(&stream);
    return deflated_max_bytes - stream.avail_out;
}

/* What both headers of an entry have in common, from the flags to the lengths of the name. */
static void put_common(bp_buffer *out, const made_member *member, size_t packed_bytes) {
    size_t byte_count = strlen(member->content);
    put(out, 1u << 11, 2);
    put(out, member->is_deflated ? 8 : 0, 2);
    put(out, made_time, 4);
    put(out, crc32(0, (const unsigned char *)member->content, (unsigned)byte_count), 4);
    put(out, packed_bytes, 4);
    put(out, byte_count, 4);
    put(out, strlen(member->name), 2);
    put(out, 0, 2);
}

static size_t put_member(bp_buffer *out, const made_member *member) {
    static unsigned char deflated[deflated_max_bytes];
    const char *packed = member->content;
    size_t packed_bytes = strlen(member->content);
    if (member->is_deflated) {
        packed_bytes = deflate_text(member->content, deflated);
        packed = (const char *)deflated;
    }
    (void)bp_buffer_append(out, "PK\3\4\x14\0", 6);
    put_common(out, member, packed_bytes);
    (void)bp_buffer_append_text(out, member->name);
    (void)bp_buffer_append(out, packed, packed_bytes);
    return packed_bytes;
}

static void put_central(bp_buffer *out, const made_member *member, size_t packed_bytes,
                        size_t offset) {
    (void)bp_buffer_append(out, "PK\1\2\x14\3\x14\0", 8);
    put_common(out, member, packed_bytes);
    put(out, 0, 6); /* no comment, in this file, no internal attributes */
    put(out, 0100600u << 16, 4);
    put(out, offset, 4);
    (void)bp_buffer_append_text(out, member->name);
}

void made_zip_build(made_zip *zip, const made_member *members, size_t count) {
    size_t packed_bytes[MADE_ZIP_MEMBER_MAX];
    memset(zip, 0, sizeof *zip);
    bp_buffer_init(&zip->bytes, (size_t)1 << 24);
    for (size_t i = 0; i < count; i++) {
        zip->local[i] = zip->bytes.size;
        packed_bytes[i] = put_member(&zip->bytes, &members[i]);
    }
    zip->directory = zip->bytes.size;
    for (size_t i = 0; i < count; i++) {
        zip->central[i] = zip->bytes.size;
        put_central(&zip->bytes, &members[i], packed_bytes[i], zip->local[i]);
    }
    zip->end = zip->bytes.size;
    (void)bp_buffer_append(&zip->bytes, "PK\5\6\0\0\0\0", 8);
    put(&zip->bytes, count, 2);
    put(&zip->bytes, count, 2);
    put(&zip->bytes, zip->end - zip->directory, 4);
    put(&zip->bytes, zip->directory, 4);
    put(&zip->bytes, 0, 2);
}

void made_zip_release(made_zip *zip) {
    bp_buffer_release(&zip->bytes);
}

void made_zip_put16(made_zip *zip, size_t at, unsigned value) {
    zip->bytes.data[at] = (char)value;
    zip->bytes.data[at + 1] = (char)(value >> 8);
}

void made_zip_put32(made_zip *zip, size_t at, uint32_t value) {
    made_zip_put16(zip, at, value & UINT16_MAX);
    made_zip_put16(zip, at + 2, value >> 16);
}

int made_zip_file(const void *bytes, size_t byte_count) {
    FILE *file = tmpfile();
    int fd = -1;
    if (file != NULL && fwrite(bytes, 1, byte_count, file) == byte_count && fflush(file) == 0) {
        fd = dup(fileno(file));
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return fd;
}

static bugpack_status append(void *buffer, const void *bytes, size_t byte_count) {
    return bp_buffer_append(buffer, bytes, byte_count);
}

bugpack_status made_zip_read(bp_archive_reader *reader, const char *name, uint64_t max_bytes,
                             bp_buffer *out, bugpack_error *error) {
    size_t index;
    bp_buffer_init(out, (size_t)1 << 24);
    if (!bp_archive_reader_find(reader, name, &index)) {
        return BUGPACK_ERR_INVALID;
    }
    return bp_archive_reader_read(reader, index, max_bytes, append, out, error);
}
