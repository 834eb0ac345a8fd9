/*
 * The printed forms of stacks, on data; which names are demangled; our own stacks.
 */
#include <pthread.h>
#ifdef __linux__
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#endif

#include "base/clock.h"
#include "model/frame_text.h"
#include "stacks/stack_files.h"
#include "stacks/stacks.h"
#include "support/model_samples.h"
#include "support/not_tried.h"
#include "unit/quick_session.h"
#ifdef __linux__
#include "platform/linux/mapped_files.h"
#include "process/threads.h"
#include "profile/profile_fold.h"
#include "stacks/place_cache.h"
#endif

static const char full_text[] =
    "Process 4711: the stacks of its threads. 1 was stopped, for at most 86 us each.\n"
    "The functions of Python 3.11.7 follow the C functions of each thread.\n"
    "C++ names are as the files have them: there is no libstdc++ to demangle them.\n"
    "\nThread 1 (LWP 4711 \"ma\"in?#1\"):\n"
    "#0  0x00007f00000f8e2f in poll () from /usr/lib/libc.so.6 (+0xf8e2f)\n"
    "#1  0x0000000000401234 in spin () from /opt/a?#0  b/viewer (+0x401234) [inlined]\n"
    "#2  0x0000000000401234 in app::poll() at src/poll.h:7 [inlined]\n"
    "#3  0x0000000000401234 in app::wait(int) at src/wait.cc:12\n"
    "#4  0x00007f1100000010 in ?? ()\n"
    "\nThread 2 (LWP 4712 \"io\"):\n"
    "#0  0x0000000000401234 in spin () from /opt/a?#0  b/viewer (+0x401234) [inlined] [by frame "
    "pointer]\n"
    "#1  0x0000000000401234 in app::poll() at src/poll.h:7 [inlined] [by frame pointer]\n"
    "#2  0x0000000000401234 in app::wait(int) at src/wait.cc:12 [by frame pointer]\n"
    "Backtrace stopped: no unwind table reaches this address\n"
    "\nThread 3 (LWP 4713 \"\"):\n"
    "running: it has no stack without stopping it\n"
    "Python:\n"
    "#0  in Worker.take at /srv/app.py:12\n"
    "#1  in <module>\n"
    "Python stopped: there are more frames than the limit\n"
    "\nThread 4 (LWP 4715 \"spin\"):\n"
    "#0  0x00007f1100000010 in ?? ()\n"
    "Backtrace stopped: this code was made at run time\n"
    "\nThread 5 (LWP 4716 \"bad\"):\n"
    "#0  0x00007f1100000010 in ?? ()\n"
    "\nThread 6 (LWP 4714 \"\"):\n"
    "moved: it ran meanwhile\n"
    "\n2 more threads were passed over.\n"
    "\n1 more threads had ended.\n";

Test(stacks, are_printed_like_gdb_prints_them_and_names_begin_no_line) {
    BUFFER(out, 65536);
    cr_assert(eq(int, bp_stacks_print_text(&sample_stacks_full, &out, NULL), BUGPACK_OK));
    cr_expect(eq(str, bp_buffer_text(&out), full_text));
}

Test(stacks, have_module_offset_and_build_id_in_each_frame_of_the_document) {
    BUFFER(out, 65536);
    cr_assert(eq(int, bp_stacks_print_json(&sample_stacks_full, &out, NULL), BUGPACK_OK));
    cr_expect(strstr(bp_buffer_text(&out), "          \"address\": \"0x7f00000f8e2f\",\n"
                                           "          \"module\": \"/usr/lib/libc.so.6\",\n"
                                           "          \"offset\": \"0xf8e2f\",\n"
                                           "          \"build_id\": \"0123abcd\",\n"
                                           "          \"symbol\": \"poll@@GLIBC_2.2.5\",\n"
                                           "          \"symbol_offset\": 79\n") != NULL,
              "%s", bp_buffer_text(&out));
}

static void expect_name(const bp_frame_text *frame, const char *wanted) {
    char name[BP_FRAME_NAME_BYTES];
    bp_frame_short_name(frame, name);
    cr_expect(eq(str, name, wanted));
}

Test(frames, have_the_name_of_the_function_without_types_and_arguments) {
    static const char *const rows[][2] = {
        {"app::wait(int)", "app::wait"},
        {"run", "run"},
        {"int parse<int>(int)", "parse<int>"},
        {"int parse<std::map<std::string, std::vector<std::map<int, std::string> > > "
         ">(std::map<int>)",
         "parse<std::map<std::string, std::vector<std::map<int, std::s…"},
        {"std::map<std::string, std::vector<std::string> > app::load<std::map<int, std::string> "
         ">()",
         "app::load<std::map<int, std::string> >"},
        {"app::(anonymous namespace)::Hidden::run(app::net::Cache<std::string, int>&)",
         "app::(anonymous namespace)::Hidden::run"},
        {"(anonymous namespace)::f(int) [clone .cold]", "(anonymous namespace)::f"},
        {"main::{lambda(std::string const&)#1}::operator()(std::string const&) const",
         "main::{lambda(std::string const&)#1}::operator()"},
        {"app::run(int) const::{lambda()#1}::operator()() const",
         "app::run(int) const::{lambda()#1}::operator()"},
        {"main::{lambda(int)#1}::operator()", "main::{lambda(int)#1}::operator()"},
        {"std::ostream& std::operator<< <char>(std::ostream&, char const*)",
         "std::ostream& std::operator<< <char>"},
        {"app::P::operator->() const", "app::P::operator->"},
        {"bool app::operator< <int>(app::P<int> const&, int)", "bool app::operator< <int>"},
        {"app::P::operator bool() const", "app::P::operator bool"},
        {"operator new(unsigned long)", "operator new"},
        {"app::(anonymous namespace)::table", "app::(anonymous namespace)::table"},
        {"app::run(int)::{lambda()#1}", "app::run(int)::{lambda()#1}"},
        {"std::_Function_handler<void (), main::{lambda()#1}>::_M_invoke(std::_Any_data const&)",
         "std::_Function_handler<void (), main::{lambda()#1}>::_M_invoke"},
        {"non-virtual thunk to app::P::f()", "app::P::f"},
        {"decltype (f(1)) app::g<int>(int)", "app::g<int>"},
        {"<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop",
         "<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop"},
        {"<() as core::fmt::Debug>::fmt", "<() as core::fmt::Debug>::fmt"},
        {"std::rt::lang_start::{{closure}}", "std::rt::lang_start::{{closure}}"},
        {"a_name_that_is_much_longer_than_any_line_could_hold_and_goes_on_and_on()",
         "a_name_that_is_much_longer_than_any_line_could_hold_and_goes…"},
        {"f<(", "f<("},
        {"(", "("},
        {">>)]}", ">>)]}"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const bp_frame_text frame = {.symbol = "_Z", .demangled = rows[i][0]};
        expect_name(&frame, rows[i][1]);
    }
}

Test(frames, without_a_name_have_the_file_and_the_place_in_it) {
    expect_name(&(bp_frame_text){.symbol = "poll@@GLIBC_2.2.5"}, "poll");
    expect_name(&(bp_frame_text){.symbol = "outer.constprop.0.isra.0"}, "outer");
    expect_name(&(bp_frame_text){.module = "/opt/viewer", .address = 1, .file_address = 0x1221},
                "viewer+0x1221");
    expect_name(&(bp_frame_text){.module = "[vdso]", .file_address = 16}, "[vdso]+0x10");
    expect_name(&(bp_frame_text){.address = 0x7f3c}, "0x7f3c");
    expect_name(&(bp_frame_text){.symbol = "@", .address = 0}, "0x0");
    expect_name(&(bp_frame_text){.symbol = "__restore_rt", .is_signal = true},
                "<signal handler called>");
    char path[300] = "/";
    memset(path + 1, 'a', sizeof path - 2);
    path[sizeof path - 1] = '\0';
    expect_name(&(bp_frame_text){.module = path, .file_address = UINT64_MAX},
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…+0xffffffffffffffff");
}

static void expect_list(const char *const *names, bool is_complete, const char *wanted) {
    bp_frame_list list = {.used = 0};
    for (; *names != NULL; names++) {
        bp_frame_list_add(&list, &(bp_frame_text){.symbol = *names});
    }
    bp_frame_list_end(&list, is_complete);
    cr_expect(eq(str, list.text, wanted));
}

#define LONG_NAME "a_name_of_forty_bytes_in_a_list_of_160_x"

Test(frames, are_never_left_out_of_a_list_without_a_mark) {
    expect_list((const char *[]){"poll", "wait", "main", NULL}, true, "poll < wait < main");
    expect_list((const char *[]){"poll", "wait", NULL}, false, "poll < wait < …");
    expect_list((const char *[]){NULL}, false, "");
    expect_list((const char *[]){"f", "f", "f", "g", "f", NULL}, true, "f ×3 < g < f");
    expect_list((const char *[]){"f", "f", NULL}, false, "f ×2 < …");
    expect_list((const char *[]){LONG_NAME, "b", LONG_NAME, "c", LONG_NAME, "d", LONG_NAME, NULL},
                true, LONG_NAME " < b < " LONG_NAME " < c < " LONG_NAME " < d < …");
    expect_list(
        (const char *[]){LONG_NAME, "b", LONG_NAME, "c", LONG_NAME, "01234567890123456", NULL},
        true, LONG_NAME " < b < " LONG_NAME " < c < " LONG_NAME " < 01234567890123456");
}

/* So that a stack of code without symbols has a name, too. */
Test(frames, without_names_are_followed_by_the_outermost_name) {
    bp_frame_list list = {.names_module_once = true};
    for (uint64_t i = 0; i < 40; i++) {
        bp_frame_list_add(&list,
                          &(bp_frame_text){.module = "/lib/viewer", .file_address = i << 20});
    }
    bp_frame_list_add(&list, &(bp_frame_text){.symbol = "run_all"});
    bp_frame_list_add(&list, &(bp_frame_text){.module = "/lib/viewer", .file_address = 7});
    bp_frame_list_add(&list, &(bp_frame_text){.symbol = "main"});
    bp_frame_list_end(&list, true);
    cr_expect(strncmp(list.text, "viewer+0x0 < +0x100000 < ", 25) == 0, "%s", list.text);
    cr_expect(eq(str, strstr(list.text, "\u2026"), "\u2026 < main"));
}

Test(stacks, that_find_no_room_fail) {
    BUFFER(out, 200);
    cr_expect(eq(int, bp_stacks_print_text(&sample_stacks_full, &out, NULL), BUGPACK_ERR_LIMIT));
}

Test(stacks, are_in_the_reports_of_a_host_unless_it_turns_them_off, .init = setup,
     .fini = teardown) {
    for (unsigned i = 0; i < 2; i++) {
        options.stacks = i == 0 ? BUGPACK_STACKS_BLOCKED : BUGPACK_STACKS_NONE;
        open_session();
        take(NULL);
        cr_expect(eq(int, holds("manifest.json", "stacks.txt"), i == 0));
        bugpack_close(session);
    }
    for (options.stacks = BUGPACK_STACKS_ALL; options.stacks <= 4; options.stacks++) {
        cr_expect(eq(int, bugpack_open(&options, &session, NULL), BUGPACK_ERR_INVALID));
    }
}

#ifdef __linux__
Test(demangle, decodes_rust_names_and_no_others) {
    static const char *const rows[][2] = {
        {"r::Reader$LT$T$GT$::fetch_all::h80c93f7a454da753", "r::Reader<T>::fetch_all"},
        {"<() as core::fmt::Debug>::fmt", "<() as core::fmt::Debug>::fmt"},
        {"std::rt::lang_start::_$u7b$$u7b$closure$u7d$$u7d$::ha86af84d9cc65291",
         "std::rt::lang_start::{{closure}}"},
        {"_$LT$a..B$u20$as$u20$c..D$GT$::e::h0123456789abcdef", "<a::B as c::D>::e"},
        {"a::_$RF$$BP$$LP$$C$$RP$b::h0123456789abcdef", "a::&*(,)b"},
        {"a$b$u7g$u07$$u::h0123456789abcdef", "a$b$u7g$u07$$u"},
        {"::h0123456789abcdef", "::h0123456789abcdef"},
        {"a$LT$::h0123456789abcdeg", "a$LT$::h0123456789abcdeg"},
        {"app::wait(int)", "app::wait(int)"},
        {"", ""}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char name[96];
        (void)snprintf(name, sizeof name, "%s", rows[i][0]);
        bp_demangle_rust(name);
        cr_expect(eq(str, name, rows[i][1]));
    }
}

Test(demangle, takes_names_of_a_bounded_plain_form) {
    char many[128] = "_Z1f";
    for (size_t i = strlen(many); i < 4 + 2 * 25; i += 2) {
        (void)snprintf(many + i, sizeof many - i, "S_");
    }
    cr_expect(bp_demangle_is_bounded("_ZN3app4waitEi"));
    cr_expect(not(bp_demangle_is_bounded("main")));
    cr_expect(not(bp_demangle_is_bounded(many)));
    many[4 + 2 * 24] = '\0';
    cr_expect(bp_demangle_is_bounded(many));
    char longer[1100] = "_Z";
    memset(longer + 2, 'a', sizeof longer - 3);
    longer[sizeof longer - 1] = '\0';
    cr_expect(not(bp_demangle_is_bounded(longer)));
}

/* Asked of the system: bugpack does not decide which of its own tests are skipped. */
static bool is_libdw_installed(void) {
    return dlopen("libdw.so.1", RTLD_NOW) != NULL;
}

Test(stacks, of_a_process_that_is_not_there_are_refused) {
    const bp_stacks_plan plan = {.deadline_ns = UINT64_MAX, .symbols_until_ns = UINT64_MAX};
    const bp_stacks_plan other = {
        .deadline_ns = UINT64_MAX, .symbols_until_ns = UINT64_MAX, .birth = 1};
    bp_stacks stacks;
    if (!is_libdw_installed()) {
        not_tried("no libdw");
    }
    cr_expect(
        eq(int, bp_stacks_read(0x7ffffffe, &plan, &stacks, &failure), BUGPACK_ERR_NO_PROCESS));
    cr_expect(eq(int, bp_stacks_read(0, &other, &stacks, &failure), BUGPACK_ERR_NO_PROCESS));
}

Test(stacks, of_our_own_process_list_the_thread_that_asks_as_running) {
    const bp_stacks_plan plan = {.deadline_ns = UINT64_MAX, .symbols_until_ns = UINT64_MAX};
    bp_stacks stacks;
    if (!is_libdw_installed()) {
        not_tried("no libdw");
    }
    cr_assert(eq(int, bp_stacks_read(0, &plan, &stacks, NULL), BUGPACK_OK));
    cr_assert(ge(sz, stacks.thread_count, 1));
    cr_expect(eq(int, stacks.threads[0].state, BP_STACK_RUNNING));
    cr_expect(eq(sz, stacks.threads[0].frame_count, 0));
    bp_stacks_release(&stacks);
}

/* A blocked thread is never in it; one that was stopped may be. */
Test(stacks, find_the_code_of_the_kernel_in_each_process) {
    bp_stack_files files = {.dw = bp_libdw_get(NULL), .pid = getpid(), .process_fd = -1};
    void *vdso = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);
    void *code = vdso != NULL ? dlsym(vdso, "__vdso_clock_gettime") : NULL;
    if (!is_libdw_installed() || code == NULL) {
        not_tried("no libdw, or no vDSO");
    }
    cr_assert(ne(ptr, files.dw, NULL));
    files.process_fd = open("/proc/self", O_PATH | O_DIRECTORY);
    cr_assert(eq(int, bp_stack_files_open(&files), 0));
    bp_stack_place place = {.address = (uint64_t)(uintptr_t)code};
    bp_stack_file *file = bp_stack_files_find(&files, place.address);
    cr_assert(ne(ptr, file, NULL));
    cr_expect(eq(str, file->mapped.path, "[vdso]"));
    cr_expect(eq(int, bp_stack_file_rule(file, place.address), BP_STACK_RULE_FOUND));
    bp_stack_file_add_symbol(file, &place);
    cr_assert(ne(ptr, place.symbol, NULL));
    cr_expect(ne(ptr, strstr(place.symbol, "clock_gettime"), NULL));
    cr_expect(ne(chr, file->facts.build_id[0], '\0'));
    bp_stack_place_release(&place);
    bp_stack_files_close(&files);
}

static void *wait_to_end(void *pipe_end) {
    char byte;
    (void)!read(*(int *)pipe_end, &byte, 1);
    return NULL;
}

/* The frames of the last thread, once it is blocked. */
static size_t count_frames_when_blocked(void) {
    const bp_stacks_plan plan = {.deadline_ns = UINT64_MAX, .symbols_until_ns = UINT64_MAX};
    size_t count = 0;
    bp_stacks stacks;
    for (bool is_blocked = false; !is_blocked;) {
        cr_assert(eq(int, bp_stacks_read(0, &plan, &stacks, NULL), BUGPACK_OK));
        const bp_stack_thread *last = &stacks.threads[stacks.thread_count - 1];
        is_blocked = last->state == BP_STACK_BLOCKED;
        count = last->frame_count;
        bp_stacks_release(&stacks);
    }
    return count;
}

Test(stacks, of_our_own_process_have_the_frames_of_its_other_threads) {
    pthread_t thread;
    int ends[2];
    if (!is_libdw_installed()) {
        not_tried("no libdw");
    }
    cr_assert(eq(int, pipe(ends), 0));
    cr_assert(eq(int, pthread_create(&thread, NULL, wait_to_end, &ends[0]), 0));
    size_t count = count_frames_when_blocked();
    (void)close(ends[1]);
    (void)pthread_join(thread, NULL);
    (void)close(ends[0]);
    cr_expect(ge(sz, count, 2));
}

/* A child finds the name, and we have it. */
Test(place_cache, has_what_a_child_has_found_of_the_same_file) {
    char name[] = "r::poll", line[] = "src/poll.h";
    bp_stack_inlined inlined = {.symbol = name, .source = line, .line = 7};
    bp_stack_files all = {.is_host = false};
    bp_stack_file file = {
        .all = &all, .facts = {.start = 0x1000, .build_id = "0123abcd"}, .mapped.inode = 5};
    bp_stack_place place = {.address = 0x1234, .is_call = true, .line = -1};
    const bp_stack_place known = {.address = 0x1234,
                                  .is_call = true,
                                  .symbol = name,
                                  .symbol_offset = 4,
                                  .inlined = &inlined,
                                  .inlined_count = 1};
    cr_expect(not(bp_place_cache_find(&file, &place)), "it was not begun");
    bp_stacks_prepare_children();
    cr_expect(not(bp_place_cache_find(&file, &place)));
    pid_t child = fork();
    if (child == 0) {
        bp_place_cache_keep(&file, &known);
        _exit(0);
    }
    (void)waitpid(child, NULL, 0);
    bp_stack_file moved = file;
    moved.facts.start += 0x1000;
    cr_expect(not(bp_place_cache_find(&moved, &place)), "another offset");
    place.address += 0x1000;
    cr_assert(bp_place_cache_find(&moved, &place), "another process has it elsewhere");
    cr_expect(eq(str, place.symbol, name));
    cr_expect(place.symbol_offset == 4 && place.source == NULL);
    cr_expect(place.inlined_count == 1 && place.inlined[0].line == 7 &&
              strcmp(place.inlined[0].source, line) == 0 && place.inlined[0].demangled == NULL);
    bp_stack_place_release(&place);
    moved.facts.build_id[0] = '1';
    cr_expect(not(bp_place_cache_find(&moved, &place)), "another file");
    moved = file;
    moved.mapped.inode = 0;
    cr_expect(not(bp_place_cache_find(&moved, &place)), "memory of the process");
}

static uint64_t read_size_kb(void) {
    char text[128];
    CLEANUP(close_fd) int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t length = read(fd, text, sizeof text - 1);
    cr_assert(length > 0);
    text[length] = '\0';
    return strtoull(text, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

Test(place_cache, of_a_host_is_kept_from_its_children_and_from_other_processes) {
    char name[] = "poll", false_name[] = "pole";
    bp_stack_files host = {.is_host = true}, other = {.is_host = false};
    bp_stack_file file = {
        .all = &host, .facts = {.start = 0x1000, .build_id = "0123abcd"}, .mapped.inode = 5};
    bp_stack_place place = {.address = 0x1234};
    bp_stack_place known = {.address = 0x1234, .symbol = false_name};
    const uint64_t size_kb = read_size_kb();
    bp_place_cache_begin(true);
    cr_expect(le(u64, read_size_kb() - size_kb, 1200), "a host may have locked all its memory");
    pid_t child = fork();
    if (child == 0) {
        bp_place_cache_keep(&file, &known);
        _exit(0);
    }
    (void)waitpid(child, NULL, 0);
    cr_expect(not(bp_place_cache_find(&file, &place)), "what a child has written");
    known.symbol = name;
    bp_place_cache_keep(&file, &known);
    cr_assert(bp_place_cache_find(&file, &place));
    cr_expect(eq(str, place.symbol, name));
    bp_stack_place_release(&place);
    file.all = &other;
    cr_expect(not(bp_place_cache_find(&file, &place)), "a process whose lines are looked for");
    file.all = &host;
    for (size_t i = 0; i < 100000; i++) {
        known.address++;
        bp_place_cache_keep(&file, &known);
    }
    place.address = known.address;
    cr_expect(not(bp_place_cache_find(&file, &place)), "it is full");
}

/* True if a place of our own stacks, that of a file, was kept. */
static bool is_kept(const bp_stacks *stacks, const bp_mapped_file *mapped, bp_stack_place place) {
    bp_stack_files host = {.is_host = true};
    const bp_stack_module *module = &stacks->modules[place.module];
    bp_stack_file file = {.all = &host, .facts = *module, .mapped = *mapped};
    bp_stack_place found = {.address = place.address, .is_call = place.is_call};
    bool is_found = module->start == mapped->address && bp_place_cache_find(&file, &found) &&
                    strcmp(found.symbol, place.symbol) == 0 &&
                    found.symbol_offset == place.symbol_offset;
    bp_stack_place_release(&found);
    return is_found;
}

Test(place_cache, has_the_names_of_our_own_stacks) {
    const bp_stacks_plan plan = {.deadline_ns = UINT64_MAX, .symbols_until_ns = UINT64_MAX};
    bp_stacks stacks;
    bp_mapped_files mapped;
    pthread_t thread;
    int ends[2];
    size_t kept_count = 0;
    if (!is_libdw_installed()) {
        not_tried("no libdw");
    }
    cr_assert(eq(int, pipe(ends), 0));
    cr_assert(eq(int, pthread_create(&thread, NULL, wait_to_end, &ends[0]), 0));
    (void)count_frames_when_blocked();
    cr_assert(eq(int, bp_stacks_read(0, &plan, &stacks, NULL), BUGPACK_OK));
    int process_fd = open("/proc/self", O_PATH | O_CLOEXEC);
    cr_assert(eq(int, bp_mapped_files_read(process_fd, false, &mapped), 0));
    for (size_t i = 0; i < stacks.place_count; i++) {
        const bp_stack_place place = stacks.places[i];
        for (size_t k = 0; place.symbol != NULL && k < mapped.count; k++) {
            kept_count +=
                place.module != BP_STACK_NO_MODULE && is_kept(&stacks, &mapped.items[k], place);
        }
    }
    cr_expect(ge(sz, kept_count, 1));
    bp_mapped_files_release(&mapped);
    bp_stacks_release(&stacks);
    (void)close(process_fd);
    (void)close(ends[1]);
    (void)pthread_join(thread, NULL);
    (void)close(ends[0]);
}

Test(stacks, that_nobody_waits_for_any_more_are_not_read) {
    const bp_stacks_plan plan = {.deadline_ns = bp_clock_monotonic_ns()};
    bp_stacks stacks;
    if (!is_libdw_installed()) {
        not_tried("no libdw");
    }
    cr_assert(eq(int, bp_stacks_read(0, &plan, &stacks, NULL), BUGPACK_OK));
    cr_expect(eq(sz, stacks.thread_count, 0));
    cr_expect(ge(sz, stacks.passed_over_count, 1));
    bp_stacks_release(&stacks);
}
#endif

#ifdef __linux__
/* A sample of the first thread, which comes too late to be unwound. */
static void take_late_sample(bp_profile_fold *fold, const char *name, int pid) {
    const bp_perf_record sample = {.kind = BP_PERF_SAMPLE, .pid = pid, .tid = getpid()};
    cr_assert(zero(int, prctl(PR_SET_NAME, name)));
    bp_profile_fold_take(fold, &sample);
}

Test(profile_fold, counts_what_was_lost_and_other_threads_than_ours) {
    static bp_profile out;
    static bp_profile_fold folds[2];
    const bp_perf_record lost = {.kind = BP_PERF_LOST, .lost = 12};
    const atomic_bool stop = false;
    bp_process_threads own;
    cr_assert(zero(int, bp_threads_read(0, UINT64_MAX, &own, NULL)));
    for (size_t i = 0; i < 2; i++) {
        folds[i].pid = getpid();
        folds[i].birth = own.birth;
        folds[i].stop = &stop;
        folds[i].out = &out;
    }
    bp_process_threads_release(&own);
    bp_profile_fold_take(&folds[0], &lost);
    cr_expect(eq(u64, out.facts.lost_count, 12));
    take_late_sample(&folds[0], "bugpack-worker", getpid());
    take_late_sample(&folds[1], "worker", getpid() + 1);
    cr_expect(eq(u64, out.facts.lost_count, 12));
    cr_expect(eq(u64, out.facts.thread_count, 0));
    take_late_sample(&folds[1], "worker", getpid());
    cr_expect(eq(u64, out.facts.lost_count, 13));
    cr_expect(eq(u64, out.facts.thread_count, 1));
    for (size_t i = 0; i < 2; i++) {
        cr_expect(zero(int, bp_profile_fold_end(&folds[i], 0, NULL)));
    }
}
#endif
