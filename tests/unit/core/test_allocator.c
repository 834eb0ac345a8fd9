/*
 * The allocator that a program runs on, found and asked: a mallctl that fails in every way, and
 * what this program itself runs on. Each test is a process of its own, so a fake library that is
 * loaded is loaded for that test alone.
 */
#include <bugpack/heap_state.h>

#include <dlfcn.h>

#include "platform/allocator.h"
#include "platform/posix/allocator.h"
#include "support/fake_mallctl.h"
#include "unit/unit.h"

static const char *const counters[] = {"stats.allocated", "stats.active", "stats.resident",
                                       "stats.mapped", "arenas.narenas"};
enum { counter_count = sizeof counters / sizeof counters[0] };

static bp_heap_reading reading;
static bugpack_error error;

static fake_mallctl_control *load(const char *prefix) {
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/libfake_%smallctl.so", BUGPACK_FAKES, prefix);
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    cr_assert(library != NULL, "%s", dlerror());
    fake_mallctl_control *fake = dlsym(library, "fake_mallctl");
    cr_assert(fake != NULL);
    return fake;
}

/* The five numbers in the order of `counters`. */
static void list(uint64_t ret_values[counter_count]) {
    const bugpack_heap_state *state = &reading.state;
    const uint64_t values[counter_count] = {state->allocated_bytes, state->active_bytes,
                                            state->resident_bytes, state->mapped_bytes,
                                            state->narenas};
    memcpy(ret_values, values, sizeof values);
}

/* Whether all counters are those of the fake, but for one, which is unknown. */
static void expect_all_but(size_t unknown) {
    static const uint64_t expected[counter_count] = {5000, 8192, 16384, 12288, 7};
    uint64_t values[counter_count];
    list(values);
    for (size_t i = 0; i < counter_count; i++) {
        cr_expect(eq(u64, values[i], i == unknown ? BUGPACK_HEAP_UNKNOWN : expected[i]), "%s",
                  counters[i]);
    }
}

static void expect_whole_reading(const char *prefix) {
    fake_mallctl_control *fake = load(prefix);
    cr_assert(eq(int, bp_allocator_read(&reading, &error), BUGPACK_OK));
    cr_expect(eq(str, reading.state.allocator, "jemalloc"));
    cr_expect(eq(str, reading.missing, ""));
    cr_expect(eq(str, reading.unused, ""));
    expect_all_but(counter_count);
    cr_expect(eq(uint, fake->epoch_calls, 1));
    cr_expect(eq(uint, fake->stale_reads, 0));
    cr_expect(eq(uint, fake->unknown_calls, 0));
    cr_assert(eq(int, bp_allocator_read(&reading, &error), BUGPACK_OK));
    cr_expect(eq(uint, fake->epoch_calls, 2), "each reading advances it once");
}

Test(allocator, finds_jemalloc_and_advances_its_epoch_exactly_once) {
    expect_whole_reading("");
}

Test(allocator, finds_jemalloc_with_the_usual_prefix) {
    expect_whole_reading("je_");
}

Test(allocator, finds_the_jemalloc_of_rust) {
    expect_whole_reading("_rjem_");
}

Test(allocator, leaves_out_each_counter_on_its_own_failure) {
    fake_mallctl_control *fake = load("");
    for (size_t i = 0; i < counter_count; i++) {
        char expected[64];
        (void)snprintf(expected, sizeof expected, "%s: No such file or directory", counters[i]);
        fake->failing = counters[i];
        cr_assert(eq(int, bp_allocator_read(&reading, &error), BUGPACK_OK));
        cr_expect(eq(str, reading.state.allocator, "jemalloc"));
        cr_expect(eq(str, reading.missing, expected));
        expect_all_but(i);
    }
}

Test(allocator, leaves_out_a_counter_of_another_size) {
    fake_mallctl_control *fake = load("");
    for (size_t i = 0; i < counter_count; i++) {
        fake->misshapen = counters[i];
        cr_assert(eq(int, bp_allocator_read(&reading, &error), BUGPACK_OK));
        cr_expect(strstr(reading.missing, counters[i]) == reading.missing);
        expect_all_but(i);
    }
}

Test(allocator, leaves_out_everything_when_the_epoch_fails) {
    fake_mallctl_control *fake = load("");
    fake->failing = "epoch";
    cr_assert(eq(int, bp_allocator_read(&reading, &error), BUGPACK_OK));
    cr_expect(eq(str, reading.state.allocator, "jemalloc"));
    cr_expect(eq(str, reading.missing, "epoch: No such file or directory"));
    cr_expect(eq(uint, fake->stale_reads, 0));
    uint64_t values[counter_count];
    list(values);
    for (size_t i = 0; i < counter_count; i++) {
        cr_expect(eq(u64, values[i], BUGPACK_HEAP_UNKNOWN));
    }
}

Test(allocator, a_jemalloc_that_is_linked_and_unused_gives_way_and_is_told_of) {
    fake_mallctl_control *fake = load("je_");
    fake->allocated = fake->active = 0;
    cr_assert(eq(int, bp_allocator_read(&reading, &error), BUGPACK_OK));
    cr_expect(eq(str, reading.state.allocator, BUGPACK_OWN_ALLOCATOR));
    cr_expect(
        eq(str, reading.unused, "jemalloc (je_mallctl) is linked, and has given nothing out"));
    cr_expect(eq(str, reading.missing, ""));
    cr_expect(ne(u64, reading.state.mapped_bytes, 12288));
}

Test(allocator, a_jemalloc_that_only_keeps_its_own_caches_is_unused) {
    fake_mallctl_control *fake = load("");
    fake->internal = fake->allocated;
    cr_assert(eq(int, bp_allocator_read(&reading, &error), BUGPACK_OK));
    cr_expect(eq(str, reading.state.allocator, BUGPACK_OWN_ALLOCATOR));
    cr_expect(eq(str, reading.unused, "jemalloc (mallctl) is linked, and has given nothing out"));
    fake->allocated++;
    cr_assert(eq(int, bp_allocator_read(&reading, &error), BUGPACK_OK));
    cr_expect(eq(str, reading.state.allocator, "jemalloc"));
}

Test(allocator, a_jemalloc_that_does_not_tell_its_own_share_is_used) {
    fake_mallctl_control *fake = load("");
    fake->internal = FAKE_NO_INTERNAL;
    cr_assert(eq(int, bp_allocator_read(&reading, &error), BUGPACK_OK));
    cr_expect(eq(str, reading.missing, ""));
    expect_all_but(counter_count);
}

Test(allocator, an_unused_jemalloc_does_not_hide_one_that_is_used) {
    fake_mallctl_control *unused = load("");
    fake_mallctl_control *used = load("_rjem_");
    cr_assert(ne(ptr, unused, used));
    unused->allocated = unused->active = 0;
    unused->narenas = 99;
    cr_assert(eq(int, bp_allocator_read(&reading, &error), BUGPACK_OK));
    cr_expect(eq(str, reading.unused, ""));
    expect_all_but(counter_count);
}

Test(allocator, reads_what_this_program_runs_on) {
    enum { planted_bytes = 8 << 20 };
    cr_assert(eq(int, bp_allocator_read(&reading, &error), BUGPACK_OK), "%s", error.message);
    cr_expect(eq(str, reading.state.allocator, BUGPACK_OWN_ALLOCATOR));
    cr_expect(eq(str, reading.missing, ""));
    uint64_t before = reading.state.allocated_bytes;
    char *volatile planted = malloc(planted_bytes); /* no compiler may leave it out */
    cr_assert(planted != NULL);
    memset(planted, 1, planted_bytes);
    cr_assert(eq(int, bp_allocator_read(&reading, &error), BUGPACK_OK));
    uint64_t grown = reading.state.allocated_bytes - before;
    free(planted);
    cr_expect(ge(u64, grown, planted_bytes));
    cr_expect(lt(u64, grown, planted_bytes + (1 << 20)));
    cr_expect(ge(u64, reading.state.mapped_bytes, reading.state.allocated_bytes));
    if (strcmp(reading.state.allocator, "glibc") == 0) {
        cr_expect(ge(u64, reading.state.narenas, 1));
    }
}

static uint64_t count_in_pieces(const char *text, size_t piece_bytes) {
    bp_arena_count arenas = {0};
    size_t length = strlen(text);
    for (size_t at = 0; at < length; at += piece_bytes) {
        size_t rest = length - at;
        bp_arena_count_add(&arenas, text + at, rest < piece_bytes ? rest : piece_bytes);
    }
    return arenas.count;
}

Test(allocator, counts_arenas_wherever_the_pieces_are_cut) {
    static const char text[] =
        "<malloc version=\"1\">\n<heap nr=\"0\">\n<sizes>\n</sizes>\n</heap>\n"
        "<<heap nr=\"1\">\n</heap>\n<heap n<heap nr=\"2\"></heap>\n"
        "<heap nx=\"3\"/><heap";
    for (size_t piece_bytes = 1; piece_bytes <= sizeof text; piece_bytes++) {
        cr_expect(eq(u64, count_in_pieces(text, piece_bytes), 3), "pieces of %zu", piece_bytes);
    }
    cr_expect(eq(u64, count_in_pieces("", 1), 0));
}
