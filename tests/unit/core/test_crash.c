/*
 * A crash page is data from outside: what is not whole is not believed. And crash.json as printed.
 */
#include <signal.h>

#include "model/crash.h"
#include "support/crash_samples.h"
#include "unit/model_fixture.h"

TestSuite(crash, .init = begin_printing, .fini = end_printing);

static bp_crash_page_state validate(const bp_crash_page *page) {
    return bp_crash_page_validate(page, sizeof *page, sample_crash_session);
}

/* With a check that is right for it. */
static void expect_damaged(bp_crash_page *page, const char *what) {
    page->check = bp_crash_page_check(page);
    cr_expect(eq(int, validate(page), BP_CRASH_PAGE_DAMAGED), "%s", what);
}

Test(crash, a_fresh_page_is_unused_and_a_begun_one_is_torn) {
    static bp_crash_page page;
    bp_crash_page_init(&page, sample_crash_session);
    cr_expect(eq(int, validate(&page), BP_CRASH_PAGE_UNUSED));
    page.is_begun = 1;
    cr_expect(eq(int, validate(&page), BP_CRASH_PAGE_TORN));
    cr_expect(eq(int, validate(sample_crash_page()), BP_CRASH_PAGE_WHOLE));
}

Test(crash, rejects_another_size_version_or_session) {
    bp_crash_page *page = sample_crash_page();
    cr_expect(eq(int, bp_crash_page_validate(page, sizeof *page - 1, sample_crash_session),
                 BP_CRASH_PAGE_DAMAGED));
    cr_expect(eq(int, bp_crash_page_validate(page, sizeof *page + 1, sample_crash_session),
                 BP_CRASH_PAGE_DAMAGED));
    cr_expect(
        eq(int, bp_crash_page_validate(page, 0, sample_crash_session), BP_CRASH_PAGE_DAMAGED));
    page->session_id[0] = 'f';
    expect_damaged(page, "session");
    page = sample_crash_page();
    page->version++;
    expect_damaged(page, "version");
    page = sample_crash_page();
    page->magic[0] = 'B';
    expect_damaged(page, "magic");
}

Test(crash, rejects_counts_that_are_out_of_bounds) {
    bp_crash_page *page = sample_crash_page();
    const struct {
        void *field;
        size_t field_bytes;
        uint64_t value;
    } rows[] = {{&page->register_count, 4, BP_CRASH_REGISTER_MAX + 1},
                {&page->thread_count, 4, BP_CRASH_THREAD_MAX + 1},
                {&page->thread_count, 4, UINT32_MAX},
                {&page->stacks_bytes, 8, BP_CRASH_STACKS_BYTES + 1},
                {&page->stacks_bytes, 8, UINT64_MAX},
                {&page->module_count, 4, BP_CRASH_MODULE_MAX + 1},
                {&page->stack_bytes, 8, BP_CRASH_STACK_BYTES + 1},
                {&page->stack_bytes, 8, UINT64_MAX},
                {&page->stack_start, 8, UINT64_MAX - 1},
                {&page->maps_bytes, 8, BP_CRASH_MAPS_BYTES + 1},
                {&page->maps_bytes, 8, UINT64_MAX}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)sample_crash_page();
        memcpy(rows[i].field, &rows[i].value, rows[i].field_bytes);
        cr_expect(eq(int, validate(page), BP_CRASH_PAGE_DAMAGED), "row %zu", i);
    }
}

Test(crash, rejects_threads_whose_stack_is_out_of_bounds) {
    static const struct {
        int32_t tid;
        uint32_t stack_at, stack_bytes;
        uint64_t stack_pointer;
    } rows[] = {{0, 0, 0x40, 0x1000},       {-1, 0, 0x40, 0x1000},
                {4711, 0x41, 0, 0x1000},    {4711, UINT32_MAX, 0x40, 0x1000},
                {4711, 1, 0x40, 0x1000},    {4711, 0, UINT32_MAX, 0x1000},
                {4711, 0, 0x40, UINT64_MAX}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bp_crash_page *page = sample_crash_page();
        page->threads[0].tid = rows[i].tid;
        page->threads[0].stack_at = rows[i].stack_at;
        page->threads[0].stack_bytes = rows[i].stack_bytes;
        page->threads[0].stack_pointer = rows[i].stack_pointer;
        expect_damaged(page, "thread");
    }
}

/* They are in front of its stack. */
Test(crash, rejects_registers_of_a_thread_that_are_out_of_bounds) {
    bp_crash_page *page = sample_crash_page();
    page->threads[0].register_count = 1;
    expect_damaged(page, "before the stacks");
    page = sample_crash_page();
    page->stacks_bytes = BP_CRASH_STACKS_BYTES;
    page->threads[0].stack_at = 0x1000;
    page->threads[0].register_count = BP_CRASH_REGISTER_MAX + 1;
    expect_damaged(page, "too many");
    page->threads[0].register_count = BP_CRASH_REGISTER_MAX;
    page->check = bp_crash_page_check(page);
    cr_expect(eq(int, validate(page), BP_CRASH_PAGE_WHOLE));
}

Test(crash, rejects_texts_that_do_not_end) {
    bp_crash_page *page = sample_crash_page();
    memset(page->modules[0].build_id, 'a', sizeof page->modules[0].build_id);
    expect_damaged(page, "build id");
    page = sample_crash_page();
    page->maps_bytes--;
    expect_damaged(page, "maps");
}

Test(crash, rejects_any_changed_byte_that_is_used) {
    bp_crash_page *page = sample_crash_page();
    unsigned char *const bytes[] = {(unsigned char *)&page->signal,
                                    (unsigned char *)&page->at,
                                    (unsigned char *)&page->registers[3],
                                    (unsigned char *)&page->threads[1],
                                    page->stacks + 0x3f,
                                    page->stack + 0x107f,
                                    (unsigned char *)page->maps + 5,
                                    (unsigned char *)page->modules[0].build_id};
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
        *bytes[i] ^= 1;
        cr_expect(eq(int, validate(page), BP_CRASH_PAGE_DAMAGED), "byte %zu", i);
        *bytes[i] ^= 1;
    }
    cr_expect(eq(int, validate(page), BP_CRASH_PAGE_WHOLE));
}

static void expect_piece(const char *piece) {
    cr_expect(strstr(bp_buffer_text(&out), piece) != NULL, "%s\nis not in\n%s", piece,
              bp_buffer_text(&out));
}

static void print(const bp_crash_page *page) {
    bp_buffer_release(&out);
    bp_buffer_init(&out, 1 << 20);
    cr_assert(eq(int, bp_crash_print(page, &sample_crash_backtrace, &out, &error), BUGPACK_OK));
}

Test(crash, prints_what_the_handler_saw) {
    print(sample_crash_page());
    expect_piece("{\n  \"schema\": 2,\n"
                 "  \"summary\": \"SIGSEGV at 0x0 in thread decoder)\xee\xbf\xbf (4712): nothing "
                 "is mapped there\",\n"
                 "  \"cause\": \"write through a null pointer\",\n"
                 "  \"signal\": 11,\n  \"name\": \"SIGSEGV\",\n  \"code\": 1,\n"
                 "  \"code_name\": \"SEGV_MAPERR\",\n  \"address\": \"0x0\",\n"
                 "  \"passed_to_host\": false,\n");
    expect_piece("  \"pid\": 4711,\n  \"thread\": {\n    \"tid\": 4712,\n"
                 "    \"name\": \"decoder)\xee\xbf\xbf\"\n  },\n");
    expect_piece("  \"backtrace\": {\n    \"complete\": false,\n    \"frames\": [],\n"
                 "    \"reason\": \"no libdw\"\n  },\n");
    expect_piece("    \"rip\": \"0x55d0c8a01234\",\n");
    expect_piece("  \"other_threads\": [\n    4711,\n    4713\n  ],\n");
    expect_piece("/usr/bin/viewer\",\n      \"build_id\": \"0123abcd\"\n    },\n");
}

#define OF_THE_THREAD " in thread decoder)\xee\xbf\xbf (4712): "

Test(crash, names_what_is_known_of_a_signal) {
    static const struct {
        int signal, code, sender_pid; /* of the page itself: 4711 */
        const char *piece;
    } rows[] = {
        {SIGSEGV, 99, -1, "SIGSEGV at 0x0" OF_THE_THREAD "an unknown code"},
        {SIGSEGV, 128, -1, "SIGSEGV" OF_THE_THREAD "an address that cannot exist"},
        {SIGABRT, -6, 0, "\"code_name\": \"SI_TKILL\""},
        {SIGABRT, -6, 0, "  \"sender\": {\n    \"pid\": 0,\n    \"uid\": 33\n  },\n"},
        {SIGXCPU, 128, -1, "SIGXCPU" OF_THE_THREAD "sent by the kernel"},
        {SIGIO, 1, -1, "SIGIO" OF_THE_THREAD "an unknown code"},
        {SIGPIPE, 0, 4711,
         "SIGPIPE" OF_THE_THREAD "nobody reads any more what it wrote to a pipe or socket"},
        {SIGPIPE, 0, 4712, "SIGPIPE" OF_THE_THREAD "sent by kill"},
        {SIGSEGV, 0, 5000, "  \"cause\": \"sent by process 5000 of user 33\",\n"},
        {SIGABRT, 0, 4711, "  \"cause\": \"the program aborted itself\",\n"},
        {SIGABRT, 0, 1,
         "  \"cause\": \"sent by process 1: probably the watchdog of the service manager, as "
         "WatchdogSec= of systemd, or its limit for a stop\",\n"},
        {SIGSYS, 1, 1, "  \"cause\": \"a filter (seccomp) refused the system call getpgid\",\n"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bp_crash_page *page = sample_crash_page();
        page->signal = rows[i].signal;
        page->code = rows[i].code;
        page->sender_pid = rows[i].sender_pid;
        page->sender_uid = rows[i].sender_pid < 0 ? -1 : 33;
        page->system_call = 121;
        print(page);
        expect_piece(rows[i].piece);
        cr_expect(rows[i].signal != SIGXCPU || strstr(bp_buffer_text(&out), "cause") == NULL);
    }
}

Test(crash, names_what_made_a_program_abort_by_the_function_that_calls_it) {
    static const struct {
        const char *symbol, *cause;
    } rows[] = {{"__stack_chk_fail", "stack smashing detected"},
                {"__assert_fail", "an assertion failed"},
                {"_ZSt9terminatev", "std::terminate was called"},
                {"stack_chk_fail", "the program aborted itself"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char symbol[32], inner[] = "__fortify_fail", piece[96];
        (void)snprintf(symbol, sizeof symbol, "%s", rows[i].symbol);
        bp_stack_place places[] = {{.module = BP_STACK_NO_MODULE, .symbol = i == 0 ? inner : NULL},
                                   {.module = BP_STACK_NO_MODULE, .symbol = symbol}};
        bp_stack_frame frames[] = {{.place = 0}, {.place = 1}};
        bp_stack_thread thread = {.tid = 4712, .state = BP_STACK_CRASHED, .frame_count = 2};
        const bp_stacks stacks = {.places = places,
                                  .place_count = 2,
                                  .frames = frames,
                                  .frame_count = 2,
                                  .threads = &thread,
                                  .thread_count = 1,
                                  .is_of_crash = true};
        const bp_crash_backtrace backtrace = {.stacks = &stacks};
        bp_crash_page *page = sample_crash_page();
        page->signal = SIGABRT;
        page->code = -6;
        page->sender_pid = 4711;
        bp_buffer_release(&out);
        bp_buffer_init(&out, 1 << 20);
        cr_assert(eq(int, bp_crash_print(page, &backtrace, &out, &error), BUGPACK_OK));
        (void)snprintf(piece, sizeof piece, "  \"cause\": \"%s\",\n", rows[i].cause);
        expect_piece(piece);
    }
}

Test(crash, calls_a_fault_below_the_stack_an_overflow) {
    bp_crash_page *page = sample_crash_page();
    page->stack_start = 0x7ffd5a0f0000;
    page->registers[7] = 0x7ffd5a0efff8;
    page->address = 0x7ffd5a0efff0;
    print(page);
    expect_piece("SIGSEGV at 0x7ffd5a0efff0" OF_THE_THREAD "the stack has overflowed");
    page->address = 0x7ffd5a0f0000;
    print(page);
    expect_piece("nothing is mapped there");
}

/* What the error code of a page fault and the mappings make of it. */
static const struct {
    int signal, code;
    uint64_t address, program_counter, error;
    const char *cause;
} causes[] = {
    {SIGSEGV, 1, 0, 0x55d0c8a01234, 4, "read through a null pointer"},
    {SIGSEGV, 1, 0x10, 0x55d0c8a01234, 6, "write through a null pointer (address 0x10, near null)"},
    {SIGSEGV, 1, 0, 0, 20, "call through a null pointer"},
    {SIGSEGV, 1, 0x123456789000, 0x123456789000, 20, "jump to an address where nothing is mapped"},
    {SIGSEGV, 1, 0x123456789000, 0x55d0c8a01234, 6, "write of an address where nothing is mapped"},
    {SIGSEGV, 2, 0x55d0c8a00010, 0x55d0c8a01234, 7,
     "write to read-only memory (in /usr/bin/viewer)"},
    {SIGSEGV, 2, 0x7ffd5a0f0010, 0x7ffd5a0f0010, 21,
     "jump to data, which may not be executed (in [stack])"},
    {SIGSEGV, 1, 0x7ffd1a110008, 0x55d0c8a01234, 6,
     "probably stack overflow: the stack pointer is outside of any stack"},
    {SIGSEGV, 128, 0, 0x55d0c8a01234, 0,
     "general protection, probably an operand that is not aligned"},
    {SIGSEGV, 128, 0, 0x4141414141414141, 0,
     "an address that cannot exist, probably from rip, which is 0x4141414141414141"},
    {SIGBUS, 1, 0x55d0c8a01001, 0x55d0c8a01234, 0, "misaligned address"},
    {SIGBUS, 2, 0x55d0c8a01010, 0x55d0c8a01234, 4,
     "the mapped file \\\"/usr/bin/viewer\\\" has no byte 4112: probably it was cut short"},
    {SIGFPE, 1, 0x55d0c8a01234, 0x55d0c8a01234, 0,
     "integer division by zero, or one that overflows"},
};

Test(crash, says_the_cause_in_words) {
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++) {
        bp_crash_page *page = sample_crash_page();
        char piece[200];
        page->signal = causes[i].signal;
        page->code = causes[i].code;
        page->address = causes[i].address;
        page->registers[7] =
            strstr(causes[i].cause, "stack overflow") ? 0x7ffd1a110000 : 0x7ffd5a110000;
        page->registers[16] = causes[i].program_counter;
        page->registers[19] = causes[i].error;
        print(page);
        (void)snprintf(piece, sizeof piece, "  \"cause\": \"%s\",\n", causes[i].cause);
        expect_piece(piece);
    }
}

Test(crash, has_the_message_of_an_abort_without_its_newline) {
    bp_crash_page *page = sample_crash_page();
    (void)snprintf(page->abort_message, sizeof page->abort_message, "%s", "free(): bad\n");
    print(page);
    expect_piece("  \"abort_message\": \"free(): bad\",\n");
    memset(page->abort_message, 'x', sizeof page->abort_message);
    expect_damaged(page, "a message that does not end");
}

Test(crash, names_an_exception_that_the_host_has_told) {
    bp_crash_page *page = sample_crash_page();
    (void)snprintf(page->exception_type, sizeof page->exception_type, "viewer::torn");
    print(page);
    expect_piece("  \"cause\": \"the program aborted itself after the exception viewer::torn\",\n");
    expect_piece("  \"exception\": {\n    \"type\": \"viewer::torn\"\n  },\n");
    (void)snprintf(page->exception_message, sizeof page->exception_message, "in two");
    page->is_exception_told = 1;
    print(page);
    expect_piece("    \"message\": \"in two\",\n    \"uncaught\": true\n");
    memset(page->exception_message, 'x', sizeof page->exception_message);
    expect_damaged(page, "a message that does not end");
    page->exception_message[0] = '\0';
    memset(page->exception_type, 'x', sizeof page->exception_type);
    expect_damaged(page, "a type that does not end");
}

Test(crash, names_the_registers_of_aarch64) {
    bp_crash_page *page = sample_crash_page();
    page->arch = BP_CRASH_ARCH_AARCH64;
    page->register_count = 34;
    page->registers[31] = 0x7777;
    print(page);
    expect_piece("    \"x30\": \"0x0\",\n    \"sp\": \"0x7777\",\n    \"pc\": \"0x0\",\n"
                 "    \"pstate\": \"0x0\"\n");
    expect_piece("  \"stack\": {\n    \"pointer\": \"0x7777\",\n");
    page->arch = BP_CRASH_ARCH_OTHER;
    print(page);
    expect_piece("  \"registers\": {},\n");
}
