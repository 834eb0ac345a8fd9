/*
 * The signature of a report: the names of functions as each build has them, and which of a stack.
 */
#include "model/signature.h"
#include "unit/unit.h"

static const char app[] = "/opt/viewer/viewer", gtk[] = "/usr/lib/x86_64-linux-gnu/libgtk-3.so.0";
static const char libc[] = "/lib/x86_64-linux-gnu/libc.so.6";

/* The signature of a crash with these frames. */
static const bp_signature *sign(const bp_frame_text *frames, size_t count) {
    static bp_signature signature;
    bp_signature_stack stack = {.is_over = false};
    for (size_t i = 0; i < count; i++) {
        bp_signature_take(&stack, &frames[i]);
    }
    bp_signature_make(&signature, "crash", "SIGSEGV", false, &stack, 1);
    return &signature;
}

#define EXPECT(expected, ...)                                                                      \
    cr_expect(                                                                                     \
        eq(str,                                                                                    \
           (char *)sign((const bp_frame_text[]){__VA_ARGS__},                                      \
                        sizeof((const bp_frame_text[]){__VA_ARGS__}) / sizeof(bp_frame_text))      \
               ->text,                                                                             \
           expected))
#define FRAME(path, name)                                                                          \
    { .module = (path), .symbol = (name), .address = 0x7f0000001000, .line = 12 }
#define CPP(name)                                                                                  \
    { .module = app, .symbol = "_Zx", .demangled = (name) }

Test(signature, has_the_innermost_functions_of_the_program) {
    EXPECT("crash SIGSEGV: decode < take", FRAME(libc, "memcpy@GLIBC_2.14"), FRAME(app, "decode"),
           FRAME(app, "take"), FRAME(app, "main"), FRAME(libc, "__libc_start_main"),
           FRAME(app, "_start"));
    EXPECT("crash SIGSEGV: walk < main", FRAME(app, "walk"), FRAME(app, "walk"),
           FRAME(app, "main"));
}

Test(signature, has_those_of_libraries_where_there_are_no_others) {
    EXPECT("crash SIGSEGV: draw", FRAME(gtk, "gtk_main_do_event"), FRAME(app, "draw"));
    EXPECT("crash SIGSEGV: gtk_main_do_event < gtk_main", FRAME(gtk, "gtk_main_do_event"),
           FRAME(gtk, "gtk_main"));
    EXPECT("crash SIGSEGV: decode", FRAME("/usr/lib/viewer/plugins/libjpeg.so", "decode"),
           FRAME(gtk, "gtk_main"));
}

Test(signature, has_no_function_that_was_inlined) {
    static const bp_frame_text inlined = {
        .module = app, .symbol = "read_marker", .is_inlined = true};
    EXPECT("crash SIGSEGV: decode < main", inlined, FRAME(app, "decode"), FRAME(app, "main"));
}

Test(signature, has_no_marks_of_a_build) {
    EXPECT("crash SIGSEGV: parse < main", FRAME(app, "parse.part.0.constprop.1"),
           FRAME(app, "main"));
    EXPECT("crash SIGSEGV: parse < main", FRAME(app, "parse.1234"), FRAME(app, "main.cold"));
    EXPECT("crash SIGSEGV: take", CPP("std::vector<int>::push_back(int)"), CPP("take(int)"));
    EXPECT("crash SIGSEGV: core::take", CPP("core::take::h0123456789abcdef"));
    EXPECT("crash SIGSEGV: _ZN4core4take", FRAME(app, "_ZN4core4take17h0123456789abcdefE"));
    EXPECT("crash SIGSEGV: memchr:find", FRAME(app, "_RNvCs7qp2U7fqm6G_6memchr4find"));
    EXPECT("crash SIGSEGV: main.main.func", FRAME(app, "main.main.func12"));
    EXPECT("crash SIGSEGV: list::take < app::list::put",
           CPP("void list<std::pair<int, long> >::take<3>(int)"), CPP("app::list<int>::put(int)"));
    EXPECT("crash SIGSEGV: run(int)::{lambda()#}::operator()",
           CPP("run(int)::{lambda()#2}::operator()() const"));
    EXPECT("crash SIGSEGV: operator<<", CPP("operator<<(stream&, box<int> const&)"));
}

Test(signature, names_functions_of_python_with_their_file) {
    static const bp_frame_text wait = {.is_python = true,
                                       .symbol = "Event.wait",
                                       .source = "/usr/lib/python3.11/threading.py",
                                       .line = 4};
    static const bp_frame_text own = {.is_python = true,
                                      .symbol = "main.<locals>.take",
                                      .source = "/srv/app/server.py",
                                      .line = 17};
    EXPECT("crash SIGSEGV: take (server.py)", FRAME("/usr/bin/python3.11", "_PyEval_Eval"),
           FRAME(app, "main"), wait, own);
    EXPECT("crash SIGSEGV: Event.wait (threading.py)", FRAME("/usr/bin/python3.11", NULL), wait);
    EXPECT("crash SIGSEGV: hash < take (server.py)", FRAME("/srv/app/fast.so", "hash"),
           FRAME("/usr/lib/libpython3.11.so.1.0", "PyObject_Call"), own);
}

Test(signature, without_names_is_weak) {
    const bp_signature *signature;
    EXPECT("crash SIGSEGV: viewer", FRAME(app, NULL), FRAME(app, NULL));
    signature = sign((const bp_frame_text[]){FRAME(app, NULL)}, 1);
    cr_expect(signature->is_weak);
    signature = sign((const bp_frame_text[]){FRAME(app, NULL), FRAME(app, "exported")}, 2);
    cr_expect(eq(str, (char *)signature->text, "crash SIGSEGV: exported"));
    cr_expect(not(signature->is_weak));
    signature = sign(NULL, 0);
    cr_expect(eq(str, (char *)signature->text, "crash SIGSEGV"));
    cr_expect(signature->is_weak);
}

Test(signature, of_a_deadlock_is_the_same_in_any_order) {
    bp_signature one, other;
    bp_signature_stack stacks[3] = {{.is_over = false}};
    bp_signature_take(&stacks[0], &(bp_frame_text)FRAME(app, "paint"));
    bp_signature_take(&stacks[1], &(bp_frame_text)FRAME(app, "load"));
    bp_signature_make(&one, "deadlock", "", false, stacks, 2);
    stacks[2] = stacks[0];
    bp_signature_make(&other, "deadlock", "", false, stacks + 1, 2);
    cr_expect(eq(str, one.text, "deadlock: load | paint"));
    cr_expect(eq(str, one.text, other.text));
}

Test(signature, is_bounded_whatever_the_names_are) {
    static char name[5000], rust[] = "_RNvC99999999999999999999x", hostile[] = "<<<<::>->\xff\n";
    bp_signature signature;
    bp_signature_stack stacks[4] = {{.is_over = false}};
    memset(name, 'a', sizeof name - 1);
    for (size_t i = 0; i < 4; i++) {
        bp_signature_take(&stacks[i], &(bp_frame_text)FRAME(app, name));
        name[0]++;
        bp_signature_take(&stacks[i], &(bp_frame_text)FRAME(app, i == 1 ? rust : hostile));
        bp_signature_take(&stacks[i], &(bp_frame_text)FRAME(app, ""));
    }
    bp_signature_make(&signature, name, name, false, stacks, 4);
    cr_expect(lt(sz, strlen(signature.text), BP_SIGNATURE_BYTES));
}
