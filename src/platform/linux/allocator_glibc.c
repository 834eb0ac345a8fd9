#include "platform/linux/allocator_glibc.h"

#include <errno.h>
#include <stdio.h>

#include "platform/stream.h"

/* struct mallinfo2 of glibc's malloc.h, which older headers lack: part of its ABI, so it stays. */
typedef struct glibc_counters {
    size_t arena;    /* taken from the system, without what was mapped for single blocks */
    size_t ordblks;  /* free chunks */
    size_t smblks;   /* free fastbin chunks */
    size_t hblks;    /* blocks that were mapped singly */
    size_t hblkhd;   /* bytes of these */
    size_t usmblks;  /* always 0 */
    size_t fsmblks;  /* bytes in fastbins */
    size_t uordblks; /* bytes given out of the arenas, all threads' caches included */
    size_t fordblks; /* bytes free in the arenas */
    size_t keepcost; /* bytes that trimming would return */
} glibc_counters;
typedef glibc_counters read_counters(void);
typedef int print_info(int options, FILE *stream);

static const char arena_tag[] = "<heap nr=";

void bp_arena_count_add(bp_arena_count *arenas, const char *bytes, size_t byte_count) {
    for (size_t i = 0; i < byte_count; i++) {
        /* The first character of the tag is nowhere else in it, so a mismatch needs no going back.
         */
        if (bytes[i] != arena_tag[arenas->matched_bytes]) {
            arenas->matched_bytes = 0;
        }
        if (bytes[i] == arena_tag[arenas->matched_bytes]) {
            arenas->matched_bytes++;
        }
        if (arenas->matched_bytes == sizeof arena_tag - 1) {
            arenas->count++;
            arenas->matched_bytes = 0;
        }
    }
}

static void count_written(void *context, const char *bytes, size_t byte_count) {
    bp_arena_count_add(context, bytes, byte_count);
}

static void leave_open(void *context) {
    (void)context;
}

/*
 * malloc_info has the only count of arenas. It prints several KiB an arena, which are counted as
 * they come: a buffer for all of it would be an allocation of its own in what is looked at.
 */
static void read_arenas(bp_heap_reading *reading) {
    static const bp_stream_calls calls = {.write = count_written, .close = leave_open};
    print_info *malloc_info = (print_info *)bp_symbol_find("malloc_info");
    bp_arena_count arenas = {0};
    FILE *stream = NULL;
    char buffer[1024];
    if (malloc_info == NULL) {
        bp_heap_reading_miss(reading, "malloc_info", ENOSYS);
        return;
    }
    if (bp_stream_open(&calls, &arenas, &stream, NULL) != BUGPACK_OK) {
        bp_heap_reading_miss(reading, "malloc_info", ENOMEM);
        return;
    }
    (void)setvbuf(stream, buffer, _IOFBF, sizeof buffer);
    int result = malloc_info(0, stream);
    (void)fclose(stream);
    if (result != 0 || arenas.count == 0) {
        bp_heap_reading_miss(reading, "malloc_info", result != 0 ? errno : ENOMSG);
        return;
    }
    reading->state.narenas = arenas.count;
}

void bp_glibc_read(bp_symbol *mallinfo2, bp_heap_reading *reading) {
    reading->state = bp_heap_state_of("glibc");
    glibc_counters counters = ((read_counters *)mallinfo2)();
    reading->state.allocated_bytes = (uint64_t)counters.uordblks + counters.hblkhd;
    reading->state.mapped_bytes = (uint64_t)counters.arena + counters.hblkhd;
    read_arenas(reading);
}
