#include "unit/file_ring.h"

#include <fcntl.h>

#include "support/ring_records.h"
#include "unit/unit.h"

file_ring make_file_ring(size_t capacity_bytes) {
    file_ring it;
    cr_assert(temp_dir_make(&it.dir));
    int fd = openat(it.dir.fd, "ring", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    it.fd = openat(it.dir.fd, "ring", O_RDWR | O_CLOEXEC);
    cr_assert(zero(int, bp_ring_new_mapped(fd, capacity_bytes, &it.ring, NULL)));
    cr_assert(zero(int, close(fd)), "the ring needs no descriptor");
    return it;
}

void remove_file_ring(file_ring *it) {
    bp_ring_free(it->ring);
    close(it->fd);
    temp_dir_remove(&it->dir);
}

bugpack_status salvage(int fd, bp_ring_view *view) {
    BUFFER(out, 1u << 30);
    *view = (bp_ring_view){0};
    bugpack_status status = bp_ring_recover(fd, keep_in_buffer, &out, view, NULL);
    size_t offset = 0;
    const void *payload = NULL;
    const bp_ring_record *record;
    uint64_t last = 0, last_number = 0, count = 0;
    while (status == BUGPACK_OK && (record = next_record(&out, &offset, &payload)) != NULL) {
        cr_assert(gt(u64, record->sequence, last));
        cr_assert(gt(u64, record->tag, last_number));
        cr_assert(is_number(payload, record->payload_bytes, record->tag), "record %u is torn",
                  (unsigned)record->tag);
        last = record->sequence;
        last_number = record->tag;
        count++;
    }
    cr_assert(eq(u64, view->record_count, count));
    cr_assert(eq(u64, view->last_sequence, last));
    return status;
}

bp_ring_view recovery_well(int fd) {
    bp_ring_view view;
    cr_assert(zero(int, salvage(fd, &view)));
    return view;
}

void append_numbers(bp_ring *ring, uint64_t from, uint64_t to, size_t base) {
    for (uint64_t i = from; i <= to; i++) {
        size_t size = base + (size_t)(i * i % (base + 1));
        cr_assert(ne(u64, append_number(ring, (uint32_t)i, i, size), 0));
    }
}

uint64_t read_word(int fd, off_t at) {
    uint64_t word = 0;
    cr_assert(eq(i64, pread(fd, &word, sizeof word, at), sizeof word));
    return word;
}

void write_word(int fd, off_t at, uint64_t word) {
    cr_assert(eq(i64, pwrite(fd, &word, sizeof word, at), sizeof word));
}
