#include <errno.h>

#include "base/status.h"
#include "platform/linux/allocator_glibc.h"
#include "platform/posix/allocator_symbol.h"

/* The microseconds and pages that it also tells are those of the process, not of the heap. */
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

/* What sanitizer/allocator_interface.h promises of every sanitizer that has an allocator. */
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

/*
 * The allocator is the one whose object holds malloc. That a library is loaded says nothing: the C
 * library has its malloc in every program.
 */
bugpack_status bp_allocator_read_default(bp_heap_reading *reading, bugpack_error *error) {
    static const struct {
        const char *symbol;
        void (*read)(bp_symbol *symbol, bp_heap_reading *reading);
    } known[] = {{"__sanitizer_get_current_allocated_bytes", read_sanitizer},
                 {"mi_process_info", read_mimalloc},
                 {"MallocExtension_GetNumericProperty", read_tcmalloc},
                 {"mallinfo2", bp_glibc_read}};
    bp_symbol *allocate = bp_symbol_find("malloc");
    const void *object = bp_symbol_object(allocate);
    if (object == NULL) {
        return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "the program does not show its malloc");
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        bp_symbol *symbol = bp_symbol_find(known[i].symbol);
        if (symbol != NULL && bp_symbol_object(symbol) == object) {
            known[i].read(symbol, reading);
            return BUGPACK_OK;
        }
    }
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "the malloc of \"%s\" tells nothing of its heap",
                   bp_symbol_file(allocate));
}
