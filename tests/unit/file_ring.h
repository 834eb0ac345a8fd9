/*
 * A ring in a file, and a second descriptor to look at it as a recoverer does.
 */
#ifndef TESTS_UNIT_FILE_RING_H
#define TESTS_UNIT_FILE_RING_H

#include <stdint.h>
#include <sys/types.h>

#include "ring/ring.h"
#include "support/temp_dir.h"

enum { page = 4096 };

typedef struct file_ring {
    temp_dir dir;
    bp_ring *ring;
    int fd;
} file_ring;

file_ring make_file_ring(size_t capacity_bytes);
void remove_file_ring(file_ring *it);

/* Appends records that follow from their tag, the number, of `base` to twice as many bytes. */
void append_numbers(bp_ring *ring, uint64_t from, uint64_t to, size_t base);

/* Salvages, and checks what must hold of any file: whole records, ascending, as they were written.
 */
bugpack_status salvage(int fd, bp_ring_view *view);
/* The same of a file that must be a ring. */
bp_ring_view recovery_well(int fd);

uint64_t read_word(int fd, off_t at);
void write_word(int fd, off_t at, uint64_t word);

#endif
