#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "platform/posix/allocator.h"
#include "platform/stream.h"

/* The times and page counts are of the process, not of the heap. */
typedef void process_info(size_t *elapsed_ms, size_t *user_ms, size_t *system_ms,
                          size_t *current_rss, size_t *peak_rss, size_t *current_commit,
                          size_t *peak_commit, size_t *page_faults);

static void read_mimalloc(bp_symbol *symbol, bp_heap_reading *reading) {
    size_t unasked = 0;
    size_t committed = 0;
    ((process_info *)symbol)(&unasked, &unasked, &unasked, &unasked, &unasked, &committed, &unasked,
                             &unasked);
    reading->state = bp_heap_state_of("mimalloc");
    reading->state.mapped_bytes = committed;
}

typedef int numeric_property(const char *name, size_t *ret_value);

static bool read_property(numeric_property *get, const char *name, bp_heap_reading *reading,
                          size_t *ret_value) {
    bool is_known = get(name, ret_value) != 0;
    if (!is_known) {
        bp_heap_reading_miss(reading, name, ENOENT);
    }
    return is_known;
}

/* The names are those of gperftools/malloc_extension.h. */
static void read_tcmalloc(bp_symbol *symbol, bp_heap_reading *reading) {
    numeric_property *get = (numeric_property *)symbol;
    reading->state = bp_heap_state_of("tcmalloc");
    bugpack_heap_state *state = &reading->state;
    size_t allocated = 0, heap = 0, returned = 0, free_pages = 0, physical = 0;
    if (read_property(get, "generic.current_allocated_bytes", reading, &allocated)) {
        state->allocated_bytes = allocated;
    }
    if (read_property(get, "generic.total_physical_bytes", reading, &physical)) {
        state->resident_bytes = physical;
    }
    /* heap_size is all address space that it ever took. */
    if (read_property(get, "generic.heap_size", reading, &heap) &&
        read_property(get, "tcmalloc.pageheap_unmapped_bytes", reading, &returned) &&
        returned <= heap) {
        state->mapped_bytes = heap - returned;
        if (read_property(get, "tcmalloc.pageheap_free_bytes", reading, &free_pages) &&
            free_pages <= state->mapped_bytes) {
            state->active_bytes = state->mapped_bytes - free_pages;
        }
    }
}

typedef size_t sanitizer_bytes(void);

/* Declared in sanitizer/allocator_interface.h, for every sanitizer with an allocator. */
static void read_sanitizer(bp_symbol *symbol, bp_heap_reading *reading) {
    reading->state = bp_heap_state_of("sanitizer");
    reading->state.allocated_bytes = ((sanitizer_bytes *)symbol)();
    sanitizer_bytes *heap = (sanitizer_bytes *)bp_symbol_find("__sanitizer_get_heap_size");
    if (heap == NULL) {
        bp_heap_reading_miss(reading, "__sanitizer_get_heap_size", ENOSYS);
        return;
    }
    reading->state.mapped_bytes = heap();
}

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
 * Only malloc_info counts arenas. It prints several KiB per arena, which are counted as they are
 * written: a buffer for all would be an allocation in the heap under observation.
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

/* Reads the state with mallinfo2(3), which is looked up: glibc has it since 2.33. */
static void read_glibc(bp_symbol *mallinfo2, bp_heap_reading *reading) {
    reading->state = bp_heap_state_of("glibc");
    glibc_counters counters = ((read_counters *)mallinfo2)();
    reading->state.allocated_bytes = (uint64_t)counters.uordblks + counters.hblkhd;
    reading->state.mapped_bytes = (uint64_t)counters.arena + counters.hblkhd;
    read_arenas(reading);
}

/* The object (executable or library) that holds a function; zeroed when unknown. */
static Dl_info object_of(bp_symbol *symbol) {
    Dl_info info = {.dli_fbase = NULL};
    const void *address = NULL;
    memcpy(&address, &symbol, sizeof address);
    bool is_known = address != NULL && dladdr(address, &info) != 0;
    return is_known ? info : (Dl_info){.dli_fbase = NULL};
}

/*
 * The allocator in use is the one whose object defines malloc: a library that is merely loaded
 * proves nothing.
 */
static bugpack_status read_default(bp_heap_reading *reading, bugpack_error *error) {
    static const struct {
        const char *symbol;
        void (*read)(bp_symbol *symbol, bp_heap_reading *reading);
    } known[] = {{"__sanitizer_get_current_allocated_bytes", read_sanitizer},
                 {"mi_process_info", read_mimalloc},
                 {"MallocExtension_GetNumericProperty", read_tcmalloc},
                 {"mallinfo2", read_glibc}};
    bp_symbol *allocate = bp_symbol_find("malloc");
    const Dl_info object = object_of(allocate);
    if (object.dli_fbase == NULL) {
        return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "the program does not show its malloc");
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        bp_symbol *symbol = bp_symbol_find(known[i].symbol);
        if (symbol != NULL && object_of(symbol).dli_fbase == object.dli_fbase) {
            known[i].read(symbol, reading);
            return BUGPACK_OK;
        }
    }
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "the malloc of \"%s\" tells nothing of its heap",
                   object.dli_fname != NULL ? object.dli_fname : "");
}

bugpack_status bp_allocator_read(bp_heap_reading *ret_reading, bugpack_error *error) {
    return bp_allocator_read_with(read_default, ret_reading, error);
}
